"""The bar that shows how far a download is."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TimeRemainingColumn


class ConsoleProgress:
    """Draws a bar on a terminal and writes a line at every tenth elsewhere."""

    def __init__(self, console: Console | None = None) -> None:
        """Draw on `console`, by default on standard error."""
        self._console = console or Console(stderr=True)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TimeRemainingColumn(),
            console=self._console,
        )
        self._task: TaskID | None = None
        self._tenth = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._task is not None:
            self._bar.stop()

    def update(self, title: str, done: int, total: int) -> None:
        """See `PullProgress.update`."""
        if self._console.is_terminal:
            if self._task is None:
                self._bar.start()
                self._task = self._bar.add_task(title, total=total)
            self._bar.update(self._task, completed=done)
            return
        tenth = 10 * done // max(1, total)
        if tenth != self._tenth:
            self._tenth = tenth
            self.say(f"{title}: {done / 2**20:,.0f} of {total / 2**20:,.0f} MiB")

    def say(self, text: str) -> None:
        """See `PullProgress.say`."""
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)
