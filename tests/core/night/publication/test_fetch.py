"""What replicas accepted gets into the ledger exactly once, whatever fails or is killed on the way; folder and S3."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memstate_core.ingest.accesses.collect import collect_accesses
from memstate_core.ingest.accesses.record import AccessRecord, heading, written
from memstate_core.ingest.api_files import make_key
from memstate_core.ingest.divided_files import divide
from memstate_core.ingest.inbox import import_inbox, move_into
from memstate_core.ingest.report import ImportReport
from memstate_core.model.errors import InboxUnreachable, PublicationConflict
from memstate_core.model.text import iso
from memstate_core.night.publication import fetch as fetching
from memstate_core.night.publication.fetch import fetch_inbox, inbox_url, release_imported
from memstate_core.night.publication.upload import publish_to
from memstate_core.policy.settings import PublishSettings, Settings
from memstate_core.run.store import Store
from memstate_core.state.fetch_note import FetchNote, read_fetch_note
from memstate_core.storage import concurrent_requests
from memstate_core.storage.cloud import CloudStorage
from memstate_core.storage.folder import FolderStorage
from memstate_core.storage.purpose import INBOX
from memstate_core.storage.remote_inbox import put_once, waiting_objects
from memstate_core.storage.storage import storage
from tests.core.clocks import SETTLED
from tests.core.night.publication.conftest import new_store, snapshot
from tests.core.storage.s3 import SECRET, Faults, use_endpoint

NOW = datetime(2026, 6, 1, tzinfo=UTC)
S3 = "s3://bucket/a store"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return new_store(tmp_path / "home")


def rows(*texts: str) -> bytes:
    return b"".join(b'{"scope": {"type": "user", "id": "a"}, "text": "%s"}\n' % text.encode() for text in texts)


def segment(name: str, *topics: str) -> bytes:
    accesses = [AccessRecord(topic_id=topic, at=iso(NOW), source="server", scope="user:a") for topic in topics]
    return b"".join(map(written, [heading(name), *accesses]))


def leave(url: str, folder: str, content: bytes) -> str:
    return put_once(storage(url, INBOX), folder, content)


def names(url: str) -> list[str]:
    return [each.name for each in waiting_objects(storage(url, INBOX)).objects]


def import_all(store: Store, run: str = "night") -> ImportReport:
    collect_accesses(store.home, store.ledger, store.settings, NOW, run)
    return import_inbox(store.home, store.ledger, store.settings, now=NOW, run_id=run, clock=SETTLED)


def night(store: Store, url: str) -> ImportReport:
    """What a night does with the inbox at the URL."""
    fetch_inbox(store, url, NOW)
    report = import_all(store)
    release_imported(store, url)
    return report


def texts(store: Store) -> list[str]:
    found: list[str] = store.ledger.scan("evidence").collect()["text"].to_list() if store.home.ledger.exists() else []
    return sorted(found)


def topics(store: Store) -> list[str]:
    return sorted(store.ledger.scan("accesses").collect()["topic_id"])


def test_a_night_takes_what_lies_there_and_removes_it(url: str, store: Store) -> None:
    leave(url, "inbox", rows("one", "two"))
    leave(url, "inbox", rows("three"))
    leave(url, "accesses", segment("a", "yard", "bench"))
    assert fetch_inbox(store, url, NOW).fetched == 3
    assert len(names(url)) == 3  # nothing is in the ledger yet
    report = import_all(store)
    assert (report.accepted, report.errors) == (3, ())
    assert fetch_inbox(store, url, NOW) == fetching.Fetched(0, 3, 0, [])
    assert names(url) == []
    assert texts(store) == ["one", "three", "two"]
    assert topics(store) == ["bench", "yard"]
    assert read_fetch_note(store.home) == FetchNote(url, NOW)


def test_what_is_sent_again_after_it_was_taken_is_a_duplicate(url: str, store: Store) -> None:
    for _ in range(2):
        leave(url, "inbox", rows("one"))
        leave(url, "accesses", segment("a", "yard"))
        night(store, url)
    assert (texts(store), topics(store), names(url)) == (["one"], ["yard"], [])


def test_refused_rows_go_to_quarantine_with_object_line_and_reason(url: str, store: Store) -> None:
    name = leave(url, "inbox", rows("one") + b'{"text": 7}\n')
    assert night(store, url).quarantined == 1
    refused = store.ledger.scan("quarantine").collect().to_dicts()
    digest = name.partition("/")[2].removesuffix(".jsonl")
    assert [(digest in row["file"], row["line"], row["reason"]) for row in refused] == [(True, 3, "wrong_type")]
    assert (texts(store), names(url)) == (["one"], [])


def test_changed_bytes_are_kept_and_reported(url: str, store: Store) -> None:
    """They stay at the URL as well, since no ledger has what was acknowledged."""
    name = leave(url, "inbox", rows("one"))
    storage(url, INBOX).write(name, rows("ten"))
    report = night(store, url)
    assert "a server wrote" in str(report.errors[0])
    (failed,) = store.home.failed.iterdir()
    assert failed.read_bytes().endswith(rows("ten"))
    assert names(url) == [name]
    assert fetch_inbox(store, url, NOW).fetched == 0
    leave(url, "inbox", rows("one"))  # the caller sends it again
    failed.unlink()
    night(store, url)
    assert (texts(store), names(url)) == (["one"], [])


def test_other_names_are_left_alone_and_named(url: str, store: Store) -> None:
    leave(url, "inbox", rows("two"))
    storage(url, INBOX).write("inbox/dump.jsonl", rows("one"))
    assert fetch_inbox(store, url, NOW).others == ["inbox/dump.jsonl"]


def test_the_first_stored_of_two_contents_wins(tmp_path: Path, store: Store) -> None:
    """Whatever the clocks of the replicas say: the storage has one clock."""
    url = f"file://{tmp_path}/published"
    for text in ("one", "two"):
        leave(url, "inbox", rows(text).replace(b"{", b'{"observation_id": "a", ', 1))
    assert night(store, url).quarantined == 1
    assert texts(store) == ["one"]


def test_a_store_that_another_copy_replaced_fetches_nothing(url: str, store: Store, tmp_path: Path) -> None:
    snapshot(store, 1, "one")
    publish_to(store, url)
    leave(url, "inbox", rows("one"))
    restored = new_store(tmp_path / "restored")
    with pytest.raises(PublicationConflict, match="s0/1 is not from here"):
        fetch_inbox(restored, url, NOW)
    note = read_fetch_note(restored.home)
    assert note is not None
    assert "not from here" in (note.problem or "")
    assert fetch_inbox(store, url, NOW).fetched == 1


def test_a_store_looks_where_replicas_accept_or_did(store: Store, url: str) -> None:
    def settings(*, accept: bool) -> Settings:
        return Settings(publish=PublishSettings.model_construct(url=url, accept_writes=accept))

    assert inbox_url(store.home, settings(accept=False)) is None
    assert inbox_url(store.home, settings(accept=True)) == url
    fetch_inbox(store, url, NOW)
    assert inbox_url(store.home, settings(accept=False)) == url


class Killed(BaseException):
    """The process is gone: no handler runs."""


STEPS: list[tuple[Any, str]] = [
    *((kind, name) for kind in (FolderStorage, CloudStorage) for name in ("read", "listed", "remove")),
    (fetching, "keep_copy"),
]


def kill_before(patch: pytest.MonkeyPatch, step: int) -> Callable[[], int]:
    """Kills the process before its step of this number; returns how many steps were made."""
    done = [0]

    def counted(place: Any, name: str) -> None:
        real = getattr(place, name)

        def call(*given: Any) -> Any:
            if done[0] == step:
                raise Killed
            done[0] += 1
            return real(*given)

        patch.setattr(place, name, call)

    for place, name in STEPS:
        counted(place, name)
    patch.setattr(concurrent_requests, "AT_ONCE", 1)
    return lambda: done[0]


@pytest.mark.parametrize("step", range(14))
def test_a_kill_before_each_step_loses_and_doubles_nothing(
    url: str, store: Store, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before each request to the storage and each copy, before and after the import, before and after the removal."""
    for text in ("one", "two"):
        leave(url, "inbox", rows(text))
    leave(url, "accesses", segment("a", "yard"))
    with monkeypatch.context() as patch, suppress(Killed):
        steps = kill_before(patch, step)
        night(store, url)
        assert steps() == step == 13  # it came to its end
    leave(url, "inbox", rows("one"))  # and a caller that got no answer sends it again
    night(store, url)
    assert (texts(store), topics(store), names(url)) == (["one", "two"], ["yard"], [])


def test_a_kill_between_the_import_and_the_moving_away_doubles_nothing(
    url: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memstate_core.ingest import inbox

    def killed(*_given: object) -> None:
        raise Killed

    leave(url, "inbox", rows("one"))
    with monkeypatch.context() as patch:
        patch.setattr(inbox, "move_into", killed)
        with pytest.raises(Killed):
            night(store, url)
    assert (texts(store), len(names(url))) == (["one"], 1)
    night(store, url)
    assert (texts(store), names(url)) == (["one"], [])


@pytest.mark.parametrize(("matching", "methods"), [("list-type", ("GET",)), ("jsonl", ("GET",)), ("delete", ("POST",))])
@pytest.mark.parametrize("status", [403, 500, 503])
def test_a_failing_storage_is_noted_and_the_next_night_takes_all(
    s3_faults: Faults, store: Store, matching: str, methods: tuple[str, ...], status: int
) -> None:
    leave(S3, "inbox", rows("one"))
    s3_faults.matching, s3_faults.methods, s3_faults.status = matching, methods, status
    with pytest.raises(InboxUnreachable) as caught:
        night(store, S3)
    note = read_fetch_note(store.home)
    assert note is not None
    assert note.problem == caught.value.message
    assert SECRET not in caught.value.message
    s3_faults.none()
    night(store, S3)
    note = read_fetch_note(store.home)
    assert note is not None
    assert (texts(store), names(S3), note.problem) == (["one"], [], None)


def test_a_partial_body_is_not_taken(s3_faults: Faults, store: Store) -> None:
    leave(S3, "inbox", rows("one", "two"))
    s3_faults.matching, s3_faults.cut = "jsonl", 0.5
    with pytest.raises(InboxUnreachable):
        fetch_inbox(store, S3, NOW)
    assert not store.home.inbox.exists() or not any(store.home.inbox.iterdir())
    s3_faults.none()
    assert night(store, S3).accepted == 2


@pytest.mark.slow
def test_a_slow_storage_loses_nothing(s3_faults: Faults, store: Store) -> None:
    for number in range(6):
        leave(S3, "inbox", rows(f"text {number}"))
    s3_faults.seconds = 0.3
    assert night(store, S3).accepted == 6
    assert names(S3) == []


def test_what_a_listing_does_not_show_yet_is_taken_later(s3_faults: Faults, store: Store) -> None:
    leave(S3, "inbox", rows("one"))
    s3_faults.hidden = "inbox/"
    night(store, S3)
    assert texts(store) == []
    s3_faults.none()
    night(store, S3)
    assert (texts(store), names(S3)) == (["one"], [])


def test_a_storage_that_is_down_is_noted(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    use_endpoint("http://127.0.0.1:9", monkeypatch)
    with pytest.raises(InboxUnreachable, match="HTTP error"):
        fetch_inbox(store, S3, NOW)
    note = read_fetch_note(store.home)
    assert note is not None
    assert note.at is None
    assert "HTTP error" in (note.problem or "")


def test_old_drafts_of_killed_replicas_are_removed(tmp_path: Path, store: Store) -> None:
    url, inbox = f"file://{tmp_path}/published", tmp_path / "published" / "inbox"
    leave(url, "inbox", rows("one"))
    for name in ("old", "fresh"):
        (inbox / f".{name}.part").write_bytes(b'{"text"')
    os.utime(inbox / ".old.part", (0, 0))
    assert fetch_inbox(store, url, datetime.now(UTC)).others == []
    assert [path.name for path in inbox.glob(".*")] == [".fresh.part"]


def test_two_processes_fetch_one_after_another(url: str, store: Store) -> None:
    from concurrent.futures import ThreadPoolExecutor

    for number in range(5):
        leave(url, "inbox", rows(f"text {number}"))
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda _: fetch_inbox(store, url, NOW).fetched, range(2)))
    assert sorted(found) == [0, 5]
    assert import_all(store).accepted == 5


def test_a_divided_file_is_not_in_the_ledger_before_its_last_piece(url: str, store: Store) -> None:
    """A file with which processes died is processed when its pieces are written; they are yet to be imported."""
    name = leave(url, "inbox", rows("one", "two"))
    fetch_inbox(store, url, NOW)
    (path,) = store.home.inbox.glob("api-*")
    pieces = divide(path, make_key(store.home.inbox_key))
    move_into(path, store.home.processed)
    assert [release_imported(store, url), names(url)] == [0, [name]]
    move_into(pieces[0], store.home.failed)
    assert import_all(store).accepted == 1
    assert [release_imported(store, url), names(url)] == [0, [name]]
    move_into(store.home.failed / pieces[0].name, store.home.inbox)
    assert import_all(store).accepted == 1
    assert [release_imported(store, url), names(url)] == [1, []]
