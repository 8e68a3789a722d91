"""What is sent to a backup or a store at a URL: each content once, and what changes meanwhile as it is found."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path

import pytest

from memstate_core.model.errors import LedgerDamaged
from memstate_core.night.backup.sources import LEDGER, Source
from memstate_core.night.backup.transfer import Transferred, transfer, with_digests
from memstate_core.state.home import Home


class Far:
    """The other side: the contents that it has, and what was sent to it."""

    def __init__(self, *held: bytes) -> None:
        self.held = {hashlib.sha256(each).hexdigest() for each in held}
        self.sent: list[str] = []
        self._lock = threading.Lock()

    def send(self, source: Path, expected: str | None) -> tuple[str, int]:
        content = source.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        if expected in (None, digest):
            with self._lock:
                self.held.add(digest)
                self.sent.append(source.name)
        return digest, len(content)


def moved(home: Home, far: Far, sources: list[Source]) -> Transferred:
    planned = list(with_digests(home, sources, {}))
    had = set(far.held)
    return transfer(home, planned, lambda file: file.sha256 in had, far.send, "send")


def written(home: Home, **contents: bytes) -> list[Source]:
    for name, content in contents.items():
        (home.root / name).write_bytes(content)
    return [Source(Path(name), home.root / name) for name in contents]


def test_each_content_is_sent_once_and_every_file_is_listed(tmp_path: Path) -> None:
    home, far = Home(tmp_path), Far(b"known")
    done = moved(home, far, written(home, a=b"same", b=b"known", c=b"same", d=b"other"))
    assert [file.path for file in done.files] == ["a", "b", "c", "d"]
    assert sorted(far.sent) in (["a", "d"], ["c", "d"])
    assert (len(done.sent), done.sent_bytes) == (2, 9)
    assert {file.sha256 for file in done.files} == far.held


def test_a_file_without_a_record_is_taken_as_it_is_found(tmp_path: Path) -> None:
    """Files that change after they were planned are listed with a content that they had and that is there."""
    home, far = Home(tmp_path), Far()
    sources = written(home, alone=b"short", a=b"same", b=b"same", gone=b"brief")
    planned = list(with_digests(home, sources, {}))
    (tmp_path / "alone").write_bytes(b"longer now")
    (tmp_path / "b").write_bytes(b"same and more")
    (tmp_path / "gone").unlink()
    done = transfer(home, planned, lambda _: False, far.send, "send")
    there = {file.path: (file.size, file.sha256) for file in done.files}
    expected = {"alone": b"longer now", "a": b"same", "b": b"same"}
    assert there == {name: (len(each), hashlib.sha256(each).hexdigest()) for name, each in expected.items()}
    assert {digest for _, digest in there.values()} <= far.held


@pytest.mark.parametrize("damage", ["changed", "removed"])
def test_a_file_of_the_ledger_that_changed_is_damage(tmp_path: Path, damage: str) -> None:
    home, far = Home(tmp_path), Far()
    file = home.ledger / "part"
    file.parent.mkdir()
    file.write_bytes(b"as written")
    planned = list(with_digests(home, [Source(Path("ledger/part"), file, owner=LEDGER)], {}))
    if damage == "changed":
        file.write_bytes(b"otherwise")
    else:
        file.unlink()
    with pytest.raises(LedgerDamaged, match="part"):
        transfer(home, planned, lambda _: False, far.send, "send")
    assert far.sent == []
