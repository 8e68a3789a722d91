"""`memstate facts` and `/v1/facts`: one view over fields, histories and edges, checked against what was observed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memstate_core.client import MemoryClient
from memstate_core.run.store import open_store
from memstate_core.serve.options import Options
from tests.core.serve.conftest import served
from tests.pipeline.conftest import run_memstate

pytestmark = pytest.mark.slow

NIGHT = "2026-06-01T02:00:00Z"
AYA, BEN = {"type": "user", "id": "aya"}, {"type": "user", "id": "ben"}


def said(name: str, key: str, day: str, scope: dict[str, str] = AYA, **more: Any) -> dict[str, Any]:
    row = {"observation_id": name, "topic_key": key, "title": key.title(), "observed_at": day, "scope": scope}
    return row | more


ROWS = [
    said("o1", "boat", "2026-01-01", fields=[{"name": "berth", "value": "east pier", "confidence": 0.6}]),
    said("o2", "boat", "2026-03-01", fields=[{"name": "berth", "value": "west pier", "why_changed": "a storm"}]),
    said("o3", "boat", "2026-02-01", fields=[{"name": "crew", "value": 4, "field_type": "int"}]),
    said("o4", "boat", "2026-04-01", fields=[{"name": "crew", "value": None}]),
    said("o5", "boat", "2026-02-15", edges=[{"to_topic_key": "yard", "kind": "part_of"}]),
    said("o6", "yard", "2026-01-05", fields=[{"name": "gate", "value": "open"}]),
    said("o7", "yard", "2026-01-05", fields=[{"name": "gate", "value": "shut"}]),
    said("o8", "boat", "2026-01-02", BEN, fields=[{"name": "berth", "value": "lake"}]),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("facts")
    dump = folder / "dump.jsonl"
    dump.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    assert run_memstate(folder / "home", "import", str(dump)).code == 0
    done = run_memstate(folder / "home", "maintain", "--now", NIGHT)
    assert done.code == 0, done.stderr
    return folder / "home"


@pytest.fixture
def home(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "home"))


def facts(home: Path, *options: str) -> list[dict[str, Any]]:
    answer = run_memstate(home, "facts", *options, "--json")
    assert answer.code == 0, answer.stderr
    return list(answer.document["facts"])


def triples(found: list[dict[str, Any]]) -> set[tuple[Any, ...]]:
    return {(row["subject"], row["predicate"], row["object"]) for row in found}


def test_what_holds_now_is_listed_with_its_source(made: Path) -> None:
    found = facts(made, "--scope", "user:aya")
    assert triples(found) == {
        ("Boat", "berth", "west pier"),
        ("Boat", "part_of", "Yard"),
        ("Yard", "gate", "open"),
        ("Yard", "gate", "shut"),
    }
    by_object = {row["object"]: row for row in found}
    berth = by_object["west pier"]
    assert (berth["valid_from"], berth["valid_until"]) == ("2026-03-01T00:00:00Z", None)
    assert (berth["source_event_ids"], berth["scope"], berth["contradicted"]) == (["o2"], "user:aya", False)
    part = by_object["Yard"]
    assert (part["object_id"], part["source_event_ids"]) == (by_object["open"]["subject_id"], ["o5"])
    assert by_object["open"]["contradicted"] is by_object["shut"]["contradicted"] is True
    assert by_object["open"]["valid_until"] is by_object["shut"]["valid_until"] is None


def test_history_gives_each_value_its_end(made: Path) -> None:
    found = facts(made, "--subject", "Boat", "--scope", "user:aya", "--history")
    values = [
        (row["predicate"], row["object"], row["valid_from"][:10], (row["valid_until"] or "")[:10]) for row in found
    ]
    assert values == [
        ("berth", "west pier", "2026-03-01", ""),
        ("berth", "east pier", "2026-01-01", "2026-03-01"),
        ("crew", 4, "2026-02-01", "2026-04-01"),
        ("part_of", "Yard", "2026-02-15", ""),
    ]
    assert found[1]["confidence"] == 0.6


def test_a_subject_is_an_id_or_a_title_and_a_predicate_narrows(made: Path) -> None:
    (berth,) = facts(made, "--subject", "boat", "--predicate", "berth", "--scope", "user:aya")
    assert facts(made, "--subject", berth["subject_id"], "--predicate", "berth") == [berth]
    assert triples(facts(made, "--subject", "BOAT", "--predicate", "berth")) == {
        ("Boat", "berth", "west pier"),
        ("Boat", "berth", "lake"),
    }
    assert facts(made, "--subject", berth["subject_id"], "--scope", "user:ben") == []
    assert facts(made, "--subject", "no such topic") == []


def test_the_past_lists_what_was_known_and_held_then(made: Path) -> None:
    then = facts(made, "--scope", "user:aya", "--as-of", "2026-02-20T00:00:00Z")
    assert triples(then) >= {("Boat", "berth", "east pier"), ("Boat", "crew", 4), ("Boat", "part_of", "Yard")}
    assert ("Boat", "berth", "west pier") not in triples(then)
    before = facts(made, "--scope", "user:aya", "--as-of", "2026-01-03T00:00:00Z")
    assert triples(before) == {("Boat", "berth", "east pier")}


def test_facts_read_as_text(made: Path) -> None:
    shown = run_memstate(made, "facts", "--subject", "boat", "--scope", "user:aya", "--history", "--limit", "2").stdout
    assert "Boat · berth · east pier" in shown
    assert "since 2026-01-01 until 2026-03-01, confidence 0.60, from o1" in shown
    assert "more: --limit N" in shown
    assert "none" in run_memstate(made, "facts", "--subject", "nothing").stdout


@pytest.fixture
def client(home: Path) -> Iterator[MemoryClient]:
    with served(open_store(home), Options()) as raw:
        raw.until_ready()
        with MemoryClient(raw.url) as memory:
            yield memory


@pytest.mark.usefixtures("no_settings")
def test_pages_over_http_give_every_fact_once_in_order(client: MemoryClient, made: Path) -> None:
    listed = facts(made, "--history")
    for size in (1, 2, 3, 100):
        assert [(fact.subject_id, fact.object) for fact in client.facts(history=True, page_size=size)] == [
            (row["subject_id"], row["object"]) for row in listed
        ]
    (berth,) = client.facts("Boat", "berth", scope="user:ben")
    assert (berth.object, berth.source_event_ids) == ("lake", ["o8"])


@pytest.mark.usefixtures("no_settings")
def test_a_key_of_one_scope_sees_no_fact_of_another(home: Path) -> None:
    key = run_memstate(home, "keys", "add", "ben", "--role", "read", "--scope", "user:ben", "--json").document["key"]
    with served(open_store(home), Options()) as raw:
        client = raw.until_ready()
        mine = client.get("/v1/facts?subject=Boat", X_API_Key=key)
        assert mine.status == 200, mine.content
        assert triples(mine.document["facts"]) == {("Boat", "berth", "lake")}
        foreign = facts(home, "--subject", "Yard")[0]["subject_id"]
        assert client.get(f"/v1/facts?subject={foreign}", X_API_Key=key).document["facts"] == []
        assert client.get("/v1/facts?scope=user:aya", X_API_Key=key).document["facts"] == []
        assert client.get("/v1/facts?cursor=x", X_API_Key=key).status == 422


CONTESTED = [
    said("c1", "boat", "2026-01-01", fields=[{"name": "berth", "value": "east pier"}]),
    said("c2", "boat", "2026-02-01", fields=[{"name": "berth", "value": "west pier"}]),
    said("c3", "boat", "2026-02-01", fields=[{"name": "berth", "value": "lake"}]),
    said("c4", "boat", "2026-03-01", fields=[{"name": "berth", "value": None}]),
    said("c5", "yard", "2026-01-05", fields=[{"name": "gate", "value": "open"}]),
    said("c6", "yard", "2026-01-05", fields=[{"name": "gate", "value": "shut"}]),
]


def night_of(folder: Path, rows: list[dict[str, Any]], night: str) -> Path:
    dump, home = folder / "dump.jsonl", folder / "home"
    folder.mkdir(exist_ok=True)
    dump.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run_memstate(home, "import", str(dump)).code == 0
    done = run_memstate(home, "maintain", "--now", night)
    assert done.code == 0, done.stderr
    return home


def test_values_that_contradicted_each_other_held_side_by_side_until_a_later_one(tmp_path: Path) -> None:
    home = night_of(tmp_path, CONTESTED, NIGHT)

    def values(*options: str) -> list[tuple[Any, ...]]:
        found = facts(home, "--predicate", "berth", *options)
        parts = ("object", "valid_from", "valid_until", "contradicted")
        return sorted(tuple(str(row[part])[:10] for part in parts) for row in found)

    february, march = "2026-02-01", "2026-03-01"
    assert values("--history") == [
        ("east pier", "2026-01-01", february, "False"),
        ("lake", february, march, "True"),
        ("west pier", february, march, "True"),
    ]
    then = [("lake", february, "None", "True"), ("west pier", february, "None", "True")]
    assert values("--as-of", "2026-02-10") == then
    assert [row["contradicted"] for row in facts(home, "--predicate", "gate", "--history")] == [True, True]


def test_a_value_that_a_later_observation_confirmed_is_not_contradicted(tmp_path: Path) -> None:
    home = night_of(tmp_path, CONTESTED[4:], NIGHT)
    shown, rival = (row["object"] for row in facts(home))
    again = said("c7", "yard", "2026-02-01", fields=[{"name": "gate", "value": shown}])
    night_of(tmp_path, [again], "2026-06-02T02:00:00Z")
    found = {row["object"]: (row["contradicted"], row["valid_until"]) for row in facts(home, "--history")}
    assert found == {shown: (False, None), rival: (True, "2026-02-01T00:00:00Z")}


def test_a_value_that_begins_after_the_night_is_not_what_holds_now(tmp_path: Path) -> None:
    rows = [
        said("b1", "boat", "2026-04-30", fields=[{"name": "berth", "value": "B2"}]),
        said("b2", "boat", "2026-11-20", fields=[{"name": "berth", "value": "C3", "valid_from": "2026-12-20"}]),
    ]
    home = night_of(tmp_path, rows, "2026-11-27T02:00:00Z")
    answered = run_memstate(home, "query", "Which berth has the boat?", "--json").document
    (field,) = answered["candidates"][0]["fields"]
    packed = run_memstate(home, "context", "Which berth has the boat?", "--budget", "200").stdout
    shown = run_memstate(home, "topic", "Boat").stdout
    assert [row["object"] for row in facts(home)] == ["B2"]
    assert field["current"]["value"] == "B2"
    assert ("berth: B2 (since 2026-04-30)" in packed, "berth: C3 (from 2026-12-20)" in packed) == (True, True)
    assert "berth: C3 (since" not in packed
    assert ("B2" in shown, "C3" in shown) == (True, False)
    history = run_memstate(home, "topic", "Boat", "--history").stdout
    assert '"C3"  from 2026-12-20T00:00:00Z' in history
    assert '"B2"  since 2026-04-30T00:00:00Z' in history
    assert [row["object"] for row in facts(home, "--history")] == ["C3", "B2"]
    assert run_memstate(home, "maintain", "--now", "2026-12-21T02:00:00Z").code == 0
    assert [row["object"] for row in facts(home)] == ["C3"]


def test_the_history_of_a_topic_shows_its_earlier_titles(tmp_path: Path) -> None:
    later = {"title": "Sailing boat", "summary": "Lies at the pier"}
    rows = [said("d1", "boat", "2026-01-01", summary="Lies ashore"), said("d2", "boat", "2026-02-01") | later]
    home = night_of(tmp_path, rows, NIGHT)
    shown = run_memstate(home, "topic", "Sailing boat", "--history").stdout
    assert '  earlier title: "Boat"  since 2026-01-01T00:00:00Z' in shown
    assert '  earlier summary: "Lies ashore"  since 2026-01-01T00:00:00Z' in shown
    assert "earlier" not in run_memstate(home, "topic", "Sailing boat").stdout


def test_a_key_names_its_topic(made: Path) -> None:
    rows = facts(made, "--subject", "yard", "--history")
    assert rows == facts(made, "--subject", "Yard", "--history") != []
    assert run_memstate(made, "topic", "yard", "--json").document["title"] == "Yard"
    shared = run_memstate(made, "topic", "boat")
    assert shared.code == 1
    assert "memstate: 'boat' is ambiguous in snapshot s0/1: 2 topics have this topic_key or title (" in shared.stderr
    rows = run_memstate(made, "export", "--json").document["topics"]
    listed = sorted((row["scope"], row["id"]) for row in rows if row["title"] == "Boat")
    assert ", ".join(f"{topic} in scope {scope}" for scope, topic in listed) in shared.stderr
    (_, topic), *_ = listed
    assert run_memstate(made, "topic", topic, "--json").document["title"] == "Boat"


def test_a_key_that_is_no_title_names_its_topic(tmp_path: Path) -> None:
    field = [{"name": "stage", "value": "signed"}]
    rows = [said("k1", "acme-renewal", "2026-01-01", fields=field) | {"title": "Renewal of Acme"}]
    home = night_of(tmp_path, rows, NIGHT)
    assert triples(facts(home, "--subject", "acme-renewal")) == {("Renewal of Acme", "stage", "signed")}
    assert facts(home, "--subject", "acme-renewal", "--scope", "user:ben") == []
    assert run_memstate(home, "topic", "acme-renewal", "--json").document["title"] == "Renewal of Acme"
