"""Entries as folds: what the observations of one identity say together."""

from collections.abc import Sequence
from dataclasses import dataclass

from merit_sql.domain.memory import MemoryEntry, Observation
from merit_sql.domain.status import Polarity


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """Observations of one identity, taken together.

    `rows` index the observations that were folded, oldest first; `representative` is the row whose text
    stands for all of them.
    """

    rows: Sequence[int]
    polarity: Polarity
    representative: int


def fold(rows: Sequence[int], observations: Sequence[Observation]) -> Fold | None:
    """Fold `rows` of one identity, oldest first; None where there is nothing to serve.

    The polarity is that of the larger count, evaluated after each observation, so that a tie keeps what
    stood before. The representative is the newest observation of that polarity that has a text.
    """
    if not rows:
        return None
    polarity = winning_polarity([observations[row].provenance.polarity for row in rows])
    for row in reversed(rows):
        observation = observations[row]
        if observation.content is not None and observation.provenance.polarity is polarity:
            return Fold(rows=rows, polarity=polarity, representative=row)
    return None


def winning_polarity(polarities: Sequence[Polarity]) -> Polarity:
    """The polarity of at least one observation, oldest first; a tie keeps the old one."""
    winner, lead = polarities[0], 0
    for polarity in polarities:
        lead += 1 if polarity is winner else -1
        if lead < 0:
            winner, lead = polarity, -lead
    return winner


def entry_of(folded: Fold, observations: Sequence[Observation]) -> MemoryEntry:
    """The entry that a fold stands for."""
    representative = observations[folded.representative]
    if representative.content is None:
        raise ValueError(f"row {folded.representative} has no text and cannot represent an entry")
    provenances = tuple(observations[row].provenance for row in folded.rows)
    successes = sum(one.polarity is Polarity.POSITIVE for one in provenances)
    return MemoryEntry(
        id=representative.entry_id,
        polarity=folded.polarity,
        content=representative.content,
        confirmations=len(provenances),
        successes=successes,
        failures=len(provenances) - successes,
        observations=provenances,
    )
