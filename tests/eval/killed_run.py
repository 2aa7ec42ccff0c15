"""A benchmark run of every method that kills itself at a chosen moment; started as a process by a test.

Arguments: the run's folder, and JSON ``{"site", "when", "count"}``: at the count-th write of that site the
process kills itself before it, after it, or with half of it written; the site ``clock`` counts milliseconds.
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from merit_sql.eval import bench, ledger, timings
from merit_sql.eval.bench import Plan, run_bench
from merit_sql.eval.oracle import Verdicts
from merit_sql.eval.suites import mini_questions
from merit_sql.eval.suites.load import load_mini
from merit_sql.graph.method import METHODS
from merit_sql.models.hashing import HashingEncoder
from merit_sql.models.identity import identity
from merit_sql.models.record import RecordedChatModel, ReplyRecord
from merit_sql.models.scripted import ScriptedChatModel
from merit_sql.stores import journal, mirror

TWELVE = list(METHODS)[:12]
REMEMBERING_FIRST = sorted(TWELVE, key=lambda name: not METHODS[name].remembers)
PLAN = Plan(methods=tuple(METHODS[name] for name in REMEMBERING_FIRST), orders=(0, 1, 2), limit=40, budget=3)
GOLDS = {item["question"]: item["query"] for item in mini_questions()}


def reply(prompt: str) -> str:
    """By the question's length modulo 3: right at first, right at the second revision, or never."""
    if "Do not write a query now" in prompt:
        return f"<reflection>{prompt.count('Attempt ')} attempts were wrong.</reflection>"
    question = next(text for text in GOLDS if f"<question>\n{text}\n" in prompt)
    tried = prompt.count("\nAttempt ")
    if len(question) % 3 == 0 or (tried == 2 and len(question) % 3 == 1):
        return f"<answer>{GOLDS[question]}</answer>"
    return f"<answer>SELECT n{tried} FROM nowhere</answer>"


def run(out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    model = ScriptedChatModel(replies=reply)
    suite = load_mini()
    with suite.catalogue, closing(ReplyRecord(out / "replies.sqlite")) as record:
        run_bench(
            plan=PLAN,
            suite=suite,
            model=RecordedChatModel(inner=model, records=[record], identity=identity(model)),
            encoder=HashingEncoder,
            verdicts=Verdicts(own=record),
            out=out,
        )


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)


class Fault:
    """Wraps the writes of one site."""

    def __init__(self, when: str, count: int, tear: Callable[..., None]) -> None:
        self.when, self.left, self.tear = when, count, tear

    def around(self, write: Callable[..., Any]) -> Callable[..., Any]:
        def faulty(*args: Any, **kwargs: Any) -> Any:
            self.left -= 1
            if self.left == 0 and self.when == "before":
                die()
            if self.left == 0 and self.when == "torn":
                self.tear(*args, **kwargs)
                die()
            result = write(*args, **kwargs)
            if self.left == 0:
                die()
            return result

        return faulty


def half_a_line(path: Path, text: str) -> None:
    with path.open("ab") as file:
        file.write(text.encode()[: len(text) // 2])


def half_a_journal(file: Any, data: bytes) -> None:
    os.write(file._descriptor, data[: len(data) // 2])


def soon_after_the_start_of_a_put(store: Any, *args: Any) -> None:
    threading.Thread(target=lambda: (time.sleep(0.002), die())).start()
    put(store, *args)


put = mirror.ChromaMirror.put


def arm(site: str, when: str, count: int) -> None:
    if site == "clock":
        threading.Timer(count / 1000, die).start()
    elif site == "ledger":
        ledger.append_line = Fault(when, count, half_a_line).around(ledger.append_line)
    elif site == "timings":
        timings.append_line = Fault(when, count, half_a_line).around(timings.append_line)
    elif site == "journal":
        append = journal._JournalFile.append
        journal._JournalFile.append = Fault(when, count, half_a_journal).around(append)  # type: ignore[method-assign]
    elif site == "chroma":
        fault = Fault(when, count, soon_after_the_start_of_a_put)
        mirror.ChromaMirror.put = fault.around(put)  # type: ignore[method-assign]
    elif site == "initial":
        bench.write_initial_file = Fault(when, count, lambda *_: None).around(bench.write_initial_file)


if __name__ == "__main__":
    fault = json.loads(sys.argv[2])
    if fault:
        arm(**fault)
    run(Path(sys.argv[1]))
