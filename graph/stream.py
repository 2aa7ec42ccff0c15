"""A causal stream: episodes one after another, each seeing the memory that the earlier ones left."""

from collections.abc import Iterable, Iterator
from typing import cast

from merit_sql.domain.episode import Case
from merit_sql.graph.repair import RepairGraph
from merit_sql.nodes.state import EpisodeOutput


def run_stream(graph: RepairGraph, cases: Iterable[Case]) -> Iterator[EpisodeOutput]:
    """Run the episodes of `cases` in order, lazily: the next begins when its predecessor was taken.

    A case's `position` is its 0-based place in the stream; it must grow from case to case, since memory
    serves only what comes from smaller positions. Raises `ValueError` where it does not.
    """
    latest = -1
    for case in cases:
        if case.position <= latest:
            raise ValueError(f"query {case.query_id} has position {case.position}, not after {latest}")
        latest = case.position
        output = graph.invoke(
            {
                "question": case.question,
                "database_id": case.database_id,
                "evidence": case.evidence,
                "initial_sql": case.initial_sql,
                "query_id": case.query_id,
                "position": case.position,
            }
        )
        yield cast(EpisodeOutput, output)
