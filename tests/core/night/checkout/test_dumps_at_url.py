"""Dumps that somebody puts below `inbox/` at the URL of a store: once in the ledger, whichever machine takes them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from memstate_core.model.errors import StoreUnreachable
from memstate_core.night.checkout.session import Session
from memstate_core.run.store import Store
from memstate_core.storage.purpose import STORE
from memstate_core.storage.storage import Storage, Unreadable, storage
from tests.core.night.checkout.conftest import checkout, drop, names, observations, run
from tests.core.storage.s3 import Faults


def put(scratch: Path, url: str, name: str, *ids: str) -> Storage:
    """Puts a dump at a URL, as a copy command would."""
    store = checkout(scratch / "scratch", "")
    drop(store, "dump", *ids)
    place = storage(url, STORE)
    place.write(name, (store.home.inbox / "dump").read_bytes())
    return place


def pair(tmp_path: Path, url: str) -> tuple[Store, Store]:
    return checkout(tmp_path / "aya", url, 1.0), checkout(tmp_path / "ben", url, 1.0)


def test_the_next_command_takes_them_on_whichever_machine(url: str, tmp_path: Path) -> None:
    aya, ben = pair(tmp_path, url)
    put(tmp_path, url, "inbox/first.jsonl", "one")
    run(aya)
    for name in ("inbox/more.jsonl", "inbox/first.jsonl"):
        put(tmp_path, url, name, name, "one")
    left = ["inbox/.hidden", "inbox/half.jsonl.part", "inbox/other/letter.txt"]
    for name in left:
        place = put(tmp_path, url, name, "never")
    run(ben)
    run(aya)
    for store in (aya, ben):
        assert observations(store) == ["inbox/first.jsonl", "inbox/more.jsonl", "one"]
        assert names(store.home.processed) == ["first.2.jsonl", "first.jsonl", "more.jsonl"]
    assert sorted(place.sizes("inbox")) == left


@pytest.mark.parametrize("point", ["commit", "remove"])
def test_a_kill_loses_and_doubles_nothing(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """Before the state has the dump, and before it is removed; the machine is lost."""
    aya, ben = pair(tmp_path, url)
    run(aya)
    place = put(tmp_path, url, "inbox/dump.jsonl", "one", "two")

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Session if point == "commit" else type(place), point, killed)
        with pytest.raises(KeyboardInterrupt):
            run(aya)
    assert list(place.sizes("inbox")) == ["inbox/dump.jsonl"]
    shutil.rmtree(aya.home.root)
    run(ben)
    assert observations(ben) == ["one", "two"]
    assert place.sizes("inbox") == {}


def test_a_file_of_a_folder_waits_until_it_is_complete(tmp_path: Path) -> None:
    aya = checkout(tmp_path / "aya", f"file://{tmp_path}/url")
    aya = Store(aya.home, aya.settings.model_copy(update={"ingest": aya.settings.ingest.model_copy(
        update={"inbox_settle_seconds": 60.0})}))  # fmt: skip
    put(tmp_path, f"file://{tmp_path}/url", "inbox/dump.jsonl", "one")
    run(aya)
    assert observations(aya) == []
    os.utime(tmp_path / "url/inbox/dump.jsonl", (1e9, 1e9))
    run(aya)
    assert observations(aya) == ["one"]


@pytest.mark.slow
def test_a_body_that_ends_early_is_not_taken(s3_faults: Faults, tmp_path: Path) -> None:
    url = "s3://bucket/a store"
    aya, _ = pair(tmp_path, url)
    run(aya)
    put(tmp_path, url, "inbox/dump.jsonl", "one")
    s3_faults.matching, s3_faults.methods, s3_faults.cut = "inbox/dump", ("GET",), 0.5
    with pytest.raises(StoreUnreachable, match=r"inbox/dump\.jsonl|body"):
        run(aya)
    assert names(aya.home.inbox) == []
    s3_faults.none()
    run(aya)
    assert observations(aya) == ["one"]


def test_what_cannot_be_read_stays_and_stops_nothing(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One that is gone, or not readable, when its turn comes; the others are taken."""
    aya, _ = pair(tmp_path, url)
    for name in ("inbox/bad.jsonl", "inbox/good.jsonl"):
        place = put(tmp_path, url, name, name)
    real = type(place).blocks

    def blocks(self: Storage, name: str) -> Iterator[bytes]:
        if name == "inbox/bad.jsonl":
            raise Unreadable("cannot be read: Permission denied")
        return real(self, name)

    with monkeypatch.context() as patch:
        patch.setattr(type(place), "blocks", blocks)
        run(aya)
    assert observations(aya) == ["inbox/good.jsonl"]
    assert list(place.sizes("inbox")) == ["inbox/bad.jsonl"]
    assert "inbox/bad.jsonl cannot be read: Permission denied; it stays there" in caplog.text
    run(aya)
    assert observations(aya) == ["inbox/bad.jsonl", "inbox/good.jsonl"]


@pytest.mark.usefixtures("s3_faults")
def test_a_name_that_no_file_can_have_is_shortened(tmp_path: Path) -> None:
    url, long = "s3://bucket/a store", "é" * 300
    aya, _ = pair(tmp_path, url)
    for name in (f"{long}.jsonl", f"{long}.2.jsonl", f"a.{long}"):
        place = put(tmp_path, url, f"inbox/{name}", name)
    run(aya)
    assert len(observations(aya)) == 3
    assert place.sizes("inbox") == {}
    assert [name.endswith(".jsonl") for name in names(aya.home.processed)] == [False, True, True]
