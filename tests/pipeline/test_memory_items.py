"""Relations, facts and verification records through nights: any order, rebuild, undo, erase, walls between scopes."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from memstate_core.client import MemoryClient
from memstate_core.run.store import open_store
from memstate_core.serve.options import Options
from tests.core.serve.conftest import served
from tests.pipeline.conftest import run_memstate

pytestmark = pytest.mark.slow

AYA, BEN = {"type": "user", "id": "aya"}, {"type": "user", "id": "ben"}
FIRST, SECOND = "2026-02-01T02:00:00Z", "2026-02-02T02:00:00Z"


def said(name: str, memory: dict[str, Any], scope: dict[str, str] = AYA) -> dict[str, Any]:
    return {"scope": scope, "observation_id": name, "observed_at": "2026-01-02T00:00:00Z", "memory": memory}


def relation(source: str, kind: str, target: str, **more: Any) -> dict[str, Any]:
    return {"type": "relation", "source": source, "relation": kind, "target": target, **more}


def rows(workspace: Path) -> list[dict[str, Any]]:
    own = {"scope": AYA, "observed_at": "2026-01-01T00:00:00Z"}
    noted = {"workspacePath": str(workspace), "filePath": "a.txt", "gitBranch": "main"}
    return [
        own | {"observation_id": "n/1", "title": "Acme", "topic_kind": "company", "summary": "A firm in the harbour."}
        | noted | {"contentSha256": hashlib.sha256(b"one").hexdigest()},
        own | {"observation_id": "n/2", "topic_key": "harbour", "title": "Harbour", "summary": "Where boats lie."},
        own | {"observation_id": "n/3", "topic_key": "quay", "title": "Quay", "summary": "A wall of the harbour."},
        own | {"observation_id": "n/4", "session_id": "s", "actor": "Aya", "turn": 0, "text": "The crane is broken."},
        said("r/1", relation("observation:n/1", "supersedes", "key:harbour")),
        said("r/2", relation("key:harbour", "contradicts", "observation:n/1", valid_until="soon")),
        said("r/3", relation("key:quay", "derives", "key:harbour", sources=["n/2"])),
        said("r/4", relation("key:quay", "contradicts", "key:harbour", valid_until="2026-01-15")),
        said("r/5", relation("observation:n/4", "supports", "observation:r/1")),
        said("f/1", {"type": "fact", "subject": "title:Acme", "predicate": "owner", "object": "Aya", "confidence": 0.7,
                     "valid_from": "2025-01-01", "valid_until": "2025-06-01", "sources": ["n/1", "gone"]}),
        said("f/2", {"type": "fact", "subject": "key:harbour", "predicate": "run_by", "object_item": "title:Acme",
                     "object_kind": "company"}),
        said("v/1", {"type": "verification", "target": "key:quay", "status": "warning", "message": "ask again"}),
        said("b/1", relation("observation:n/1", "contradicts", "key:harbour"), BEN),
        {"scope": BEN, "observed_at": "2026-01-01T00:00:00Z", "topic_key": "harbour", "title": "Harbour of Ben"},
    ]  # fmt: skip


def made(folder: Path, dumps: list[list[dict[str, Any]]]) -> Path:
    """A home that has imported these dumps and published a night."""
    home, workspace = folder / "home", folder.parent / "workspace"
    home.mkdir(parents=True)
    (home / "memstate.toml").write_text(f"[verification]\nroots = [{json.dumps(str(workspace))}]\n")
    for dump in dumps:
        path = folder / "dump.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in dump))
        assert run_memstate(home, "import", str(path), "--json").document["quarantined"] == 0
    night(home, FIRST)
    return home


def night(home: Path, now: str) -> dict[str, Any]:
    done = run_memstate(home, "maintain", "--now", now, "--json")
    assert done.code == 0, done.stderr
    document: dict[str, Any] = done.document
    return document


def document(home: Path, *command: str) -> dict[str, Any]:
    answer = run_memstate(home, *command, "--json")
    assert answer.code == 0, answer.stderr
    found: dict[str, Any] = answer.document
    return found


def pack(home: Path, *options: str) -> dict[str, Any]:
    return document(home, "context", "Who owns Acme, the harbour and the quay?", "--budget", "600", "--scope",
                    "user:aya", *options)  # fmt: skip


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder beside the workspace that memories note."""
    folder = tmp_path_factory.mktemp("items")
    (folder / "workspace").mkdir()
    (folder / "workspace" / "a.txt").write_bytes(b"one")
    return folder


@pytest.fixture(scope="module")
def home(base: Path) -> Path:
    return made(base / "first", [rows(base / "workspace")])


def test_relations_and_facts_are_edges_and_fields_of_the_topics_that_they_name(home):
    facts = document(home, "facts", "--scope", "user:aya", "--history")["facts"]
    stated = {(each["subject"], each["predicate"], str(each["object"])) for each in facts}
    assert {
        ("Acme", "supersedes", "Harbour"),
        ("Harbour", "contradicts", "Acme"),
        ("Quay", "derives", "Harbour"),
        ("Harbour", "run_by", "Acme"),
        ("Acme", "owner", "Aya"),
    } <= stated
    assert not [each for each in stated if each[0] == "Verification records"]
    [owner] = [each for each in facts if each["predicate"] == "owner"]
    assert (owner["confidence"], owner["valid_until"], owner["source_event_ids"]) == (
        0.7,
        "2025-06-01T00:00:00Z",
        ["f/1"],
    )
    assert not document(home, "facts", "--subject", "Acme", "--predicate", "owner")["facts"]


def test_the_item_of_a_relation_may_be_a_turn_or_another_relation(home):
    found = document(home, "memory", "probe-relations", "observation:n/4", "--scope", "user:aya")
    assert [(each["relation"], each["direction"], each["title"]) for each in found["relations"]] == [
        ("supports", "out", "Acme")
    ]


def test_a_relation_that_ended_is_not_in_force(home):
    found = document(home, "memory", "probe-relations", "key:quay", "--scope", "user:aya")
    assert {each["relation"]: each["active"] for each in found["relations"]} == {"derives": True, "contradicts": False}


def test_a_pack_warns_of_what_speaks_against_its_items_and_leaves_nothing_out(home):
    packed = pack(home, "--branch", "dev")
    titles = {each["topic_id"]: each["title"] for each in packed["citations"] if each["kind"] == "topic"}
    found = {(each["kind"], titles[each["target"]]) for each in packed["recall_warnings"]}
    assert found == {
        ("temporal_contradiction", "Acme"),
        ("temporal_contradiction", "Harbour"),
        ("temporal_supersession", "Harbour"),
        ("citation_missing", "Acme"),
        ("branch_drift", "Acme"),
    }
    assert {(each["check"], each["status"]) for each in packed["verification_warnings"]} == {
        ("citations", "failed"),
        ("given", "warning"),
    }
    assert packed["text"] == pack(home)["text"]
    assert {each["kind"] for each in pack(home, "--as-of", "2026-01-01T12:00:00Z")["recall_warnings"]} <= {
        "branch_drift"
    }


def test_a_file_that_changes_is_noticed_by_the_next_night_and_the_history_is_kept(base, home, tmp_path):
    again = tmp_path / "home"
    shutil.copytree(home, again)
    file = base / "workspace" / "a.txt"
    file.write_bytes(b"two")
    try:
        assert document(again, "memory", "verify", "--dry-run")["recorded"] == 0
        changed = night(again, SECOND)
        assert {each["kind"] for each in pack(again)["recall_warnings"]} >= {"file_hash_mismatch"}
        rebuilt = document(again, "rebuild")
    finally:
        file.write_bytes(b"one")
    assert rebuilt["state_hash"] == changed["state_hash"]
    assert "file_hash_mismatch" not in {each["kind"] for each in pack(home)["recall_warnings"]}
    [topic] = [each for each in document(again, "export")["topics"] if each["topic_kind"] == "memory:verification"]
    [history] = [field["history"] for name, field in topic["fields"].items() if name.startswith("file ")]
    assert [each["value"]["status"] for each in history] == ["failed", "passed"]


def test_the_state_does_not_depend_on_order_or_splitting_of_dumps(base, home):
    shuffled = rows(base / "workspace")
    random.Random(7).shuffle(shuffled)
    other = made(base / "second", [shuffled[:5], shuffled[5:], shuffled[:3]])
    assert document(other, "status")["state_hash"] == document(home, "status")["state_hash"]


def test_a_night_with_nothing_new_adds_no_records(home, tmp_path):
    again = tmp_path / "home"
    shutil.copytree(home, again)
    assert night(again, SECOND)["counts"]["evidence"] == 0
    assert document(again, "status")["evidence"] == document(home, "status")["evidence"]


def test_dependents_of_a_changed_topic_are_stale(home, tmp_path):
    again = tmp_path / "home"
    shutil.copytree(home, again)
    dump = tmp_path / "late.jsonl"
    late = {"scope": AYA, "observed_at": "2026-02-01T12:00:00Z", "topic_key": "harbour", "title": "Harbour"}
    dump.write_text(json.dumps(late | {"fields": [{"name": "depth", "value": "4 m"}]}))
    run_memstate(again, "import", str(dump))
    night(again, SECOND)
    stale = [each for each in pack(again)["verification_warnings"] if each["check"] == "dependents"]
    assert [(each["status"], each["message"][:15]) for each in stale] == [("stale", "Harbour changed")]


def test_erasing_an_observation_erases_the_records_about_it(home, tmp_path):
    again = tmp_path / "home"
    shutil.copytree(home, again)
    done = run_memstate(again, "erase", "--observation", "n/1", "--yes", "--why", "asked", "--json")
    assert done.code == 0, done.stderr
    left = [path for path in again.rglob("*") if path.is_file() and b"has the noted hash" in path.read_bytes()]
    assert not left
    assert not [each for each in document(again, "facts", "--history")["facts"] if each["predicate"] == "supersedes"]


def test_another_scope_sees_nothing_and_its_references_lead_to_nothing(home):
    found = document(home, "context", "Harbour", "--budget", "300", "--scope", "user:ben")
    assert found["recall_warnings"] == found["verification_warnings"] == []
    facts = document(home, "facts", "--scope", "user:ben", "--history")["facts"]
    assert not [each for each in facts if each["object_id"] is not None and each["object"] != "Harbour of Ben"]


def test_http_the_typed_client_and_ingest_take_the_same(home, tmp_path):
    again = tmp_path / "home"
    shutil.copytree(home, again)
    with served(open_store(again, {}), Options(record=False)) as raw, MemoryClient(raw.url) as memory:
        answer = memory.context("Harbour", 300, scope="user:aya", workspace={"branch": "dev"})
        assert "temporal_supersession" in {each.kind for each in answer.recall_warnings}
        assert answer.verification_warnings
