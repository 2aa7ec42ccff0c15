"""Ctrl-C: the first one is remembered, the second one raises, and afterwards all is as before."""

import signal

import pytest
from rich.console import Console

from merit_sql.app.interrupts import Interrupts


def test_the_first_is_remembered_and_the_second_raises() -> None:
    before = signal.getsignal(signal.SIGINT)
    screen = Console(record=True, width=200)
    with Interrupts(screen) as interrupts:
        assert not interrupts.asked()
        signal.raise_signal(signal.SIGINT)
        assert interrupts.asked()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
    assert "Stopping after this episode's commit" in screen.export_text()
