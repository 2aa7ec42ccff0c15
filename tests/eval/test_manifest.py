"""A run folder belongs to one identity."""

import json
from pathlib import Path

import pytest

from merit_sql.domain.errors import DataError, IdentityError
from merit_sql.eval.manifest import claim, run_id

IDENTITY = {"budget": 7, "model": {"name": "m", "revision": "1"}, "methods": {"merit": {}}, "orders": [0]}


def test_the_same_identity_may_come_back(tmp_path: Path) -> None:
    claim(tmp_path / "run", IDENTITY)
    claim(tmp_path / "run", dict(reversed(IDENTITY.items())))


def test_another_identity_is_refused_with_each_field_old_and_new(tmp_path: Path) -> None:
    claim(tmp_path / "run", IDENTITY)
    other = {**IDENTITY, "budget": 3, "model": {"name": "m", "revision": "2"}}
    with pytest.raises(IdentityError) as caught:
        claim(tmp_path / "run", other)
    message = str(caught.value)
    assert "budget: was 7, is 3" in message
    assert 'model.revision: was "1", is "2"' in message
    assert "orders" not in message


def test_a_refusal_changes_nothing(tmp_path: Path) -> None:
    claim(tmp_path / "run", IDENTITY)
    before = (tmp_path / "run" / "manifest.json").read_bytes()
    with pytest.raises(IdentityError):
        claim(tmp_path / "run", {**IDENTITY, "budget": 3})
    assert (tmp_path / "run" / "manifest.json").read_bytes() == before


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 1}', '{"format": 2, "identity": {}}'])
def test_a_damaged_manifest_is_an_error_that_names_the_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises((DataError, IdentityError), match=r"manifest\.json"):
        claim(tmp_path, IDENTITY)


def test_streams_share_the_run_id_whatever_ran_beside_them() -> None:
    assert run_id(IDENTITY) == run_id({**IDENTITY, "methods": {"iterative": {}}, "orders": [0, 1]})
    assert run_id(IDENTITY) != run_id({**IDENTITY, "budget": 3})


def test_the_manifest_tells_what_the_run_was(tmp_path: Path) -> None:
    claim(tmp_path, IDENTITY)
    document = json.loads((tmp_path / "manifest.json").read_text())
    assert document["identity"] == IDENTITY
    assert document["run"] == run_id(IDENTITY)
