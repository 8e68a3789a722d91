"""Publishing to a folder and to a real server of the protocol of S3: each object once, CURRENT last, nothing lost."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from memstate_core.model.errors import (
    ConditionalPutsIgnored,
    PublicationConflict,
    PublicationRefused,
    PublicationUnreachable,
    SnapshotDamaged,
)
from memstate_core.night.publication import upload as publishing
from memstate_core.night.publication.note import last_publication
from memstate_core.night.publication.upload import publish_to, unpublished_shards
from memstate_core.run.store import Store
from memstate_core.serve.auth import key_file
from memstate_core.storage.cloud import CloudStorage
from memstate_core.storage.concurrent_requests import AT_ONCE
from memstate_core.storage.folder import FolderStorage
from memstate_core.storage.purpose import PUBLICATION
from memstate_core.storage.storage import Storage, storage
from tests.core.night.publication.conftest import There, new_store, snapshot, there
from tests.core.serve.auth.test_keys import made
from tests.core.storage.s3 import SECRET, Faults, use_endpoint

STEPS = ("read", "replace", "sizes", "add", "remove")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = new_store(tmp_path / "home")
    snapshot(made, 1, "one")
    return made


def test_each_object_is_sent_once_and_current_moves(url: str, store: Store) -> None:
    first = publish_to(store, url)
    assert [(each.snapshot, each.sent, each.moved) for each in first] == [("s0/1", 4, True)]
    again = publish_to(store, url)
    assert [(each.sent, each.removed, each.moved) for each in again] == [(0, 0, False)]
    assert unpublished_shards(store, url) == []
    snapshot(store, 2, "two")
    assert unpublished_shards(store, url) == ["s0"]
    assert [(each.snapshot, each.sent) for each in publish_to(store, url)] == [("s0/2", 2)]
    assert (there(url).numbers, there(url).graphs) == ([2, 1], ["two of s0", "one of s0"])
    snapshot(store, 3, "three")
    assert publish_to(store, url)[0].removed == 2
    assert there(url) == There([3, 2], ["three of s0", "two of s0"], set())


def test_shards_move_by_themselves(url: str, tmp_path: Path) -> None:
    store = new_store(tmp_path / "home", shards=2)
    for shard in store.shards:
        snapshot(store, 1, "one", shard)
    assert [each.shard for each in publish_to(store, url, ["s1"])] == ["s1"]
    assert there(url, "s0").numbers == []
    publish_to(store, url)
    assert there(url, "s0").graphs == ["one of s0"]
    with pytest.raises(PublicationRefused, match="a store of 2 shards, this one has 1"):
        publish_to(new_store(tmp_path / "other"), url)


def test_what_the_store_no_longer_keeps_is_removed(url: str, store: Store) -> None:
    publish_to(store, url)
    snapshot(store, 2, "two")
    shutil.rmtree(store.home.snapshots("s0") / "1")  # as an erasure does
    publish_to(store, url)
    assert there(url) == There([2], ["two of s0"], set())


@pytest.mark.parametrize("step", range(11))
def test_a_publisher_that_dies_leaves_a_whole_snapshot_and_the_next_completes(
    url: str, store: Store, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_to(store, url)
    snapshot(store, 2, "two")
    with monkeypatch.context() as patch, suppress(Killed):
        kill_after(patch, step, url)
        publish_to(store, url)
        assert step >= 9  # it was done before
    assert there(url).numbers in ([1], [2, 1])
    publish_to(store, url)
    assert there(url) == There([2, 1], ["two of s0", "one of s0"], set())


def test_of_two_publishers_one_moves_current(url: str, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    publish_to(store, url)
    snapshot(store, 2, "two")
    other = new_store(store.home.root.with_name("copy"))
    shutil.copytree(store.home.root, other.home.root)
    snapshot(other, 3, "three")
    real = publishing._Publisher._move

    def late(self: Any) -> bool:
        monkeypatch.setattr(publishing._Publisher, "_move", real)
        publish_to(other, url)
        return real(self)

    monkeypatch.setattr(publishing._Publisher, "_move", late)
    with pytest.raises(PublicationConflict, match="changed by another publisher"):
        publish_to(store, url)
    assert there(url).graphs[0] == "three of s0"
    with pytest.raises(PublicationConflict, match="s0/3 is not from here, where s0/2 is served"):
        publish_to(store, url)
    snapshot(store, 4, "four")
    publish_to(store, url)
    assert there(url) == There([4, 1], ["four of s0", "one of s0"], set())


def test_a_store_that_went_back_takes_over_only_on_request(url: str, store: Store, tmp_path: Path) -> None:
    snapshot(store, 2, "two")
    publish_to(store, url)
    restored = new_store(tmp_path / "restored")
    snapshot(restored, 1, "one")
    with pytest.raises(PublicationConflict, match=r"memstate publish --take-over"):
        publish_to(restored, url)
    publish_to(restored, url, take_over=True)
    assert there(url).graphs == ["one of s0"]


def test_other_places_are_refused(url: str, store: Store, tmp_path: Path) -> None:
    if url.startswith("file"):
        (tmp_path / "published").mkdir()
    storage(url, PUBLICATION).write("letters.txt", b"")
    with pytest.raises(PublicationRefused, match=r"it holds other files, such as letters\.txt"):
        publish_to(store, url)
    with pytest.raises(PublicationRefused, match="it is part of the home"):
        publish_to(store, str(store.home.root / "published"))


def test_damage_at_home_is_not_published(url: str, store: Store) -> None:
    publish_to(store, url)
    (snapshot(store, 2, "two") / "graph").write_text("ten of s0")
    with pytest.raises(SnapshotDamaged, match="s0/2"):
        publish_to(store, url)
    assert there(url).graphs == ["one of s0"]


def test_damage_at_the_url_is_sent_again(url: str, store: Store) -> None:
    from memstate_core.state.files import file_digest
    from memstate_core.storage.published import shard_storage
    from memstate_core.storage.storage import object_name

    publish_to(store, url)
    name = object_name(file_digest(store.home.snapshots("s0") / "1" / "graph"))
    shard_storage(url, "s0", PUBLICATION).write(name, b"bytes")
    assert publish_to(store, url)[0].sent == 1
    shard_storage(url, "s0", PUBLICATION).write(name, b"one of s1")  # of the same size
    assert publish_to(store, url)[0].sent == 0
    assert publish_to(store, url, resend=True)[0].sent == 4
    assert there(url).graphs == ["one of s0"]


@pytest.mark.parametrize(
    ("matching", "methods"),
    [
        ("store.json", ("GET",)),
        ("CURRENT", ("GET",)),
        ("list-type", ("GET",)),
        ("objects/", ("PUT",)),
        ("CURRENT", ("PUT",)),
        ("delete", ("POST",)),
    ],
)
def test_a_refusing_storage_is_an_error_and_the_next_run_completes(
    s3_faults: Faults, store: Store, matching: str, methods: tuple[str, ...]
) -> None:
    url = "s3://bucket/store"
    publish_to(store, url)
    snapshot(store, 2, "two")
    publish_to(store, url)
    snapshot(store, 3, "three")
    s3_faults.matching, s3_faults.methods, s3_faults.status = matching, methods, 403
    with pytest.raises(PublicationUnreachable, match="memstate publish") as caught:
        publish_to(store, url)
    note = last_publication(store.home)
    assert note is not None
    assert note.shards["s0"].snapshot == "s0/2"
    assert note.problems == {"s0": caught.value.message}
    s3_faults.none()
    publish_to(store, url)
    note = last_publication(store.home)
    assert note is not None
    assert note.problems == {}
    assert there(url) == There([3, 2], ["three of s0", "two of s0"], set())


REQUESTS = [("objects/", "PUT"), ("list-type", "GET")]
REQUESTS += [(name, method) for name in ("store.json", "CURRENT", "keys.json") for method in ("GET", "PUT")]


@pytest.mark.slow
@pytest.mark.parametrize("status", [500, 503])
@pytest.mark.parametrize(("matching", "method"), REQUESTS)
def test_a_failing_storage_is_an_error_after_some_attempts(
    s3_faults: Faults, store: Store, matching: str, method: str, status: int
) -> None:
    key_file.add(store.home.keys, made("reader").key)
    s3_faults.matching, s3_faults.methods, s3_faults.status = matching, (method,), status
    with pytest.raises(PublicationUnreachable) as caught:
        publish_to(store, "s3://bucket/store")
    assert SECRET not in caught.value.message
    asked = Counter(each for each in s3_faults.seen if each.startswith(method) and re.search(matching, each))
    assert set(asked.values()) == {4}
    assert len(asked) <= AT_ONCE
    s3_faults.none()
    publish_to(store, "s3://bucket/store")
    assert there("s3://bucket/store").numbers == [1]
    assert storage("s3://bucket/store", PUBLICATION).read("keys.json") is not None


def test_nothing_is_published_where_conditions_of_puts_are_ignored(s3_faults: Faults, store: Store) -> None:
    url = "s3://bucket/a store"
    s3_faults.left_out = ("if-match", "if-none-match")
    with pytest.raises(ConditionalPutsIgnored):
        publish_to(store, url)
    assert storage(url, PUBLICATION).listed("") == {}
    s3_faults.none()
    publish_to(store, url)
    s3_faults.seen.clear()
    snapshot(store, 2, "two")
    publish_to(store, url)
    assert [each for each in s3_faults.seen if "probe-" in each] == []


def test_what_a_listing_does_not_show_is_sent_again(s3_faults: Faults, store: Store) -> None:
    url = "s3://bucket/a store"
    publish_to(store, url)
    snapshot(store, 2, "two")
    s3_faults.hidden = "objects/"
    assert publish_to(store, url)[0].moved
    s3_faults.none()
    assert there(url) == There([2, 1], ["two of s0", "one of s0"], set())


@pytest.mark.slow
def test_a_storage_that_is_down_is_an_error(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    use_endpoint("http://127.0.0.1:9", monkeypatch)
    with pytest.raises(PublicationUnreachable, match="HTTP error"):
        publish_to(store, "s3://bucket/store")
    note = last_publication(store.home)
    assert note is not None
    assert set(note.problems) == {"s0"}
    assert not any(SECRET in path.read_text() for path in store.home.root.rglob("*") if path.is_file())


class Killed(BaseException):
    """The process is gone: no handler of the publisher runs."""


def kill_after(patch: pytest.MonkeyPatch, steps: int, url: str) -> None:
    """Kills the publisher before the step after so many of its storage."""
    kind: type[Storage] = FolderStorage if url.startswith("file") else CloudStorage
    left = [steps]

    def counted(name: str) -> Any:
        real = getattr(kind, name)

        def call(*given: Any) -> Any:
            if left[0] == 0:
                raise Killed
            left[0] -= 1
            return real(*given)

        return call

    for name in STEPS:
        patch.setattr(kind, name, counted(name))
