"""The folder of a replica follows what is published, over a server of the protocol of S3 that fails in every way."""

from __future__ import annotations

import shutil
import threading
import time
from pathlib import Path
from typing import Any

import obstore
import pytest
from obstore.store import from_url

from memstate_core.model.errors import MemstateError, PublicationRefused, SourceUnreachable
from memstate_core.night.publication.upload import publish_to
from memstate_core.run.store import Store
from memstate_core.serve.replica import fetched_snapshots
from memstate_core.serve.replica import mirror as mirroring
from memstate_core.serve.replica.fetched_snapshots import is_damaged
from memstate_core.serve.replica.mirror import Mirror
from memstate_core.state import snapshots
from memstate_core.state.current import current_number, move_current
from memstate_core.state.erasure_mark import erasure_mark
from memstate_core.state.files import file_digest
from memstate_core.state.snapshots import MANIFEST
from memstate_core.storage.storage import object_name
from tests.core.night.publication import conftest as publication
from tests.core.night.publication.conftest import COMMON, new_store, snapshot
from tests.core.storage.s3 import SECRET, Faults, use_endpoint

URL = "s3://bucket/store"
MANY = 1 << 20


@pytest.fixture
def store(tmp_path: Path, s3_faults: Faults) -> Store:  # noqa: ARG001, the bucket
    made = new_store(tmp_path / "home", writer="https://writer.example")
    snapshot(made, 1, "one")
    publish_to(made, URL)
    return made


@pytest.fixture
def mirror(tmp_path: Path, store: Store) -> Mirror:  # noqa: ARG001, what is published
    made = Mirror(tmp_path / "replica", URL, MANY)
    assert made.open() == 1
    assert made.follow("s0")
    return made


def text(mirror: Mirror, shard: str = "s0") -> str:
    """What the mirror serves, whose every digest is compared."""
    number = current_number(mirror.home, shard)
    assert number is not None
    folder = mirror.home.snapshots(shard) / str(number)
    assert not is_damaged(folder)
    return (folder / "graph").read_text()


def whole(mirror: Mirror) -> str:
    """Every file that the mirror has."""
    return "\n".join(path.read_text() for path in mirror.home.root.rglob("*") if path.is_file())


def publish_second(store: Store) -> None:
    snapshot(store, 2, "two")
    publish_to(store, URL)


def cached(mirror: Mirror) -> set[str]:
    root = mirror.home.root / "cache"
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def test_a_replica_follows_what_is_published(store: Store, mirror: Mirror, s3_faults: Faults) -> None:
    assert text(mirror) == "one of s0"
    assert not mirror.follow("s0")
    publish_second(store)
    s3_faults.seen.clear()
    assert mirror.follow("s0")
    assert text(mirror) == "two of s0"
    assert len(s3_faults.seen) == 3  # CURRENT, the manifest, and the one file that differs
    written = [each.home.snapshots("s0") / "2" / MANIFEST for each in (store, mirror)]
    assert abs(written[0].stat().st_mtime - written[1].stat().st_mtime) < 1e-3
    assert mirror.note is not None
    assert mirror.note.writer == "https://writer.example"
    assert not any(SECRET in path.read_text() for path in mirror.home.root.rglob("*") if path.is_file())


@pytest.mark.parametrize("status", [403, 404, 500, 503])
@pytest.mark.parametrize("matching", ["CURRENT", "objects/"])
def test_a_failing_storage_leaves_the_old_snapshot(
    store: Store, mirror: Mirror, s3_faults: Faults, status: int, matching: str
) -> None:
    publish_second(store)
    s3_faults.status, s3_faults.matching = status, matching
    with pytest.raises(SourceUnreachable) as caught:
        mirror.follow("s0")
    assert SECRET not in caught.value.message
    assert text(mirror) == "one of s0"
    s3_faults.none()
    assert mirror.follow("s0")
    assert text(mirror) == "two of s0"


def test_a_storage_that_is_down_leaves_the_old_snapshot(
    mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_endpoint("http://127.0.0.1:9", monkeypatch)
    with pytest.raises(SourceUnreachable, match="asks again"):
        mirror.follow("s0")
    assert text(mirror) == "one of s0"
    assert Mirror(tmp_path / "replica", URL, MANY).open() == 1  # a server that starts meanwhile serves it
    with pytest.raises(SourceUnreachable):
        Mirror(tmp_path / "another", URL, MANY).open()


def test_a_partial_body_is_not_taken(store: Store, mirror: Mirror, s3_faults: Faults) -> None:
    publish_second(store)
    s3_faults.cut, s3_faults.matching = 0.5, "objects/"
    with pytest.raises(SourceUnreachable):
        mirror.follow("s0")
    assert text(mirror) == "one of s0"
    s3_faults.none()
    mirror.follow("s0")
    assert text(mirror) == "two of s0"


def test_a_snapshot_of_another_version_leaves_the_old_one(
    store: Store, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_second(store)
    monkeypatch.setattr(fetched_snapshots, "SCHEMA_VERSION", fetched_snapshots.SCHEMA_VERSION - 1)
    with pytest.raises(SourceUnreachable, match="s0/2 has schema"):
        mirror.follow("s0")
    assert text(mirror) == "one of s0"


def test_a_new_machine_of_the_version_before_takes_the_snapshot_before(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer = fetched_snapshots.SCHEMA_VERSION + 1
    for module in (publication, snapshots):
        monkeypatch.setattr(module, "SCHEMA_VERSION", newer)
    publish_second(store)
    late = Mirror(tmp_path / "late", URL, MANY)
    late.open()
    with pytest.raises(SourceUnreachable, match="s0/2 has schema"):
        late.follow("s0")
    assert text(late) == "one of s0"
    with pytest.raises(SourceUnreachable, match="s0/2 has schema"):
        late.follow("s0")
    monkeypatch.setattr(fetched_snapshots, "SCHEMA_VERSION", newer)
    assert late.follow("s0")
    assert text(late) == "two of s0"


def test_whether_writes_are_taken_is_known_before_current_moves(
    store: Store, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = store.settings.publish.model_copy(update={"accept_writes": True})
    publish_second(Store(store.home, store.settings.model_copy(update={"publish": section})))
    known = []

    def moved(*given: Any) -> None:
        known.append(mirror.note is not None and mirror.note.accepts_writes)
        move_current(*given)

    monkeypatch.setattr(mirroring, "move_current", moved)
    assert mirror.follow("s0")
    assert (known, text(mirror)) == ([True], "two of s0")
    assert not mirror.follow("s0")


def test_a_half_uploaded_snapshot_is_not_taken(store: Store, mirror: Mirror) -> None:
    publish_second(store)
    name = object_name(file_digest(store.home.snapshots("s0") / "2" / "graph"))
    place = f"shards/s0/{name}"
    bucket = from_url(URL)
    obstore.put(bucket, place, b"ten of s0")
    with pytest.raises(SourceUnreachable, match="has SHA-256"):
        mirror.follow("s0")
    obstore.delete(bucket, place)
    with pytest.raises(SourceUnreachable, match="is missing"):
        mirror.follow("s0")
    assert text(mirror) == "one of s0"
    publish_to(store, URL)
    mirror.follow("s0")
    assert text(mirror) == "two of s0"


def test_a_current_that_is_gone_or_garbage_changes_nothing(mirror: Mirror) -> None:
    bucket = from_url(URL)
    obstore.put(bucket, "shards/s0/CURRENT", b"2\n")
    with pytest.raises(PublicationRefused, match="CURRENT"):
        mirror.follow("s0")
    obstore.delete(bucket, "shards/s0/CURRENT")
    with pytest.raises(SourceUnreachable, match="CURRENT is missing"):
        mirror.follow("s0")
    assert text(mirror) == "one of s0"


def test_what_was_erased_leaves_the_replica(store: Store, mirror: Mirror) -> None:
    mark = erasure_mark(mirror.home)
    erase(store)
    publish_to(store, URL)
    assert mirror.follow("s0")
    assert erasure_mark(mirror.home) != mark
    assert not any("one of s0" in path.read_text() for path in mirror.home.root.rglob("*") if path.is_file())
    assert text(mirror) == "two of s0"


def test_what_was_erased_leaves_a_replica_that_cannot_fetch_what_follows(
    store: Store, mirror: Mirror, s3_faults: Faults
) -> None:
    erase(store)
    publish_to(store, URL)
    s3_faults.status, s3_faults.matching = 403, "objects/"
    with pytest.raises(SourceUnreachable):
        mirror.follow("s0")
    assert current_number(mirror.home, "s0") is None
    assert not any("one of s0" in path.read_text() for path in mirror.home.root.rglob("*") if path.is_file())
    s3_faults.none()
    mirror.follow("s0")
    assert text(mirror) == "two of s0"


def test_what_was_erased_leaves_the_cache_of_a_shard_that_is_not_open(store: Store, mirror: Mirror) -> None:
    mirror.release()
    assert not mirror.has("s0")
    assert "one of s0" in whole(mirror)
    erase(store)
    publish_to(store, URL)
    mirror.learn(mirror.look())
    assert "one of s0" not in whole(mirror)
    assert mirror.follow("s0")
    assert text(mirror) == "two of s0"


def test_a_shard_that_another_process_has_open_stays(tmp_path: Path, mirror: Mirror, s3_faults: Faults) -> None:
    other = Mirror(tmp_path / "replica", URL, MANY)
    other.held.hold("s0")
    mirror.release()
    assert text(mirror) == "one of s0"
    other.held.let_go("s0")
    mirror.release()
    assert not mirror.has("s0")
    s3_faults.seen.clear()
    assert mirror.follow("s0")
    assert len(s3_faults.seen) == 1  # CURRENT; the objects are in the cache


def test_a_corrupted_cache_is_fetched_again(mirror: Mirror, s3_faults: Faults) -> None:
    graph = mirror.home.snapshots("s0") / "1" / "graph"
    graph.write_text("ten of s0")  # the object is the same file
    Mirror(mirror.home.root.parent, URL, MANY).open()
    assert not graph.exists()
    s3_faults.seen.clear()
    assert mirror.follow("s0")
    assert text(mirror) == "one of s0"
    assert len(s3_faults.seen) == 2

    shutil.rmtree(mirror.home.root / "cache")
    (graph.parent / "empty").unlink()
    assert mirror.follow("s0")
    assert text(mirror) == "one of s0"


def test_the_cache_is_bounded_and_keeps_what_is_served(tmp_path: Path, store: Store) -> None:
    bounded = Mirror(tmp_path / "bounded", URL, 0)
    kept = Mirror(tmp_path / "kept", URL, MANY)
    for number in range(2, 6):
        snapshot(store, number, f"number {number}")
        publish_to(store, URL)
        for each in (bounded, kept):
            each.open()
            each.follow("s0")
            assert text(each) == f"number {number} of s0"
    assert len(cached(bounded)) == 4  # two graphs, and what they share
    assert len(cached(kept)) == 10
    one = Mirror(tmp_path / "kept", URL, 1000)
    snapshot(store, 6, "number 6")
    publish_to(store, URL)
    one.follow("s0")
    assert 4 < len(cached(one)) < 10


def test_processes_share_the_folder(tmp_path: Path, store: Store, mirror: Mirror, s3_faults: Faults) -> None:
    publish_second(store)
    s3_faults.seen.clear()
    others = [Mirror(tmp_path / "replica", URL, MANY) for _ in range(4)]
    done: list[bool | MemstateError] = []

    def follow(each: Mirror) -> None:
        try:
            done.append(each.follow("s0"))
        except MemstateError as error:
            done.append(error)

    threads = [threading.Thread(target=follow, args=(each,)) for each in others]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(repr, done)) == ["False", "False", "False", "True"]
    assert sum("objects/" in each for each in s3_faults.seen) == 2
    assert text(mirror) == "two of s0"


@pytest.mark.slow
def test_a_slow_storage_delays_nobody_who_reads(store: Store, mirror: Mirror, s3_faults: Faults) -> None:
    publish_second(store)
    s3_faults.seconds, s3_faults.matching = 0.4, "objects/"
    thread = threading.Thread(target=mirror.follow, args=("s0",))
    thread.start()
    begun = time.monotonic()
    assert text(mirror) == "one of s0"
    assert time.monotonic() - begun < 0.3
    thread.join()
    assert text(mirror) == "two of s0"


@pytest.mark.usefixtures("s3_faults")
def test_shards_are_those_of_the_source(tmp_path: Path) -> None:
    store = new_store(tmp_path / "wide", shards=3)
    snapshot(store, 1, "one", "s1")
    publish_to(store, URL)
    mirror = Mirror(tmp_path / "replica", URL, MANY)
    assert mirror.open() == 3
    assert [mirror.follow(shard) for shard in store.shards] == [False, True, False]
    assert text(mirror, "s1") == "one of s1"
    assert (mirror.home.snapshots("s1") / "1" / "index" / "words").read_bytes() == COMMON


def erase(store: Store) -> None:
    """What an erasure leaves: a new snapshot, no older one, and a certificate."""
    snapshot(store, 2, "two")
    shutil.rmtree(store.home.snapshots("s0") / "1")
    store.home.erasures.mkdir()
    (store.home.erasures / "1.json").write_text("{}")
