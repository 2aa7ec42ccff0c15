"""The gate's rules over a statement's whole syntax tree, as sqlglot sees it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.dialects.sqlite import SQLite
from sqlglot.errors import SqlglotError

from merit_sql.databases.worker import is_denied_function, is_denied_table

_DIALECT = SQLite()
# The gold queries of Spider and BIRD need 0.42 at most.
_NODES_PER_TOKEN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeRule:
    """A rule over every node of the tree; `breaks` is told whether the node is a root."""

    name: str
    reason: str
    breaks: Callable[[exp.Expr, bool], bool]


_QUERIES = (exp.Select, exp.SetOperation)
_WRITES = (exp.DML, exp.Into, exp.LoadData, exp.Returning, exp.TruncateTable)
_DEFINITIONS = (exp.Alter, exp.Comment, exp.DDL, exp.Drop, exp.Grant, exp.Revoke)
_COMMANDS = (
    exp.Analyze,
    exp.Attach,
    exp.Cache,
    exp.Command,
    exp.Commit,
    exp.Declare,
    exp.Describe,
    exp.Detach,
    exp.Execute,
    exp.Export,
    exp.Kill,
    exp.Pragma,
    exp.Refresh,
    exp.Rollback,
    exp.Set,
    exp.Show,
    exp.Transaction,
    exp.Uncache,
    exp.Use,
)


def _root_is_no_query(node: exp.Expr, is_root: bool) -> bool:
    return is_root and not isinstance(node.unnest(), _QUERIES)


def _writes(node: exp.Expr, _: bool) -> bool:
    return isinstance(node, _WRITES)


def _defines(node: exp.Expr, _: bool) -> bool:
    return isinstance(node, _DEFINITIONS)


def _commands(node: exp.Expr, _: bool) -> bool:
    return isinstance(node, _COMMANDS)


def _calls_denied_function(node: exp.Expr, _: bool) -> bool:
    return isinstance(node, exp.Anonymous) and is_denied_function(node.name)


def _reads_denied_table(node: exp.Expr, _: bool) -> bool:
    # The name of a table-valued function is that of the function, not of the table.
    return isinstance(node, exp.Table) and node.this is not None and is_denied_table(node.this.name)


TREE_RULES: tuple[TreeRule, ...] = (
    TreeRule(
        name="a query at the root",
        reason="SELECT and set operations of SELECTs are the only statements that read and do nothing else",
        breaks=_root_is_no_query,
    ),
    TreeRule(
        name="nothing that writes",
        reason="a write can hide in a common table expression, or as SELECT … INTO",
        breaks=_writes,
    ),
    TreeRule(
        name="nothing that defines",
        reason="definitions change the schema or who may use it",
        breaks=_defines,
    ),
    TreeRule(
        name="no command",
        reason="commands (ATTACH, PRAGMA, VACUUM, transactions, …) steer the engine instead of reading",
        breaks=_commands,
    ),
    TreeRule(
        name="no function that leaves the database",
        reason="some functions read or write files, load code, or run SQL of their own",
        breaks=_calls_denied_function,
    ),
    TreeRule(
        name="no table of the engine",
        reason="table-valued pragmas and page tables show the engine and the file, not the data",
        breaks=_reads_denied_table,
    ),
)


def broken_rule(sql: str) -> TreeRule | None:
    """The first rule that some node of `sql` breaks; None when none does or sqlglot cannot read it.

    The tree's size is bounded: a text of which sqlglot makes too much counts as one it cannot read. Tries
    that make no nodes are bounded by the depth of brackets alone, which is for the caller to limit.
    """
    try:
        roots = _parse(sql)
    except (SqlglotError, RecursionError):
        return None
    nodes = [(node, node is root) for root in roots for node in root.walk()]
    return next((rule for rule in TREE_RULES if any(rule.breaks(node, top) for node, top in nodes)), None)


def _parse(sql: str) -> Sequence[exp.Expr]:
    tokens = _DIALECT.tokenize(sql)
    # sqlglot reads on from an earlier token when one reading fails: ``a JOIN b JOIN c …`` without ON costs
    # it 2^n tries, a minute at n = 22, and a model that repeats itself writes just that.
    parser = _DIALECT.parser(max_nodes=_NODES_PER_TOKEN * (len(tokens) + 20))
    statements = parser.parse(tokens, sql)
    return [root for root in statements if root is not None and not isinstance(root, exp.Semicolon)]
