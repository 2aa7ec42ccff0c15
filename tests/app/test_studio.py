"""What LangGraph Studio loads: the graph that langgraph.json names."""

import importlib
import json
from pathlib import Path

from langgraph.graph.state import CompiledStateGraph

ROOT = Path(__file__).resolve().parent.parent.parent


def test_langgraph_json_names_a_compiled_graph_without_a_checkpointer() -> None:
    config = json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))
    for target in config["graphs"].values():
        module, _, name = target.partition(":")
        graph = getattr(importlib.import_module(module), name)
        assert isinstance(graph, CompiledStateGraph)
        assert graph.checkpointer is None
        inputs = graph.get_input_jsonschema()["properties"]
        assert set(inputs) == {
            "question",
            "database_id",
            "evidence",
            "initial_sql",
            "query_id",
            "position",
        }
