"""Whole nights with an extractor: what is published, what a plan, a rebuild and a second store ask, and fallback."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memstate_core.ingest.importer import import_paths
from memstate_core.model.errors import ExtractorUnavailable
from memstate_core.model.text import parse_moment
from memstate_core.night.clone import cloned
from memstate_core.night.plan_file import write_plan
from memstate_core.night.rebuild import rebuild
from memstate_core.run.run import GRAPH_FILE
from memstate_core.run.store import Store, open_store
from memstate_core.state.current import current_snapshot
from memstate_core.state.graph import EDGE, REVISION, TOPIC, open_graph
from memstate_pipeline.doctor.examine import examine
from memstate_pipeline.planning import apply_plan, plan_on
from memstate_pipeline.run import maintain
from tests.core.llm.clients import KEY
from tests.core.llm.scripted import Answer, Request, Response, Script, fails, says, serving

pytestmark = pytest.mark.slow

NOW = parse_moment("2026-04-06T02:00:00Z")
DAY = "2026-04-01T12:0{}:00Z"
TEXTS = (
    "The Acme renewal is mine now, Priya handed it over to me.",
    "Good. They asked for forty seats this time.",
    "Did you feed the cat today?",
    "Yes, and the fish too.",
)


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("MEMSTATE_", "DAGSTER_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SOME_KEY", KEY)


def understanding(_: Request) -> Response:
    """What a model could make of the turns, one topic in error among it."""
    owner = {"name": "owner", "value": "Aya", "field_type": "string", "why_changed": "handed over", "confidence": 0.9}
    acme = {"title": "Acme renewal", "summary": "Aya owns it.", "topic_kind": "deal", "turns": [1, 2],
            "fields": [owner], "edges": [{"kind": "mentions", "to": "The cat"}]}  # fmt: skip
    cat = {"title": "The cat", "summary": "It was fed.", "topic_kind": "pet", "turns": [3]}
    wrong = {"title": "Wrong", "turns": [4], "fields": [{"name": "n", "value": "x", "field_type": "int"}]}
    return says({"topics": [acme, cat, wrong]})


def store_of(folder: Path, url: str, **settings: Any) -> Store:
    folder.mkdir(exist_ok=True)
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    section = f'[extractor]\nbase_url = "{url}"\nmodel = "m"\napi_key_env = "SOME_KEY"\n' if url else ""
    (folder / "memstate.toml").write_text(section + "\n".join(lines))
    chat = folder.parent / "chat.jsonl"
    turns = [
        {"scope": {"type": "user", "id": "aya"}, "session_id": "s1", "turn": at, "kind": "user_message",
         "actor": "Aya", "text": text, "observed_at": DAY.format(at)}
        for at, text in enumerate(TEXTS)
    ]  # fmt: skip
    chat.write_text("\n".join(map(json.dumps, turns)))
    store = open_store(folder)
    import_paths(store.ledger, store.settings, [chat], now=NOW, run_id="import")
    return store


def published(store: Store) -> tuple[str, dict[str, pl.DataFrame]]:
    snapshot = current_snapshot(store.home, "s0")
    assert snapshot is not None
    with open_graph(snapshot.path / GRAPH_FILE, read_only=True) as graph:
        return snapshot.manifest.state_hash, {table.name: graph.read(table) for table in (TOPIC, REVISION, EDGE)}


@contextmanager
def a_night(folder: Path, *answers: Answer, **settings: Any) -> Iterator[tuple[Store, Script, dict[str, Any]]]:
    with serving(*answers) as script:
        store = store_of(folder, script.url, **settings)
        yield store, script, maintain(store, NOW).summary


def test_what_the_model_found_is_published_with_its_provenance_and_evidence(tmp_path: Path) -> None:
    with a_night(tmp_path / "home", understanding) as (store, script, summary):
        assert len(script.requests) == 1
        assert all(check["passed"] for check in summary["checks"])
    _, tables = published(store)
    topics = dict(tables["Topic"].select("title", "id").iter_rows())
    assert {"Acme renewal", "The cat"} < topics.keys()
    revisions = tables["Revision"].filter(pl.col("topic_id") == topics["Acme renewal"])
    assert set(revisions["provenance"]) == {"llm"}
    [owner] = revisions.filter(pl.col("name") == "owner").to_dicts()
    assert (owner["value_json"], owner["why_changed"], owner["confidence"]) == ('"Aya"', "handed over", 0.9)
    assert len(owner["evidence_ids"]) == 2
    links = tables["Edge"] if "Edge" in tables else tables[EDGE.name]
    assert ("mentions", topics["The cat"]) in links.select("kind", "to_id").rows()
    left = tables["Revision"].filter(~pl.col("topic_id").is_in([topics["Acme renewal"], topics["The cat"]]))
    assert set(left["provenance"]) == {"import"}
    assert left.height
    assert summary["extractor"]["llm_topics"] == 2
    assert summary["extractor"]["llm_turns_left"] == 1
    [refused] = store.ledger.scan("quarantine").collect().to_dicts()
    assert (refused["file"], refused["line"], refused["reason"]) == ("llm/user:aya/s1", 3, "bad_value")
    assert json.loads(refused["raw"])["title"] == "Wrong"


def test_neither_a_later_night_nor_a_rebuild_nor_a_second_store_asks_again(tmp_path: Path) -> None:
    with a_night(tmp_path / "home", understanding, fails(500)) as (store, script, _):
        first, _ = published(store)
        assert maintain(store, NOW).summary["state_hash"] == first
        assert rebuild(store, "s0", "again").state_hash == first
        second = store_of(tmp_path / "other", script.url)
        shutil.copytree(store.home.answers.parent, second.home.answers.parent)
        summary = maintain(second, NOW).summary
        assert summary["state_hash"] == first
        assert (summary["extractor"]["llm_requests"], summary["extractor"]["llm_cached"]) == (0, 1)
        assert len(script.requests) == 1


def test_applying_a_plan_asks_nothing_and_does_what_was_planned(tmp_path: Path) -> None:
    with serving(understanding, fails(500)) as script:
        store = store_of(tmp_path / "home", script.url)
        with cloned(store) as clone:
            plan = plan_on(clone, NOW)
        write_plan(plan, tmp_path / "plan.json")
        done = apply_plan(store, tmp_path / "plan.json").summary
        assert len(script.requests) == 1
    assert done["state_hash"] == plan.result["s0"].state_hash
    assert done["extractor"]["llm_topics"] == 2
    assert KEY not in (tmp_path / "plan.json").read_text()


def test_a_plan_made_without_answers_is_applied_without_them_though_the_endpoint_is_back(tmp_path: Path) -> None:
    with serving(fails(401), understanding) as script:
        store = store_of(tmp_path / "home", script.url)
        with cloned(store) as clone:
            plan = plan_on(clone, NOW)
        write_plan(plan, tmp_path / "plan.json")
        done = apply_plan(store, tmp_path / "plan.json").summary
        assert len(script.requests) == 1
    assert done["state_hash"] == plan.result["s0"].state_hash
    assert "a plan is being applied" in done["warnings"][0]


def test_without_an_answer_the_night_is_that_of_a_store_without_an_extractor_and_says_so(tmp_path: Path) -> None:
    plain = store_of(tmp_path / "plain", "")
    expected = maintain(plain, NOW).summary["state_hash"]
    with a_night(tmp_path / "home", fails(401, f"bad key {KEY}")) as (_, script, summary):
        assert summary["state_hash"] == expected
        assert len(script.requests) == 1
        assert script.keys == [f"Bearer {KEY}"]
    [warning] = summary["warnings"]
    assert warning.startswith("sessions placed without the language model, wholly or in part: 1, the endpoint is")
    assert "HTTP 401" in warning
    assert summary["extractor"]["llm_sessions_failed"] == 1
    files = [file for file in (tmp_path / "home").rglob("*") if file.is_file()]
    assert [file for file in files if KEY.encode() in file.read_bytes()] == []


def test_a_variable_that_is_not_set_ends_the_night_with_what_to_do(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.delenv("SOME_KEY")
    with serving(understanding) as script:
        store = store_of(tmp_path / "home", script.url)
        with pytest.raises(ExtractorUnavailable, match="SOME_KEY"):
            maintain(store, NOW)
        assert script.requests == []


# The doctor


def looked(home: Path) -> tuple[bool, str]:
    [finding] = [one for one in examine(str(home), datetime.now(UTC)) if one.name == "extractor"]
    return finding.ok, finding.detail


def test_the_doctor_says_whether_an_extractor_is_configured_and_reachable(tmp_path: Path, monkeypatch: Any) -> None:
    home = tmp_path / "home"
    assert looked(home) == (True, "no language model configured; turns are processed without one")
    with serving(understanding) as script:
        store_of(home, script.url)
        assert looked(home) == (True, f"m at {script.url}: reachable")
        (home / "memstate.toml").write_text(f'[extractor]\nbase_url = "{script.url}"\nmodel = "other"')
        assert looked(home) == (True, f"other at {script.url}: reachable; it does not list that model, but m")
    ok, detail = looked(home)
    assert (ok, "unreachable" in detail, "runs work without it" in detail) == (False, True, True)
    (home / "memstate.toml").write_text('[extractor]\nbase_url = "http://x"\nmodel = "m"\napi_key_env = "NO_KEY"')
    monkeypatch.delenv("NO_KEY", raising=False)
    assert looked(home)[0] is False
    assert "NO_KEY" in looked(home)[1]
