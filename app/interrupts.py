"""Ctrl-C: the first ends a run after the episode that is under way, the second at once."""

import signal
from types import FrameType, TracebackType
from typing import Self

from rich.console import Console


class Interrupts:
    """While it is entered, remembers that somebody pressed Ctrl-C; pressing it again raises as ever."""

    def __init__(self, screen: Console) -> None:
        """Say on `screen` what the first Ctrl-C does."""
        self._screen = screen
        self._asked = False

    def asked(self) -> bool:
        """Whether the run should stop at its next commit."""
        return self._asked

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGINT, self._first)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _first(self, _: int, __: FrameType | None) -> None:
        self._asked = True
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self._screen.print(
            "Stopping after this episode's commit; press Ctrl-C again to stop at once.", highlight=False
        )
