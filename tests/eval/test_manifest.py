"""A run folder belongs to one identity."""

import json
from pathlib import Path

import pytest

from merit_sql.domain.errors import DataError, IdentityError
from merit_sql.eval.manifest import claim, run_id

IDENTITY = {
    "budget": 7,
    "model": {"name": "m", "revision": "1"},
    "methods": {"merit": {"kept": ["positive"]}},
    "orders": [0],
    "encoder": None,
}


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


def test_a_run_grows_by_methods_orders_and_the_encoder_they_need(tmp_path: Path) -> None:
    claim(tmp_path, IDENTITY)
    encoder = {"id": "e", "revision": "1"}
    claim(tmp_path, {**IDENTITY, "methods": {"iterative": {}}, "orders": [2, 1], "encoder": encoder})
    claim(tmp_path, IDENTITY)
    grown = json.loads((tmp_path / "manifest.json").read_text())["identity"]
    assert grown["methods"] == {"merit": {"kept": ["positive"]}, "iterative": {}}
    assert grown["orders"] == [0, 1, 2]
    assert grown["encoder"] == encoder


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"methods": {"merit": {"kept": []}}}, r'methods\.merit\.kept: was \["positive"\], is \[\]'),
        ({"encoder": {"id": "f", "revision": "1"}}, r'encoder\.id: was "e", is "f"'),
        ({"extra": 1}, "extra: was null, is 1"),
    ],
)
def test_what_grew_may_not_change(tmp_path: Path, change: dict[str, object], said: str) -> None:
    claim(tmp_path, {**IDENTITY, "encoder": {"id": "e", "revision": "1"}})
    with pytest.raises(IdentityError, match=said):
        claim(tmp_path, {**IDENTITY, **change})


def test_the_manifest_keeps_what_the_protocol_was_resolved_to(tmp_path: Path) -> None:
    claim(tmp_path, IDENTITY, {"name": "mini"})
    assert json.loads((tmp_path / "manifest.json").read_text())["protocol"] == {"name": "mini"}
