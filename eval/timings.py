"""The seconds and real calls of a stream's episodes: of this machine, outside the run's identity."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from merit_sql.eval.ledger import append_line


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """Sums over the episodes that were timed.

    Seconds are wall clock: of the episodes as a whole, and of the parts that they spent in the model, in
    databases, in retrieval (without the encoder) and in the encoder. `real_calls` were made by this run;
    the other calls that a method is charged for were found in a record.
    """

    episodes: int = 0
    seconds: float = 0.0
    model_seconds: float = 0.0
    database_seconds: float = 0.0
    retrieval_seconds: float = 0.0
    encoder_seconds: float = 0.0
    real_calls: int = 0


@dataclass(slots=True)
class Stopwatch:
    """Sums the seconds spent in parts; a part that runs inside another one does not count twice."""

    spent: dict[str, float] = field(default_factory=dict)
    _inner: list[float] = field(default_factory=list)

    @contextmanager
    def timing(self, part: str) -> Iterator[None]:
        """Charge what runs inside to `part`."""
        begun = time.perf_counter()
        self._inner.append(0.0)
        try:
            yield
        finally:
            whole = time.perf_counter() - begun
            within = self._inner.pop()
            self.spent[part] = self.spent.get(part, 0.0) + whole - within
            if self._inner:
                self._inner[-1] += whole

    def take(self) -> dict[str, float]:
        """What was spent since the last time, by part."""
        taken, self.spent = self.spent, {}
        return taken


def note_timings(path: Path, row: dict[str, Any]) -> None:
    """Append one episode's row; seconds are rounded to milliseconds."""
    rounded = {key: round(value, 3) if isinstance(value, float) else value for key, value in row.items()}
    append_line(path, json.dumps(rounded, sort_keys=True))


def read_timings(path: Path) -> Timings:
    """The sums over a file's rows; a row that a kill tore is passed over, as its episode was run again."""
    rows = list(_rows(path))
    sums: dict[str, Any] = {
        one.name: sum(float(row.get(one.name, 0.0)) for row in rows)
        for one in fields(Timings)
        if one.name.endswith("seconds")
    }
    return Timings(episodes=len(rows), real_calls=sum(int(row["real_calls"]) for row in rows), **sums)


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_bytes().splitlines() if path.exists() else []:
        try:
            row = json.loads(line)
            float(row["seconds"]), int(row["real_calls"])
        except (ValueError, KeyError, TypeError):
            continue
        yield row
