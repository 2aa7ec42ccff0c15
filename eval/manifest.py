"""A run's identity: what its results depend on, kept in ``manifest.json`` and compared on resume."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from merit_sql.domain.errors import DataError, IdentityError

FORMAT = 1
VARYING = ("methods", "orders", "encoder")
"""Fields that decide which streams a run has, and not what any one of them contains."""


def run_id(identity: Mapping[str, Any]) -> str:
    """A name (12 hex digits) that equal streams share, however many others ran beside them."""
    shared = {key: value for key, value in identity.items() if key not in VARYING}
    return hashlib.sha256(_canonical(shared).encode("utf-8")).hexdigest()[:12]


def claim(folder: Path, identity: Mapping[str, Any], protocol: Mapping[str, Any] | None = None) -> None:
    """Make `folder` the home of a run, or check that it is this run's already.

    A run may grow by methods and orders, and by the encoder where none was needed before: the manifest
    keeps all of them. `protocol` is what the run's settings were resolved to, kept for a reader. Raises
    `IdentityError` naming each field that differs, with the old and the new value, and for a folder that
    holds streams without a manifest.
    """
    path = folder / "manifest.json"
    identity = json.loads(_canonical(identity))
    if path.exists():
        kept = read_manifest(folder)["identity"]
        differences = list(_differences("", kept, identity))
        if differences:
            raise IdentityError(
                f"{folder} holds another run; choose another --out, or repeat its settings:\n  "
                + "\n  ".join(differences)
            )
        identity = _grown(kept, identity)
        if identity == kept:
            return
    elif any(folder.glob("*/episodes.jsonl")) or (folder / "initial.jsonl").exists():
        raise IdentityError(
            f"{folder} holds the streams of a run whose manifest.json is gone: nothing says what they were "
            "made with. Restore it, or choose another --out"
        )
    folder.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    document = {"format": FORMAT, "run": run_id(identity), "identity": identity, "protocol": protocol}
    temporary.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    temporary.replace(path)


def read_manifest(folder: Path) -> dict[str, Any]:
    """``{"format", "run", "identity"}`` of a run; raises `DataError` or `IdentityError` where it has none."""
    path = folder / "manifest.json"
    try:
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if document["format"] != FORMAT:
            raise IdentityError(f"{path}: is of format {document['format']}, this version writes {FORMAT}")
        if not isinstance(document["run"], str) or not isinstance(document["identity"], dict):
            raise TypeError("its fields are of other types")
        return document
    except OSError as error:
        raise DataError(f"{folder} holds no run: {path} cannot be read ({error.strerror})") from error
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path}: is no manifest of a run ({error})") from error


def _grown(kept: Mapping[str, Any], identity: Mapping[str, Any]) -> dict[str, Any]:
    """The kept identity with the methods, orders and encoder of another that agrees with it."""
    return {
        **kept,
        "methods": {**kept["methods"], **identity["methods"]},
        "orders": sorted({*kept["orders"], *identity["orders"]}),
        "encoder": kept.get("encoder") or identity.get("encoder"),
    }


def _differences(at: str, old: object, new: object) -> Iterator[str]:
    """Each field that differs, by its dotted path; what a run may grow by is no difference."""
    if at == "orders" or (at == "encoder" and None in (old, new)):
        return
    if isinstance(old, dict) and isinstance(new, dict):
        keys = old.keys() & new.keys() if at == "methods" else old.keys() | new.keys()
        for key in sorted(keys):
            yield from _differences(f"{at}.{key}" if at else key, old.get(key), new.get(key))
    elif old != new:
        yield f"{at}: was {_short(old)}, is {_short(new)}"


def _short(value: object) -> str:
    text = json.dumps(value, sort_keys=True)
    return text if len(text) <= 120 else text[:117] + "..."


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
