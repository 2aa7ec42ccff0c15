"""The progress bar of a benchmark run."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from merit_sql.app.tables import brief
from merit_sql.eval.metrics import Metrics


class ProgressWatcher:
    """Shows each stage of a run as a bar with what it has come to so far.

    Where there is no terminal a line is printed at every tenth of a stage instead.
    """

    def __init__(self, console: Console) -> None:
        """Draw on `console`."""
        self._console = console
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
            console=console,
            disable=not console.is_terminal,
        )
        self._task: TaskID | None = None
        self._title = ""
        self._total = self._done = 0

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def begin(self, title: str, total: int, done: int) -> None:
        """See `Watcher.begin`."""
        self._title, self._total, self._done = title, total, done
        self._task = self._progress.add_task(title, total=total, completed=done, note="")
        if not self._console.is_terminal and done:
            self._console.print(f"{title}: {done}/{total} were done before", highlight=False)

    def advance(self, metrics: Metrics | None) -> None:
        """See `Watcher.advance`."""
        self._done += 1
        note = "" if metrics is None else brief(metrics)
        if self._task is not None:
            self._progress.update(self._task, advance=1, note=note)
        tenth = max(1, self._total // 10)
        if not self._console.is_terminal and (self._done % tenth == 0 or self._done == self._total):
            line = f"{self._title}: {self._done}/{self._total} {note}"
            self._console.print(line.rstrip(), highlight=False, soft_wrap=True)
