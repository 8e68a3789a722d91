"""A store at a URL and its checkouts: each input once, nothing lost by any failure, one writer, no garbage."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from memstate_core.model.errors import (
    LeaseLost,
    RemoteStoreDamaged,
    StoreLocked,
    StoreUnreachable,
    StoreUrlRefused,
)
from memstate_core.night.checkout.note import read_checkout
from memstate_core.night.checkout.pull import pull
from memstate_core.night.checkout.send import named
from memstate_core.night.publication.upload import publish_to
from memstate_core.storage.head import HEAD, read_head
from memstate_core.storage.lease import Lease
from memstate_core.storage.purpose import STORE
from memstate_core.storage.storage import storage
from tests.core.night.backup.conftest import flip
from tests.core.night.checkout.conftest import (
    checkout,
    command,
    drop,
    names,
    observations,
    pair,
    run,
    run_when_free,
    take_inbox,
    unnamed,
)
from tests.core.storage.s3 import Faults

URL = "s3://bucket/a store"


def test_each_input_is_taken_once_whichever_machine_has_it(url: str, tmp_path: Path) -> None:
    aya, ben = pair(tmp_path, url)
    drop(aya, "dump.jsonl", "one", "two")
    drop(ben, "dump.jsonl", "three")
    run(aya)
    run(ben)
    drop(aya, "more.jsonl", "four")
    run(aya)
    pull(ben)
    for store in (aya, ben):
        assert observations(store) == ["four", "one", "three", "two"]
        assert names(store.home.processed) == ["dump.2.jsonl", "dump.jsonl", "more.jsonl"]
        assert names(store.home.inbox) == []
        assert store.ledger.chain.damage() == []
        assert not store.home.discarded.exists()
    assert unnamed(ben, url) == set()


def test_settings_keys_and_what_the_user_put_into_folders_stay_here(url: str, tmp_path: Path) -> None:
    aya, ben = pair(tmp_path, url)
    drop(aya, "dump.jsonl", "one")
    kept = ["memstate.toml", "keys.json", "inbox/mine/letter.txt", "recall/2026-01-01.jsonl", "inbox/.hidden"]
    for name in kept:
        (aya.home.root / name).parent.mkdir(exist_ok=True, parents=True)
        (aya.home.root / name).write_text("mine")
    run(aya)
    run(ben)
    run(aya)
    assert [name for name in kept if not (aya.home.root / name).is_file()] == []
    assert [name for name in kept if (ben.home.root / name).exists()] == []


def test_a_machine_that_dies_leaves_its_input_to_the_others(url: str, tmp_path: Path) -> None:
    """What waited when its command began is at the URL before any of it is read."""
    aya, ben = pair(tmp_path, url, 1.0)
    drop(aya, "dump.jsonl", "one")
    run(aya)
    drop(aya, "more.jsonl", "two")
    with pytest.raises(KeyboardInterrupt), command(aya):
        raise KeyboardInterrupt
    shutil.rmtree(aya.home.root)
    run(ben)
    assert observations(ben) == ["one", "two"]


@pytest.mark.slow
def test_a_paused_writer_is_refused_and_its_input_is_read_again(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Lease, "_renew", lambda _: None)
    aya, ben = pair(tmp_path, url, 1.0)
    run(aya)
    drop(aya, "first.jsonl", "one")
    drop(ben, "second.jsonl", "two")

    def suspended() -> None:
        with command(aya):
            drop(aya, "late.jsonl", "three")
            take_inbox(aya)
            assert observations(aya) == ["one", "three"]
            run_when_free(ben)

    with pytest.raises(LeaseLost, match="run the same command again") as caught:
        suspended()
    assert (caught.value.facts["fence"], caught.value.exit_code) == (2, 3)
    assert observations(ben) == ["one", "two"]
    with caplog.at_level("WARNING"):
        run(aya)
    said = [record.getMessage() for record in caplog.records]
    assert [each for each in said if f"kept in {aya.home.discarded}/1" in each]
    assert [each for each in said if "waits again: inbox/processed/late.jsonl" in each]
    assert any(aya.home.discarded.rglob("*.parquet"))
    pull(ben)
    assert observations(aya) == observations(ben) == ["one", "three", "two"]
    assert aya.ledger.chain.damage() == ben.ledger.chain.damage() == []
    assert unnamed(aya, url) == set()


@pytest.mark.slow
def test_nothing_is_published_for_replicas_that_the_store_does_not_get(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By any command, such as a rollback, which publishes before it ends."""
    monkeypatch.setattr(Lease, "_renew", lambda _: None)
    aya, ben = pair(tmp_path, url, 1.0)
    run(aya)

    def suspended() -> None:
        with command(aya):
            drop(aya, "late.jsonl", "three")
            take_inbox(aya)
            run_when_free(ben)
            with pytest.raises(LeaseLost):
                publish_to(aya, str(tmp_path / "replicas"))

    with pytest.raises(LeaseLost):
        suspended()
    assert not (tmp_path / "replicas").exists()


def test_a_second_machine_waits_its_turn(url: str, tmp_path: Path) -> None:
    aya, ben = pair(tmp_path, url)
    drop(ben, "dump.jsonl", "one")
    with command(aya), pytest.raises(StoreLocked, match=r"a test of .*aya on .* whose lease number 1 expires in"):
        run(ben)
    assert names(ben.home.inbox) == ["dump.jsonl"]
    run(ben)
    assert observations(ben) == ["one"]


def test_a_command_that_fails_keeps_what_it_imported(url: str, tmp_path: Path) -> None:
    aya, ben = pair(tmp_path, url)
    drop(aya, "dump.jsonl", "one")
    with pytest.raises(ValueError, match="a gate"), command(aya):
        raise ValueError("a gate")
    pull(ben)
    assert observations(ben) == ["one"]


def test_what_is_the_same_is_neither_sent_nor_fetched(s3_faults: Faults, tmp_path: Path) -> None:
    aya, ben = pair(tmp_path, URL)
    drop(aya, "dump.jsonl", "one")
    run(aya)
    run(ben)
    s3_faults.seen.clear()
    run(ben)
    assert [each for each in s3_faults.seen if "data/" in each and not each.startswith("GET /bucket?")] == []
    drop(ben, "more.jsonl", "two")
    run(ben)
    before = read_checkout(aya.home)
    s3_faults.seen.clear()
    pull(aya)
    fetched = {each.rpartition("/")[2] for each in s3_faults.seen if "objects" in each}
    note = read_checkout(aya.home)
    assert before is not None
    assert note is not None
    new = {file.sha256 for file in note.files} - {file.sha256 for file in before.files}
    assert fetched == {digest[2:] for digest in new}


def test_damage_at_the_url_is_named_and_changes_nothing(url: str, tmp_path: Path) -> None:
    aya, ben = pair(tmp_path, url)
    drop(aya, "dump.jsonl", "one")
    run(aya)
    note = read_checkout(aya.home)
    assert note is not None
    assert note.state is not None
    place = storage(url, STORE)
    file = next(file for file in note.files if file.path.endswith("chain.jsonl"))
    kept = place.read(file.name)
    assert kept is not None
    place.write(file.name, b"x" * file.size)
    with pytest.raises(RemoteStoreDamaged, match=r"ledger/chain\.jsonl: .* has SHA-256"):
        pull(ben)
    assert not ben.home.ledger.exists()
    place.write(file.name, kept[0])
    place.write(note.state.list_name, b"[]")
    with pytest.raises((RemoteStoreDamaged, StoreUnreachable), match="lists/"):
        pull(ben)


def test_damage_in_a_checkout_is_mended_from_the_url(url: str, tmp_path: Path) -> None:
    """A byte that changed on the disk, which changes neither size nor time."""
    aya, _ = pair(tmp_path, url)
    drop(aya, "dump.jsonl", "one")
    run(aya)
    (data,) = (aya.home.ledger / "evidence").glob("*.parquet")
    state = data.stat()
    flip(data)
    os.utime(data, ns=(state.st_atime_ns, state.st_mtime_ns))
    pull(aya)
    assert aya.ledger.chain.damage() != []
    pull(aya, check=True)
    assert aya.ledger.chain.damage() == []
    assert observations(aya) == ["one"]


def test_what_no_state_names_goes_and_what_a_later_one_needs_stays(url: str, tmp_path: Path) -> None:
    """Also when the writer before wakes up in the middle of its removal."""
    aya, ben = pair(tmp_path, url)
    drop(aya, "dump.jsonl", "one")
    run(aya)
    old = read_checkout(aya.home)
    assert old is not None
    place = storage(url, STORE)
    place.write("data/1/objects/ab/orphan", b"sent by a writer that was killed")
    drop(ben, "more.jsonl", "two")
    run(ben)
    assert unnamed(ben, url) == set()
    from memstate_core.storage.head import Contents

    removed = Contents(url).remove_unnamed(named(old.state, old.files), 1)
    assert removed == 0
    pull(aya)
    assert observations(aya) == ["one", "two"]


def test_a_home_with_a_store_of_its_own_is_refused(url: str, tmp_path: Path) -> None:
    own = checkout(tmp_path / "own", "")
    drop(own, "dump.jsonl", "mine")
    take_inbox(own)
    aya, _ = pair(tmp_path, url)
    drop(aya, "dump.jsonl", "one")
    run(aya)
    with pytest.raises(StoreUrlRefused, match=r"a store is there already, and .* holds one of its own"):
        run(checkout(tmp_path / "own", url))
    assert observations(own) == ["mine"]
    with pytest.raises(StoreUrlRefused, match="it has 1 shard, the settings of this home 2"):
        run(checkout(tmp_path / "ben", url, shards=2))


def test_a_store_of_its_own_moves_to_an_empty_url(url: str, tmp_path: Path) -> None:
    own, ben = checkout(tmp_path / "own", ""), checkout(tmp_path / "ben", url)
    drop(own, "dump.jsonl", "mine")
    take_inbox(own)
    run(checkout(tmp_path / "own", url))
    pull(ben)
    assert observations(ben) == ["mine"]


def test_two_stores_that_are_sent_at_once_do_not_mix(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one was killed before its state was there."""
    own, other = checkout(tmp_path / "own", url), checkout(tmp_path / "other", url)
    for store in (own, other):
        drop(store, "dump.jsonl", store.home.root.name)
        take_inbox(store)
    with monkeypatch.context() as patch:
        patch.setattr(Lease, "commit", lambda *_: pytest.fail("killed"))
        with pytest.raises(pytest.fail.Exception):
            run(other)
    run_when_free(own)
    with pytest.raises(StoreUrlRefused, match="holds one of its own"):
        run(other)
    assert observations(other) == ["other"]
    run(own)
    assert observations(own) == ["own"]


def test_an_older_state_at_the_url_is_refused(url: str, tmp_path: Path) -> None:
    aya, _ = pair(tmp_path, url)
    drop(aya, "dump.jsonl", "one")
    run(aya)
    place = storage(url, STORE)
    early = place.read(HEAD)
    assert early is not None
    drop(aya, "more.jsonl", "two")
    run(aya)
    place.write(HEAD, early[0])
    with pytest.raises(StoreUrlRefused, match="its state is number 2, this home had number 4"):
        run(aya)
    assert observations(aya) == ["one", "two"]
    place.remove([HEAD])
    with pytest.raises(StoreUrlRefused, match="nothing is there any more"):
        run(aya)


def test_other_files_at_the_url_are_refused(url: str, tmp_path: Path) -> None:
    if url.startswith("file"):
        (tmp_path / "url").mkdir()
    storage(url, STORE).write("letters.txt", b"")
    with pytest.raises(StoreUrlRefused, match=r"it holds other files, such as letters\.txt"):
        run(checkout(tmp_path / "aya", url))
    assert read_head(storage(url, STORE)) is None
