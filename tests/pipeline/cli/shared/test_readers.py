"""Reading commands while nights replace the snapshots that they read."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from memstate_core.model.errors import SnapshotAbsent, SnapshotDamaged, SnapshotRemoved, TopicNotFound
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.run.store import Store, open_store
from memstate_core.state.current import current_number, move_current
from memstate_core.state.snapshots import MANIFEST
from memstate_pipeline.cli.shared.readers import open_readers, open_sound_readers

SHARD, REPLACED = "s0", 400


@pytest.fixture
def store(tmp_path: Path, small_home: Path) -> Store:
    shutil.copytree(small_home, home := tmp_path / "home")
    return open_store(home)


def replace_snapshot(store: Store) -> None:
    """What the end of a night does to the snapshots of a store that keeps one."""
    number = current_number(store.home, SHARD)
    assert number is not None
    folder = store.home.snapshots(SHARD)
    made = folder / "being-made"
    shutil.copytree(folder / str(number), made, copy_function=os.link)
    manifest = json.loads((made / MANIFEST).read_bytes()) | {"number": number + 1}
    (made / MANIFEST).unlink()
    (made / MANIFEST).write_text(json.dumps(manifest))
    made.rename(folder / str(number + 1))
    move_current(store.home, SHARD, number + 1)
    shutil.rmtree(folder / str(number))


def nights(store: Store) -> threading.Thread:
    """Nights that replace the served snapshot one after another."""

    def replace() -> None:
        for _ in range(REPLACED):
            replace_snapshot(store)
            time.sleep(0.001)

    started = threading.Thread(target=replace)
    started.start()
    return started


@pytest.mark.slow
def test_current_never_names_an_older_snapshot_while_it_is_replaced(store: Store) -> None:
    numbers, made = [0], nights(store)
    while made.is_alive() or len(numbers) == 1:
        numbers.append(current_number(store.home, SHARD) or 0)
    assert numbers == sorted(numbers)


@pytest.mark.slow
@pytest.mark.parametrize("opened", [open_readers, lambda *given: open_sound_readers(*given)[0]])
def test_what_is_served_is_opened_while_it_is_replaced(
    store: Store, opened: Callable[[Store, ExitStack], list[SnapshotReader]]
) -> None:
    """A reader that nights always get ahead of succeeds at the latest when the last one has ended."""
    numbers, made = [0], nights(store)
    while made.is_alive() or len(numbers) == 1:
        with ExitStack() as stack:
            numbers += [reader.snapshot.manifest.number for reader in opened(store, stack)]
    assert numbers == sorted(numbers)


@pytest.mark.parametrize(
    "read",
    [
        lambda reader: reader.all_evidence().collect(),
        lambda reader: reader.topics("user:ines"),
        lambda reader: reader.evidence("user:ines"),
        lambda reader: reader.facts("user:ines"),
        lambda reader: reader.notes.collect(),
        lambda reader: reader.graph,
    ],
)
def test_a_read_says_that_its_snapshot_was_removed(store: Store, read: Callable[[SnapshotReader], object]) -> None:
    with ExitStack() as stack:
        [reader] = open_readers(store, stack)
        name = reader.name
        replace_snapshot(store)
        with pytest.raises(SnapshotRemoved, match=f"{name} was removed"), stack:
            read(reader)


def test_a_read_says_that_its_shard_left_this_machine(store: Store) -> None:
    with ExitStack() as stack:
        [reader] = open_readers(store, stack)
        store.home.checkout.write_text(json.dumps({"absent": [SHARD]}))
        (reader.snapshot.path / "evidence.parquet").unlink()
        with pytest.raises(SnapshotAbsent), stack:
            reader.all_evidence().collect()


@pytest.mark.parametrize(
    "error", [TopicNotFound("topic", "s0/2"), SnapshotDamaged("s0/1", ["bad"]), KeyboardInterrupt()]
)
def test_other_errors_keep_their_cause(store: Store, error: BaseException) -> None:
    with ExitStack() as stack:
        open_readers(store, stack)
        with pytest.raises(type(error)), stack:
            raise error


def test_a_question_is_refused_for_what_it_asks_though_its_snapshot_was_removed(store: Store) -> None:
    with ExitStack() as stack:
        open_readers(store, stack)
        replace_snapshot(store)
        with pytest.raises(TopicNotFound), stack:
            raise TopicNotFound("topic-1", "s0/2")


def test_a_snapshot_that_is_damaged_and_not_replaced_is_reported(store: Store) -> None:
    [folder] = [reader.snapshot.path for reader in open_readers(store, ExitStack())]
    (folder / "evidence.parquet").write_bytes(b"none")
    for opened in (open_readers, open_sound_readers):
        with ExitStack() as stack, pytest.raises(SnapshotDamaged, match=r"is damaged: evidence\.parquet"):
            opened(store, stack)
