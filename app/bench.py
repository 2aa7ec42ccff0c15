"""``merit bench``: run methods over a suite, print the table, keep the run on disk."""

import argparse
import math
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from merit_sql.app.score import positive_seconds
from merit_sql.domain.errors import DataError

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from rich.console import Console

    from merit_sql.domain.encoder import Encoder
    from merit_sql.eval.bench import Plan, RunResult
    from merit_sql.eval.datasets import Suite
    from merit_sql.eval.protocol import Protocol
    from merit_sql.models.identity import ModelIdentity
    from merit_sql.models.replies import Replies


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the command's options."""
    parser = subparsers.add_parser(
        "bench",
        help="repair the failed SQL of a suite, method by method, and print what each achieves",
        description="Runs every method in every order over the chosen questions. The run lives in --out: "
        "the same command goes on where it stopped. Options say more than the protocol does.",
    )
    parser.add_argument(
        "--protocol", help="settings to start from: paper-spider, paper-bird, mini, or FILE.toml"
    )
    parser.add_argument("--suite", choices=("mini", "spider", "bird"))
    parser.add_argument("--data", type=Path, default=Path("data"), help="folder with spider/ and bird/")
    parser.add_argument("--databases", help="only questions on these databases, e.g. pets_1,flight_2")
    parser.add_argument("--questions", help="only these questions by their ids, e.g. 3,17")
    parser.add_argument("--limit", type=int, help="only the first N scorable questions")
    parser.add_argument("--method", help="methods, e.g. iterative,merit (`merit methods` lists them)")
    parser.add_argument("--orders", help="stream orders (seeds), e.g. 0,1,2; 0 unless given")
    parser.add_argument("--model", help="chat model (embedded:qwen2.5-coder-1.5b)")
    parser.add_argument("--encoder", help="encoder of memories (embedded:all-minilm-l6-v2)")
    parser.add_argument("--prompts", choices=("cached", "paper"), help="prompt family (cached)")
    parser.add_argument(
        "--regime", choices=("denotation_confirmed", "dbms_only"), help="who confirms (denotation_confirmed)"
    )
    parser.add_argument("--initial", help="'generate' (the default), or a file of predictions")
    parser.add_argument("--budget", type=int, help="K, revisions an episode may spend (7)")
    parser.add_argument(
        "--replies", type=Path, help="recorded replies to answer from before asking the model"
    )
    parser.add_argument("--distinct", choices=("keep", "strip"), help="Spider's DISTINCT mode (keep)")
    parser.add_argument(
        "--timeout", type=positive_seconds, help="seconds a query may take (Spider 60, BIRD 30)"
    )
    parser.add_argument("--out", type=Path, help="the run's folder")
    parser.add_argument(
        "--dry-run", action="store_true", help="print the calls and tokens to expect, and ask no model"
    )
    parser.add_argument(
        "--price",
        type=_prices,
        metavar="PROMPT,OUTPUT",
        help="with --dry-run: prices per million tokens, e.g. 0.15,0.60",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command and print its table; 0 when every stream is finished."""
    from merit_sql.app.tables import console

    screen = console()
    if args.dry_run:
        foresee(args, screen)
        return 0
    print_result(bench(args, screen), screen)
    return 0


def print_result(result: "RunResult", screen: "Console") -> None:
    """Print the table of a run and what must be known beside it."""
    from merit_sql.app.tables import notes, results_table

    screen.print(results_table(result))
    for note in notes(result):
        screen.print(note, highlight=False, markup=False)


def foresee(args: argparse.Namespace, screen: "Console") -> None:
    """Print what the run would ask for."""
    from merit_sql.app.tables import forecast_notes, forecast_table
    from merit_sql.eval.bench import select
    from merit_sql.eval.forecast import forecast

    protocol = protocol_of(args)
    suite = _suite(protocol, args.data)
    with suite.catalogue:
        plan = plan_of(protocol, suite)
        selection = select(suite, plan.databases, plan.limit, plan.questions)
        rows = forecast(plan, suite, selection)
    screen.print(forecast_table(rows, len(selection.questions), args.price))
    for note in forecast_notes(plan):
        screen.print(note, highlight=False, markup=False)


def bench(args: argparse.Namespace, screen: "Console") -> "RunResult":
    """Resolve the names on the command line and run; raises `MeritError` for whatever is wrong with them."""
    from merit_sql.app.interrupts import Interrupts
    from merit_sql.app.progress import ProgressWatcher
    from merit_sql.eval.bench import run_bench
    from merit_sql.eval.oracle import Verdicts
    from merit_sql.models.identity import identity
    from merit_sql.models.record import RecordedChatModel, ReplyRecord, open_record

    protocol = protocol_of(args)
    if args.out is None:
        raise DataError("--out is missing: name the folder in which the run is kept")
    suite = _suite(protocol, args.data)
    with suite.catalogue:
        plan = plan_of(protocol, suite)
        live = _model(protocol)
        earlier = [
            open_record(path)
            for path in (args.replies, replayed_file(protocol.model.name))
            if path is not None
        ]
        _check_recorded(earlier, identity(live))
        _make_folder(args.out)
        with (
            closing(ReplyRecord(args.out / "replies.sqlite")) as own,
            ProgressWatcher(screen) as watcher,
            Interrupts(screen) as interrupts,
        ):
            return run_bench(
                plan=plan,
                suite=suite,
                model=RecordedChatModel(inner=live, records=[own, *earlier], identity=identity(live)),
                encoder=lambda: _encoder(protocol),
                verdicts=Verdicts(own=own, earlier=earlier),
                out=args.out,
                watcher=watcher,
                stop=interrupts.asked,
                protocol=protocol.model_dump(mode="json"),
            )


def protocol_of(args: argparse.Namespace) -> "Protocol":
    """The protocol that the command line asks for: a file's settings, and the options over them."""
    from merit_sql.eval.protocol import read_protocol, resolve

    settings = {} if args.protocol is None else read_protocol(args.protocol)
    settings.update(_options(args))
    for key, option in (("suite", "--suite"), ("methods", "--method")):
        if key not in settings:
            raise DataError(f"{option} is missing: give it, or a --protocol that says it")
    source = "the command line" if args.protocol is None else f"--protocol {args.protocol}"
    return resolve(settings, source)


def _options(args: argparse.Namespace) -> "Iterator[tuple[str, Any]]":
    """The settings that options name, each checked where its text is known."""
    for key in ("suite", "initial", "distinct", "timeout", "prompts", "regime"):
        value = getattr(args, key)
        if value is not None:
            yield key, value
    if args.databases is not None:
        yield "databases", _named("--databases", args.databases)
    if args.method is not None:
        yield "methods", _named("--method", args.method)
    if args.orders is not None:
        yield "orders", _numbers("--orders", args.orders)
    if args.questions is not None:
        yield "questions", _numbers("--questions", args.questions)
    if args.limit is not None:
        if args.limit < 1:
            raise DataError(f"--limit {args.limit}: give 1 or more, or leave it out for all questions")
        yield "limit", args.limit
    if args.budget is not None:
        if args.budget < 0:
            raise DataError(f"--budget {args.budget}: give 0 or more revisions")
        yield "budget", args.budget
    for key in ("model", "encoder"):
        value = getattr(args, key)
        if value is not None:
            yield key, {"name": value}


def plan_of(protocol: "Protocol", suite: "Suite") -> "Plan":
    """The plan of a run on `suite`; reads the file of initial predictions where the protocol names one."""
    from merit_sql.eval.bench import Plan
    from merit_sql.eval.predictions import read_predictions
    from merit_sql.eval.protocol import GENERATE
    from merit_sql.graph.method import METHODS
    from merit_sql.prompts.rendering import FAMILIES, TokenBudget

    methods = []
    for name in protocol.methods:
        method = replace(METHODS[name], prompts=FAMILIES[protocol.prompts])
        if protocol.memory_text is not None and method.policy is not None:
            method = replace(method, policy=replace(method.policy, memory_text=protocol.memory_text))
        methods.append(method)
    predictions = None
    if protocol.initial != GENERATE:
        databases = [question.database_id for question in suite.questions]
        predictions = tuple(read_predictions(Path(protocol.initial), databases))
    return Plan(
        methods=tuple(methods),
        orders=protocol.orders,
        databases=protocol.databases,
        questions=protocol.questions,
        limit=protocol.limit,
        budget=protocol.budget,
        predictions=predictions,
        regime=protocol.regime,
        tokens=TokenBudget(**protocol.tokens.model_dump()),
    )


def _model(protocol: "Protocol") -> "BaseChatModel":
    from merit_sql.models.chat import get_chat_model
    from merit_sql.models.identity import identity

    asked = protocol.model
    options: dict[str, Any] = {}
    kind = asked.name.partition(":")[0]
    if kind in {"vllm", "openai"} and asked.revision is not None:
        options["revision"] = asked.revision
    if kind == "vllm" and asked.quantisation is not None:
        options["engine_options"] = {"quantization": asked.quantisation}
    model = get_chat_model(asked.name, **options)
    known = identity(model)
    for what, wanted, is_ in (
        ("revision", asked.revision, known.revision),
        ("quantisation", asked.quantisation, known.quantisation),
    ):
        if wanted is not None and not (is_ or "").startswith(wanted):
            raise DataError(
                f"the protocol asks for {what} {wanted!r} of {asked.name}, and this one has {is_!r}"
            )
    return model


def _encoder(protocol: "Protocol") -> "Encoder":
    from merit_sql.models.encoder import get_encoder

    encoder = get_encoder(protocol.encoder.name)
    wanted = protocol.encoder.revision
    if wanted is not None and not encoder.revision.startswith(wanted):
        raise DataError(
            f"the protocol asks for revision {wanted!r} of {protocol.encoder.name}, "
            f"and this one has {encoder.revision!r}"
        )
    return encoder


def _make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"--out {out}: no folder can be made there ({error.strerror})") from error


def replayed_file(model: str) -> Path | None:
    """The file of a model named ``replay:FILE``: its verdicts are used beside its replies."""
    kind, _, rest = model.partition(":")
    return Path(rest) if kind == "replay" else None


def _suite(protocol: "Protocol", data: Path) -> "Suite":
    from merit_sql.eval.datasets import load_suite
    from merit_sql.eval.suites.load import load_mini

    if protocol.suite == "mini":
        return load_mini(distinct=protocol.distinct, timeout=protocol.timeout)
    return load_suite(protocol.suite, data, distinct=protocol.distinct, timeout=protocol.timeout)


def _named(option: str, text: str) -> tuple[str, ...]:
    names = tuple(_listed(text))
    if not names:
        raise DataError(f"{option} {text!r}: names nothing; give one or more, separated by commas")
    return names


def _listed(text: str) -> list[str]:
    return list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def _numbers(option: str, text: str) -> tuple[int, ...]:
    try:
        numbers = tuple(int(number) for number in _listed(text))
    except ValueError as error:
        raise DataError(f"{option} {text!r}: give whole numbers, e.g. 0,1,2") from error
    if not numbers or min(numbers) < 0:
        raise DataError(f"{option} {text!r}: give one or more numbers from 0 up")
    return numbers


def _prices(text: str) -> tuple[float, float]:
    prices = [float(part) for part in text.split(",")]
    if len(prices) != 2 or not all(price >= 0 and math.isfinite(price) for price in prices):
        raise argparse.ArgumentTypeError(f"{text!r}: give two prices, e.g. 0.15,0.60")
    return prices[0], prices[1]


def _check_recorded(records: "Sequence[Replies]", model: "ModelIdentity") -> None:
    for record in records:
        known = record.identities()
        if model not in known:
            named = "; ".join(one.describe() for one in known) or "none"
            raise DataError(f"{record.name} holds no replies of {model.describe()}; it has those of: {named}")
