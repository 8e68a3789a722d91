"""Objects in the inbox at a URL: stored once, mended, listed by the clock of the storage; on a folder and on S3."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from memstate_core.model.errors import InboxUnreachable
from memstate_core.storage.purpose import INBOX
from memstate_core.storage.remote_inbox import RemoteContents, content_of, put_once, waiting_objects
from memstate_core.storage.storage import Storage, Unreadable, storage
from tests.core.storage.s3 import SECRET, Faults, use_endpoint

ROWS = b'{"text": "The gate is open."}\n'


@pytest.fixture
def place(url: str) -> Storage:
    return storage(url, INBOX)


def test_a_content_is_stored_once(place: Storage) -> None:
    with ThreadPoolExecutor(8) as pool:
        names = list(pool.map(lambda _: put_once(place, "inbox", ROWS), range(24)))
    assert set(names) == {f"inbox/{hashlib.sha256(ROWS).hexdigest()}.jsonl"}
    put_once(place, "accesses", ROWS)
    found = waiting_objects(place)
    assert [(each.size, content_of(place, each)) for each in found.objects] == [(len(ROWS), ROWS)] * 2
    assert (found.others, found.drafts) == ([], {})


def test_other_bytes_under_its_name_are_mended(place: Storage) -> None:
    name = put_once(place, "inbox", ROWS)
    place.write(name, ROWS[:-3])
    assert put_once(place, "inbox", ROWS) == name
    assert content_of(place, waiting_objects(place).objects[0]) == ROWS


def test_what_nobody_puts_there_is_named_and_what_is_gone_is_none(place: Storage) -> None:
    put_once(place, "inbox", ROWS)
    (waiting,) = waiting_objects(place).objects
    place.write("inbox/letter.jsonl", b"")
    assert waiting_objects(place) == RemoteContents([waiting], {}, ["inbox/letter.jsonl"])
    place.remove([waiting.name])
    assert content_of(place, waiting) is None


def test_bytes_that_changed_since_they_were_listed_are_not_taken(place: Storage) -> None:
    name = put_once(place, "inbox", ROWS)
    (waiting,) = waiting_objects(place).objects
    place.write(name, ROWS[:-3])
    with pytest.raises(Unreadable, match=f"has {len(ROWS)} bytes, of which {len(ROWS) - 3} arrived"):
        content_of(place, waiting)


@pytest.mark.parametrize("status", [403, 500, 503])
def test_a_refusing_storage_is_an_error(s3_faults: Faults, status: int) -> None:
    s3_faults.status, s3_faults.methods = status, ("PUT",)
    with pytest.raises(InboxUnreachable, match="has to be sent again") as caught:
        put_once(storage("s3://bucket/store", INBOX), "inbox", ROWS)
    assert SECRET not in caught.value.message
    assert sum(each.startswith("PUT") for each in s3_faults.seen) <= 1 + INBOX.retries


def test_an_answer_that_is_lost_makes_no_second_object(s3_faults: Faults) -> None:
    """The put arrives, its answer is cut off, and the storage says to the next attempt that the object exists."""
    place = storage("s3://bucket/store", INBOX)
    s3_faults.lost, s3_faults.methods = 1, ("PUT",)
    put_once(place, "inbox", ROWS)
    assert sum(each.startswith("PUT") for each in s3_faults.seen) == 2
    assert len(waiting_objects(place).objects) == 1


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "published").write_text("a file in the way")
    with pytest.raises(InboxUnreachable, match="cannot be written"):
        put_once(storage(f"file://{tmp_path}/published", INBOX), "inbox", ROWS)


def test_a_storage_that_is_down_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    use_endpoint("http://127.0.0.1:9", monkeypatch)
    with pytest.raises(InboxUnreachable, match="HTTP error"):
        put_once(storage("s3://bucket/store", INBOX), "inbox", ROWS)
