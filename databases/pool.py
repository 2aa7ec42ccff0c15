"""Worker processes that run SQL and can be killed without harm."""

import contextlib
import marshal
import os
import select
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from merit_sql.databases import worker
from merit_sql.databases.worker import HEADER, MARSHAL_VERSION, Request
from merit_sql.domain.errors import MeritError

GRACE_SECONDS = 0.25
"""How much longer than its deadline a statement may take to answer before its worker is killed."""

_START_SECONDS = 60.0
_LONGEST_WAIT_SECONDS = 86_400.0
_READ_BYTES = 1 << 16

Frame = tuple[Any, ...]


class WorkerTimeoutError(MeritError):
    """A request was still unanswered after its deadline; its worker was killed."""


class WorkerDiedError(MeritError):
    """A worker ended while it answered a request."""


class WorkerStartError(MeritError):
    """No worker could be started: nothing can be said about any statement."""


class _WorkerGoneError(MeritError):
    """A worker had ended before it took a request: another one can take it."""


class _Worker:
    """One running process and the pipes to it."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(worker.__file__).resolve())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            # Ctrl-C goes to the foreground session: it must not reach workers in mid-statement.
            start_new_session=True,
        )
        if self._process.stdin is None or self._process.stdout is None:
            raise WorkerStartError("the database worker has no pipes: start it again")
        self._to, self._from = self._process.stdin, self._process.stdout
        self._poll = select.poll()
        self._poll.register(self._from.fileno(), select.POLLIN)
        self._buffer = bytearray()
        self.pid = self._process.pid
        try:
            self.receive(time.monotonic() + _START_SECONDS)
        except MeritError as error:
            self.kill()
            raise WorkerStartError(
                f"the database worker did not start (exit status {self._process.returncode}): "
                f"check that {sys.executable} runs and that memory is left"
            ) from error

    def send(self, request: Request) -> None:
        """Hand over one request."""
        body = marshal.dumps(tuple(request), MARSHAL_VERSION)
        data = memoryview(HEADER.pack(len(body)) + body)
        try:
            while data:
                data = data[os.write(self._to.fileno(), data) :]
        except BrokenPipeError as error:
            raise _WorkerGoneError("the database worker had ended before it was asked") from error

    def receive(self, deadline: float) -> Frame:
        """The next frame; `deadline` is a reading of the monotonic clock."""
        (length,) = HEADER.unpack(self._take(HEADER.size, deadline))
        frame: Frame = marshal.loads(self._take(length, deadline))  # noqa: S302 - written by our own worker
        return frame

    def _take(self, count: int, deadline: float) -> bytes:
        while len(self._buffer) < count:
            left = min(deadline - time.monotonic(), _LONGEST_WAIT_SECONDS)
            if not self._poll.poll(max(left, 0.0) * 1000):
                raise WorkerTimeoutError("the database worker did not answer in time and was killed")
            data = os.read(self._from.fileno(), _READ_BYTES)
            if not data:
                raise WorkerDiedError("the database worker ended while it ran this query")
            self._buffer += data
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        return taken

    def kill(self) -> None:
        """End the process, whatever it is doing."""
        self._process.kill()
        self._process.wait()
        self.let_go()

    def let_go(self) -> None:
        """Close the pipes; the process ends when nobody else holds them."""
        self._to.close()
        self._from.close()


def _kill_all(workers: set[_Worker], owner: int) -> None:
    if os.getpid() == owner:
        for running in workers:
            running.kill()
        workers.clear()


class WorkerPool:
    """Up to `size` warm workers, started when first needed and replaced after a kill.

    Any number of threads may call; a call waits while every worker is busy, and its deadline starts when it
    has one. A process forked from this one starts workers of its own.
    """

    def __init__(self, size: int = 1) -> None:
        """A pool that starts nothing yet; raises `MeritError` for a size below 1."""
        if size < 1:
            raise MeritError(f"a pool of {size} database workers can run nothing: ask for 1 or more")
        self.size = size
        self._begin()

    def _begin(self) -> None:
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._free = threading.BoundedSemaphore(self.size)
        self._idle: list[_Worker] = []
        self._running: set[_Worker] = set()
        self._finalizer = weakref.finalize(self, _kill_all, self._running, self._owner)

    def call(self, request: Request) -> list[Frame]:
        """The frames that answer `request`, the last of which says how it ended.

        Raises `WorkerTimeoutError` when the request's seconds and a grace have passed, and
        `WorkerDiedError` when its worker ended; either way the next call finds a worker.
        """
        if os.getpid() != self._owner:
            for inherited in self._running:
                inherited.let_go()
            self._begin()
        with self._free:
            # Each idle worker may have been ended from outside; the one after them is new.
            for _ in range(self.size + 1):
                with contextlib.suppress(_WorkerGoneError), self._borrowed() as borrowed:
                    return _exchange(borrowed, request)
        raise WorkerStartError(
            "database workers end before they are asked anything: check that memory is left"
        )

    @contextlib.contextmanager
    def _borrowed(self) -> Iterator[_Worker]:
        """A worker that goes back among the idle ones, or is killed if its exchange broke off."""
        with self._lock:
            borrowed = self._idle.pop() if self._idle else None
        if borrowed is None:
            borrowed = _Worker()
            with self._lock:
                self._running.add(borrowed)
        finished = False
        try:
            yield borrowed
            finished = True
        finally:
            with self._lock:
                if finished:
                    self._idle.append(borrowed)
                else:
                    self._running.discard(borrowed)
            if not finished:
                borrowed.kill()

    def close(self) -> None:
        """End every worker; a later call starts new ones."""
        with self._lock:
            self._idle.clear()
            _kill_all(self._running, self._owner)

    def __enter__(self) -> "WorkerPool":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _exchange(borrowed: _Worker, request: Request) -> list[Frame]:
    borrowed.send(request)
    deadline = time.monotonic() + request.seconds + GRACE_SECONDS
    try:
        borrowed.receive(deadline)
    except WorkerDiedError as error:
        raise _WorkerGoneError("the database worker ended before it took this query") from error
    frames = [borrowed.receive(deadline)]
    while frames[-1][0] == "rows":
        frames.append(borrowed.receive(deadline))
    return frames
