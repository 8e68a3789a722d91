"""Observations over HTTP: checked as an import checks them, durable when acknowledged, imported once."""

from __future__ import annotations

import errno
import json
import os
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memstate_core.ingest.importer import import_paths
from memstate_core.ingest.inbox import import_inbox
from memstate_core.model.frames import empty
from memstate_core.model.ledger_tables import EVIDENCE
from memstate_core.model.text import parse_moment
from memstate_core.placement.named import place_named
from memstate_core.policy.settings import Settings
from memstate_core.run.store import Store, open_store
from memstate_core.serve import known_contents
from memstate_core.serve.inbox_writer import InboxWriter
from memstate_core.serve.known_contents import KnownContents
from memstate_core.serve.observations import ObservationsConflict, accept
from memstate_core.serve.options import Options
from memstate_core.state.home import Home
from tests.core.clocks import SETTLED
from tests.core.serve.conftest import ROWS as PUBLISHED
from tests.core.serve.conftest import Client, served, serving_process
from tests.pipeline.conftest import run_memstate

pytestmark = pytest.mark.slow

NOW = parse_moment("2026-12-24T00:00:00Z")
SCOPE = {"type": "user", "id": "ines"}
ROWS: list[dict[str, Any]] = [
    {"title": "Only a title"},
    {"title": "A title with a conversation", "chat_messages": [], "uuid": "x", "mapping": {}, "messages": []},
    {"topic_key": "yard", "title": "Yard", "scope": SCOPE, "fields": [{"name": "gate", "value": "op\nen"}]},
    {"topic_id": "crm/42", "summary": "Renewal", "scope": SCOPE, "observation_id": "crm/42#1"},
    {"title": "Yard", "placement": "new_topic", "scope": SCOPE, "edges": [], "text": None},
    {"text": "We moved the call.", "scope": SCOPE, "observed_at": "2026-04-22T13:56:00+02:00", "a": [1.0, {"b": None}]},
]


@pytest.fixture
def store(tmp_path: Path, harbour_store: Store) -> Store:
    return Store(Home(tmp_path / "home"), harbour_store.settings)


@pytest.fixture
def intake(store: Store) -> Iterator[Client]:
    """A server on a store where nothing was published yet."""
    with served(store, Options()) as client:
        yield client


def waiting(store: Store) -> list[Path]:
    return sorted(path for path in store.home.inbox.glob("*") if path.is_file())


def imported(store: Store) -> pl.DataFrame:
    report = import_inbox(store.home, store.ledger, store.settings, now=NOW, run_id="night", clock=SETTLED)
    assert (report.errors, report.quarantined) == ((), 0)
    return store.ledger.scan("evidence").collect()


@pytest.mark.parametrize("indent", [None, 2])
def test_ids_are_those_that_the_next_run_gives(intake: Client, store: Store, indent: int | None) -> None:
    response = intake.post("/v1/ingest", json.dumps(ROWS, indent=indent).encode())
    assert response.status == 202, response.content
    assert response.document["accepted"] == len(ROWS)
    evidence = imported(store)
    assert sorted(response.document["observation_ids"]) == sorted(evidence["observation_id"])
    placed = place_named(evidence, pl.DataFrame(schema={"topic_id": pl.String, "scope": pl.String}))
    named = placed.placements.join(evidence, on="evidence_id").select("observation_id", "topic_id").rows()
    for observation_id, topic_id in zip(
        response.document["observation_ids"], response.document["topic_ids"], strict=True
    ):
        assert topic_id is None or (observation_id, topic_id) in named
    assert [topic_id is None for topic_id in response.document["topic_ids"]] == [True, True, False, False, False, True]


def test_the_same_rows_as_a_dump_are_the_same_observations(intake: Client, store: Store, tmp_path: Path) -> None:
    dump = tmp_path / "dump.jsonl"
    dump.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    report = import_paths(store.ledger, store.settings, [dump], now=NOW, run_id="import", format="observations")
    assert report.accepted == len(ROWS)
    assert intake.post("/v1/ingest", ROWS).status == 202
    assert imported(store).height == len(ROWS)


def test_one_observation_needs_no_list(intake: Client, store: Store) -> None:
    response = intake.post("/v1/ingest", {"text": "One.", "observation_id": "one"})
    assert (response.status, response.document["observation_ids"]) == (202, ["one"])
    assert [path.name for path in waiting(store)] == [response.document["file"]]


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b'{"txt": "x"}', 422, "missing_content"),
        (b'[{"text": "x"}, {"text": 1}]', 422, "wrong_type"),
        (b'[{"text": "x"}, 7]', 422, "wrong_type"),
        (b'{"text": "x", "observed_at": "2200-01-01"}', 422, "future_time"),
        (b'{"text": "x", "scope": {"type": "user"}}', 422, "scope_without_id"),
        (b'{"text": "\xff"}', 422, "not_utf8"),
        (b'[{"text": "\xff"}]', 422, "not_utf8"),
        (b'{"text": "\\ud800"}', 422, "broken_json"),
        (b'{"text": NaN}', 422, "not_a_number"),
        (b'{"text": "x"', 422, "broken_json"),
        (b'{"text": "a"}{"text": "b"}', 422, "broken_json"),
        (
            b'[{"observation_id": "a", "text": "x"}, {"observation_id": "a", "text": "y"}]',
            422,
            "conflicting_observation",
        ),
        (b'{"text": "x", "deep": ' + b"[" * 100 + b"]" * 100 + b"}", 422, "too_deep"),
        (b'[{"text": "x"}', 422, "broken-json"),
        (b"[]", 422, "no-observation"),
        (b"", 422, "no-observation"),
        (b" \n ", 422, "no-observation"),
        (b"null", 422, "wrong_type"),
    ],
)
def test_what_an_import_would_refuse_is_refused(
    intake: Client, store: Store, body: bytes, status: int, said: str
) -> None:
    response = intake.post("/v1/ingest", body)
    assert response.status == status, response.content
    assert said in response.content.decode()
    assert waiting(store) == []


def test_another_content_of_an_accepted_id_is_refused(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def body(text: str, name: str = "a") -> dict[str, Any]:
        return {"observation_id": name, "scope": SCOPE, "text": text}

    def posted(client: Client, *bodies: dict[str, Any]) -> int:
        response = client.post("/v1/ingest", list(bodies))
        if response.status == 409:
            assert response.document["type"] == "urn:memstate:problem:observations-refused"
            assert [row["reason"] for row in response.document["errors"]] == ["conflicting_observation"]
        return response.status

    with served(store, Options()) as client:
        assert [posted(client, body(text)) for text in ("one", "one", "two")] == [202, 202, 409]
        assert posted(client, body("new", "b"), body("two")) == 409
        assert posted(client, body("other", "b")) == 202
        assert posted(client, body("two") | {"scope": {"type": "user", "id": "bo"}}) == 202
        with monkeypatch.context() as patch:
            patch.setattr(InboxWriter, "append", full)
            assert posted(client, body("never", "c")) == 503
        assert posted(client, body("now", "c")) == 202
        together = [
            threading.Thread(target=lambda n=n: found.append(posted(client, body(str(n), "d")))) for n in range(8)
        ]
        found: list[int] = []
        for thread in together:
            thread.start()
        for thread in together:
            thread.join()
        assert sorted(found) == [202, *[409] * 7]
    with served(store, Options()) as client:
        assert [posted(client, body(text)) for text in ("two", "one")] == [409, 202]
    assert imported(store).height == 5


def test_two_servers_accept_one_content_of_an_id(store: Store) -> None:
    """Each process has a memory of its own: both acknowledged, and the run quarantined one of the two contents."""

    def status(client: Client, name: str, text: str) -> int:
        return client.post("/v1/ingest", {"observation_id": name, "scope": SCOPE, "text": text}).status

    with served(store, Options()) as one, served(store, Options()) as other:
        assert [status(one, "first", "a"), status(other, "first", "b"), status(other, "first", "a")] == [202, 409, 202]
        assert [status(other, "second", "a"), status(one, "second", "b"), status(one, "third", "a")] == [202, 409, 202]
        with ThreadPoolExecutor(8) as pool:
            names = [f"race-{number}" for number in range(12)]
            cases = [(client, name, text) for name in names for client in (one, other) for text in "abc"]
            found = list(pool.map(lambda case: (case[1], status(*case)), cases))
    counts = Counter(found)
    assert {counts[name, 202] for name in names} == {2}, "one content, which both were asked to take"
    assert {counts[name, 409] for name in names} == {4}
    assert imported(store).height == 3 + len(names)


def test_another_content_of_a_published_id_is_refused(home: Path) -> None:
    """Before, a server that had started since did not know it, and the run quarantined what was acknowledged."""
    store = open_store(home, {})
    known = dict(zip(*store.ledger.scan("evidence").select("title", "observation_id").collect(), strict=True))
    said = {"observation_id": known["Old Ferry Yard"], "scope": SCOPE, "observed_at": "2026-04-01T00:00:00Z"}
    published = {key: value for key, value in said.items() if key != "observation_id"} | PUBLISHED[0]
    with served(store, Options(record=False)) as client:
        client.until_ready()
        response = client.post("/v1/ingest", [published | {"text": "new"}, said | {"text": "other"}])
        assert [(each["at"], each["reason"]) for each in response.document["errors"]] == [
            (1, "conflicting_observation")
        ]
        assert response.status == 409
        assert client.post("/v1/ingest", published).status == 202
        assert client.post("/v1/ingest", said | {"text": "x", "scope": {"type": "user", "id": "bo"}}).status == 202
        for path in home.glob("snapshots/*/*/**/evidence.parquet"):
            path.write_bytes(path.read_bytes()[:100])
        assert client.post("/v1/ingest", published | {"observation_id": "new"}).status == 202


def test_memory_of_contents_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_contents, "KNOWN", 3)
    known = KnownContents(lambda: empty(EVIDENCE))
    for number in range(5):
        with known.accepting(accept([b'{"observation_id": "%d", "text": "x"}' % number], Settings(), NOW)):
            pass
    assert len(known._known) == 3
    with pytest.raises(ObservationsConflict):
        known.accepting(accept([b'{"observation_id": "4", "text": "y"}'], Settings(), NOW)).__enter__()
    with known.accepting(accept([b'{"observation_id": "0", "text": "y"}'], Settings(), NOW)):
        pass


def full(*_: object) -> str:
    raise OSError(errno.ENOSPC, "No space left on device")


LIKE_AN_EXPORT: list[dict[str, Any]] = [
    {"title": "Chat", "scope": SCOPE, "pad": "x" * 70_000, "messages": [{"role": "user", "content": "Take me over."}]},
    {"title": "Chat", "scope": SCOPE, "mapping": {"a": {"message": {}}}, "pad": "x" * 70_000},
    {"title": "Chat", "scope": SCOPE, "chat_messages": [{"text": "x", "sender": "human"}], "uuid": "u"},
    {"title": "Chat", "scope": SCOPE, "conversations": [{"from": "human", "value": "x"}]},
]


@pytest.mark.parametrize("row", LIKE_AN_EXPORT, ids=["openai", "chatgpt", "claude", "sharegpt"])
def test_a_row_that_looks_like_an_export_changes_nothing_for_its_neighbours(
    intake: Client, store: Store, row: dict[str, Any]
) -> None:
    """The first row of a file used to decide how the whole file was read."""
    others = [{"text": f"Observation {number}.", "scope": SCOPE} for number in range(40)]
    assert intake.post("/v1/ingest", [row, *others]).status == 202
    evidence = imported(store)
    assert evidence["scope"].unique().to_list() == ["user:ines"]
    assert evidence.height == 41


def test_files_of_the_api_are_known_by_their_header_under_any_name(intake: Client, store: Store) -> None:
    assert intake.post("/v1/ingest", LIKE_AN_EXPORT).status == 202
    [path] = waiting(store)
    path.rename(path.with_name("restored.jsonl"))
    assert imported(store)["scope"].to_list() == ["user:ines"] * 4


def test_files_of_the_api_are_known_by_their_name_without_the_key(intake: Client, store: Store) -> None:
    assert intake.post("/v1/ingest", LIKE_AN_EXPORT).status == 202
    store.home.inbox_key.unlink()
    assert imported(store)["scope"].to_list() == ["user:ines"] * 4


def test_a_refusal_names_the_place(intake: Client) -> None:
    response = intake.post("/v1/ingest", [{"text": "x"}, {"kind": "odd", "text": "y"}]).document
    assert [(each["at"], each["reason"]) for each in response["errors"]] == [(1, "unknown_word")]
    assert response["type"] == "urn:memstate:problem:observations-refused"


# The writer


def test_requests_at_the_same_time_share_files_and_lose_nothing(tmp_path: Path) -> None:
    writer = InboxWriter(tmp_path / "inbox", tmp_path / "inbox.key")
    names: list[str] = []

    def write(number: int) -> None:
        names.extend(writer.append(b"%d/%d\n" % (number, turn)) for turn in range(20))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    files = sorted((tmp_path / "inbox").iterdir())
    assert {path.name for path in files} == set(names)
    lines = b"".join(path.read_bytes().partition(b"\n")[2] for path in files).split()
    assert sorted(lines) == sorted(b"%d/%d" % (number, turn) for number in range(8) for turn in range(20))
    mine = [line for line in lines if line.startswith(b"3/")]
    assert mine == [b"3/%d" % turn for turn in range(20)]


def test_a_disk_that_refuses_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    writer = InboxWriter(tmp_path / "inbox", tmp_path / "inbox.key")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="no space left"):
            writer.append(b"{}\n")
    assert list((tmp_path / "inbox").iterdir()) == []
    assert (tmp_path / "inbox" / writer.append(b"{}\n")).read_bytes().endswith(b"}\n{}\n")


def test_unfinished_files_are_swept_when_they_are_old(tmp_path: Path) -> None:
    old, fresh, other = (tmp_path / name for name in (".api-1.jsonl.part", ".api-2.jsonl.part", ".mine.part"))
    for path in (old, fresh, other):
        path.write_bytes(b"{")
    os.utime(old, (0, 0))
    os.utime(other, (0, 0))
    InboxWriter(tmp_path, tmp_path / "inbox.key").sweep()
    assert sorted(tmp_path.iterdir()) == sorted([fresh, other])


# A server that is killed


def test_what_was_acknowledged_survives_a_kill_and_is_imported_once(home: Path) -> None:
    row = {"topic_key": "yard", "scope": SCOPE, "observed_at": "2026-04-06T00:00:00Z"}
    fields = [{"name": "gate", "value": "open"}]
    with serving_process(home) as (client, process):
        response = client.post("/v1/ingest", row | {"fields": fields})
        assert response.status == 202
        process.kill()
        process.wait()
    topic_id = response.document["topic_ids"][0]
    for now in ("2026-04-07T02:00:00Z", "2026-04-08T02:00:00Z"):
        assert run_memstate(home, "maintain", "--now", now).code == 0
    topics = run_memstate(home, "export", "--json").document["topics"]
    yard = next(topic for topic in topics if topic["id"] == topic_id)
    assert yard["observation_ids"].count(response.document["observation_ids"][0]) == 1
    assert [revision["value"] for revision in yard["fields"]["gate"]["history"]] == ["open", "shut"]
