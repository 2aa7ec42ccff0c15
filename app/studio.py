"""The graph that LangGraph Studio loads: the bundled suite, the embedded model, no judge but the database."""

from merit_sql.databases.catalogue import Catalogue
from merit_sql.domain.status import Regime
from merit_sql.eval.protocol import DEFAULT_MODEL
from merit_sql.eval.suites.build import build_mini
from merit_sql.graph.method import METHODS
from merit_sql.graph.repair import RepairGraph, build_repair_graph
from merit_sql.models.chat import get_chat_model
from merit_sql.oracles.execution import ExecutionOracle


def make_graph() -> RepairGraph:
    """The repair graph without a committer: what is tried in Studio is not remembered."""
    databases = Catalogue.from_folder(build_mini())
    return build_repair_graph(
        get_chat_model(DEFAULT_MODEL),
        None,
        ExecutionOracle(databases),
        databases,
        METHODS["merit"],
        regime=Regime.DBMS_ONLY,
    )


graph = make_graph()
