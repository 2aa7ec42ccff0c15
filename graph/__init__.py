"""The repair state machine, its methods, and how a stream of episodes runs through it."""

from merit_sql.graph.method import METHODS, Method
from merit_sql.graph.repair import RepairGraph, build_repair_graph
from merit_sql.graph.stream import run_stream

__all__ = ["METHODS", "Method", "RepairGraph", "build_repair_graph", "run_stream"]
