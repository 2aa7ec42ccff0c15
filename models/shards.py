"""Recorded replies as a repository ships them: compressed shards of less than 1 MB, without prompt text.

A shard is an xz-compressed file of JSON lines. The first line is
``{"format": "merit-sql replies", "version": 1, "models": [identity, …]}``; each further one is
``{"key", "model", "text", "prompt_tokens", "output_tokens", "finish_reason"}`` with the index of the model in
the first line. Lines are sorted by key, so the same replies always give the same bytes.
"""

import json
import lzma
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from merit_sql.domain.errors import DataError
from merit_sql.models.identity import ModelIdentity
from merit_sql.models.replies import RecordError, Replies, Reply

SHARD_BYTES = 1_000_000
"""A shard is smaller than this."""

SUFFIX = ".jsonl.xz"
MAGIC = b"\xfd7zXZ\x00"
_FORMAT = {"format": "merit-sql replies", "version": 1}


def write_shards(record: Replies, folder: Path) -> list[Path]:
    """Write every reply of a record into `folder`, which must be empty or not exist; returns the shards."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise RecordError(f"{folder} is not empty: write shards into a new folder")
    models = record.identities()
    index = {model: place for place, model in enumerate(models)}
    header = json.dumps({**_FORMAT, "models": [model.to_dict() for model in models]}, sort_keys=True)
    lines = [
        json.dumps({"key": key, "model": index[model], **reply.to_dict()}, sort_keys=True)
        for key, model, reply in record.items()
    ]
    paths = []
    for number, data in enumerate(_packed(header, lines)):
        path = folder / f"replies-{number:03d}{SUFFIX}"
        path.write_bytes(data)
        paths.append(path)
    return paths


def _packed(header: str, lines: Sequence[str]) -> Iterator[bytes]:
    data = lzma.compress("".join(f"{line}\n" for line in (header, *lines)).encode("ascii"))
    if len(data) < SHARD_BYTES:
        yield data
        return
    if len(lines) < 2:
        raise RecordError(f"one reply alone takes {len(data):,} bytes, more than a shard may have")
    middle = len(lines) // 2
    yield from _packed(header, lines[:middle])
    yield from _packed(header, lines[middle:])


class ShardedReplies:
    """The replies of one shard, or of all shards in a folder; read whole when it is made."""

    def __init__(self, path: Path) -> None:
        """Raises `RecordError` for a path without shards, and for a damaged shard."""
        self._path = path
        self._replies: dict[str, tuple[ModelIdentity, Reply]] = {}
        files = sorted(path.glob(f"*{SUFFIX}")) if path.is_dir() else [path]
        if not files:
            raise RecordError(f"{path} holds no shard of recorded replies (*{SUFFIX})")
        for file in files:
            self._read(file)

    @property
    def name(self) -> str:
        """See `Replies.name`."""
        return str(self._path)

    def get(self, key: str) -> Reply | None:
        """See `Replies.get`."""
        found = self._replies.get(key)
        return None if found is None else found[1]

    def identities(self) -> list[ModelIdentity]:
        """See `Replies.identities`."""
        return sorted({model for model, _ in self._replies.values()}, key=ModelIdentity.digest)

    def items(self) -> Iterator[tuple[str, ModelIdentity, Reply]]:
        """See `Replies.items`."""
        for key in sorted(self._replies):
            yield key, *self._replies[key]

    def _read(self, file: Path) -> None:
        try:
            lines = lzma.decompress(file.read_bytes()).decode("ascii").splitlines()
            header: Any = json.loads(lines[0])
            if {name: header.get(name) for name in _FORMAT} != _FORMAT:
                raise RecordError(f"{file} is no shard of version {_FORMAT['version']}: make it again")
            models = [ModelIdentity.from_dict(model) for model in header["models"]]
            for line in lines[1:]:
                row: Any = json.loads(line)
                key, model = row.pop("key"), models[row.pop("model")]
                self._replies[key] = (model, Reply.from_dict(row))
        except (
            OSError,
            lzma.LZMAError,
            ValueError,
            LookupError,
            TypeError,
            AttributeError,
            DataError,
        ) as error:
            raise RecordError(
                f"{file} is damaged or no shard of recorded replies ({error}): get or make it again"
            ) from error
