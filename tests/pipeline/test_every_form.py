"""Every form of `memory` in one real store: copies, rebuilds, kills, plans, undo and erasure treat all of them alike.

The records derive from `SAID`, which must have an entry for each form of the registry.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memstate_core.model.forms.registry import FORMS
from memstate_core.model.text import parse_moment
from memstate_core.night.verify import verify_store
from memstate_core.run.store import Store, open_store
from memstate_core.serve.options import Options
from memstate_core.state.graph import EDGE, REVISION, TOPIC
from tests import warm
from tests.core.night.checks.damage import Damage, Home, delete, update
from tests.core.serve.conftest import Client, served
from tests.core.serve.scopes.two_scopes import key_for
from tests.core.serve.test_mcp import call, over_http
from tests.pipeline.conftest import clean_environment, run_memstate
from tests.pipeline.erased_homes import dump, left
from tests.pipeline.test_crash import DIE_AT, TURNING_POINTS

pytestmark = pytest.mark.slow

AYA, BEN = {"type": "user", "id": "aya"}, {"type": "user", "id": "ben"}
FIRST, SECOND, THIRD = (f"2026-03-0{day}T02:00:00Z" for day in (1, 2, 3))
SESSION = "memory:session_state"
POLICY = "[policy]\nsession_complete_after_days = 10\n"
SAID: dict[str, list[dict[str, Any]]] = {
    "core_block": [{"label": "rules {m}label", "content": "Ask {m}content first.", "authority": 3}],
    "session_state": [
        {"session_id": "{m}session", "current_goal": "Find {m}goal", "summary": "So far {m}summary",
         "working_set": ["{m}set.md"]}
    ],
    "resource": [
        {"uri": "boat:/{m}uri", "title": "Manual {m}title", "kind": "doc", "content": "The winch {m}text turns left.",
         "parent_uri": "boat:/{m}parent"}
    ],
    "fact": [
        {"subject": "title:Firm {m}subject", "predicate": "owner_{m}predicate", "object": "Aya {m}object",
         "confidence": 0.7, "valid_from": "2026-01-01", "sources": ["{m}source"]},
        {"subject": "key:{m}harbour", "predicate": "run_by", "object_item": "title:Firm {m}subject"},
    ],
    "relation": [
        {"source": "key:{m}harbour", "relation": "supersedes", "target": "title:Firm {m}subject"},
        {"source": "resource:boat:/{m}uri", "relation": "contradicts", "target": "block:rules {m}label",
         "valid_until": "after {m}never"},
    ],
    "verification": [
        {"target": "key:{m}harbour", "status": "warning", "message": "Ask {m}message again.", "check": "{m}check"}
    ],
}  # fmt: skip
"""What each form says, with a mark in every text that it has."""


def memories(mark: str) -> list[dict[str, Any]]:
    """The forms with this mark."""
    texts = ((form.form(), json.dumps(each)) for form in FORMS for each in SAID[form.form()])
    return [{"type": name} | json.loads(text.replace("{m}", mark)) for name, text in texts]


def rows(mark: str, scope: dict[str, str], day: str) -> list[dict[str, Any]]:
    """Records of a scope, all of one session and one actor."""
    base = {"scope": scope, "observed_at": day, "session_id": f"{mark}session", "actor": f"{mark}actor"}
    said = [base | {"observation_id": f"{mark}o{number}", "memory": each} for number, each in enumerate(memories(mark))]
    quay = base | {"topic_key": f"{mark}harbour", "title": f"Quay {mark}title"}
    depth = {"name": f"{mark}field", "value": f"{mark}value"}
    notes = {"filePath": f"{mark}file.md", "gitBranch": f"{mark}branch"}
    old = quay | {"observation_id": f"{mark}h", "fields": [depth | {"valid_from": "2025-12-01"}]} | notes
    return [*said, old, quay | {"observation_id": f"{mark}h2", "fields": [depth | {"value": "deeper"}]}]


OLD = rows("zq7a", AYA, "2026-02-10T00:00:00Z"), rows("zq7b", BEN, "2026-02-28T00:00:00Z")
NEW = rows("zq7c", AYA, "2026-03-01T12:00:00Z"), rows("zq7d", BEN, "2026-01-01T00:00:00Z")
"""What the first night and the second one find, by dump; the last dump is late."""


def document(home: Path, *command: str) -> dict[str, Any]:
    answer = run_memstate(home, *command, "--json")
    assert answer.code == 0, answer.stderr + answer.stdout
    found: dict[str, Any] = answer.document
    return found


def imported(home: Path, given: list[dict[str, Any]]) -> None:
    path = dump(home.parent / "dump.jsonl", given)
    assert document(home, "import", str(path))["accepted"] == len(given)
    path.unlink()


def night(home: Path, now: str) -> str:
    return str(document(home, "maintain", "--now", now)["state_hash"])


def answers(home: Path) -> list[dict[str, Any]]:
    """What the commands that read say, without what follows from the folder."""
    asked = [
        ("export",),
        ("facts", "--history"),
        ("context", "Who runs the firm at the quay?", "--budget", "900", "--scope", "user:aya"),
        ("memory", "browse-resources", "--all", "--scope", "user:aya"),
        ("memory", "probe-relations", "key:zq7aharbour", "--scope", "user:aya"),
    ]
    return [document(home, *command) for command in asked]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store after a night that completed a session, with new records of every form that wait for the next night."""
    made = tmp_path_factory.mktemp("forms") / "home"
    made.mkdir()
    (made / "memstate.toml").write_text(POLICY)
    imported(made, [*OLD[0], *OLD[1]])
    night(made, FIRST)
    imported(made, [*NEW[0], *NEW[1]])
    return made


@pytest.fixture(scope="module")
def calm(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store after the next night, in which nothing happened; `hash` beside it has its state hash."""
    again = Path(shutil.copytree(home, tmp_path_factory.mktemp("calm") / "home"))
    (again.parent / "hash").write_text(night(again, SECOND))
    return again


@pytest.fixture(scope="module")
def expected(calm: Path) -> str:
    return (calm.parent / "hash").read_text()


@pytest.fixture
def own(home: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(home, tmp_path / "home"))


def test_the_store_has_every_form(calm: Path) -> None:
    assert SAID.keys() == {form.form() for form in FORMS}
    exported, facts, pack, resources, relations = answers(calm)
    kinds = {each["topic_kind"] for each in exported["topics"]}
    assert {"memory:core_block", "memory:session_state", "memory:resource", "memory:verification"} <= kinds
    assert {"owner_zq7apredicate", "supersedes", "contradicts"} <= {each["predicate"] for each in facts["facts"]}
    assert "Ask zq7acontent first." in pack["text"]
    assert "boat:/zq7auri" in [each["uri"] for each in resources["resources"]]
    assert [each["relation"] for each in relations["relations"]] == ["supersedes"]
    states = {each["title"]: each["state"] for each in exported["topics"] if each["topic_kind"] == SESSION}
    assert (states["zq7asession"], states["zq7csession"]) == ("archived", "active")


def test_a_copied_folder_opened_elsewhere_answers_alike(calm: Path, tmp_path: Path) -> None:
    copied = Path(shutil.copytree(calm, tmp_path / "elsewhere" / "copy"))
    assert answers(copied) == answers(calm)
    assert run_memstate(copied, "verify", "--deep").code == 0


def test_a_rebuild_has_the_same_state(calm: Path, expected: str, tmp_path: Path) -> None:
    again = Path(shutil.copytree(calm, tmp_path / "home"))
    assert document(again, "rebuild")["state_hash"] == expected
    assert run_memstate(again, "verify", "--deep").code == 0


@pytest.mark.parametrize("point", ["before the graph is written", "with its name, before the ledger knows"])
def test_a_night_that_was_killed_and_repeated_has_the_same_state(own: Path, expected: str, point: str) -> None:
    module, name = TURNING_POINTS[point]
    killed = warm.run(["-c", DIE_AT.format(module=module, name=name, night=SECOND), str(own)], clean_environment())
    assert killed.returncode == 137, killed.stderr
    assert night(own, SECOND) == expected
    assert run_memstate(own, "verify").code == 0


def test_a_plan_is_applied_as_planned(own: Path, expected: str, tmp_path: Path) -> None:
    plan = str(tmp_path / "plan.json")
    document(own, "plan", "--now", SECOND, "--output", plan)
    assert document(own, "apply", plan)["state_hash"] == expected


def test_another_order_of_arrival_has_the_same_state(expected: str, tmp_path: Path) -> None:
    """The dumps of each night the other way round, row by row, and one of them twice."""
    other = tmp_path / "home"
    other.mkdir()
    (other / "memstate.toml").write_text(POLICY)
    imported(other, OLD[1][::-1])
    imported(other, OLD[0][::-1])
    night(other, FIRST)
    imported(other, NEW[1][::-1])
    imported(other, NEW[0][::-1])
    assert document(other, "import", str(dump(tmp_path / "again.jsonl", OLD[0])))["accepted"] == 0
    assert night(other, SECOND) == expected


def test_undo_of_a_completed_session_holds_through_a_rebuild(calm: Path, tmp_path: Path) -> None:
    again = Path(shutil.copytree(calm, tmp_path / "home"))
    session = session_of(again)
    assert session["state"] == "archived"
    document(again, "undo", session["id"], "--now", THIRD)
    back = session_of(again)
    assert (back["state"], histories(back)) == ("active", histories(session))
    before = document(again, "status")["state_hash"]
    assert document(again, "rebuild")["state_hash"] == before
    assert session_of(again)["state"] == "active"
    assert run_memstate(again, "verify", "--deep").code == 0


def session_of(home: Path) -> dict[str, Any]:
    found: list[dict[str, Any]] = document(home, "export")["topics"]
    return next(each for each in found if each["title"] == "zq7asession")


def histories(topic: dict[str, Any]) -> dict[str, Any]:
    return {name: field["history"] for name, field in topic["fields"].items()}


@pytest.mark.parametrize(
    "subject",
    [("--session", "zq7asession"), ("--actor", "zq7aactor"), ("--scope", "user:aya")],
    ids=["session", "actor", "scope"],
)
def test_nothing_of_an_erased_subject_is_left_in_any_byte(calm: Path, tmp_path: Path, subject: tuple[str, str]) -> None:
    again = Path(shutil.copytree(calm, tmp_path / "home"))
    marks = ["zq7a", "zq7c"] if subject[0] == "--scope" else ["zq7a"]
    assert len(left(again, marks)) > 5
    document(again, "erase", *subject, "--yes", "--why", "asked", "--now", THIRD)
    assert left(again, marks) == {}
    assert left(again, ["zq7bcontent"]), "another scope keeps its own"
    assert run_memstate(again, "verify", "--deep").code == 0


# Damage that digests do not show, since they are corrected


def emptied(rows: pl.DataFrame) -> pl.DataFrame:
    assert rows.height
    return rows.clear()


VALUE = "r.part = 'field' AND r.rank = 0 AND "
DAMAGED: dict[str, Damage] = {
    "the text of a resource": update(REVISION, f"{VALUE}r.value_json CONTAINS 'zq7atext'", value_json='"Other"'),
    "the text of a core block": update(REVISION, f"{VALUE}r.value_json CONTAINS 'zq7acontent'", value_json='"Other"'),
    "the goal of a session": update(REVISION, f"{VALUE}r.value_json CONTAINS 'zq7agoal'", value_json='"Other"'),
    "the state of a session": update(TOPIC, "r.title = 'zq7asession'", state="active", archived=False),
    "a verification record": update(REVISION, f"{VALUE}r.name STARTS WITH 'zq7acheck '", value_json="{}"),
    "a fact": update(REVISION, "r.value_json CONTAINS 'zq7aobject'", value_json='"Other"'),
    "a relation that is gone": delete(EDGE, "r.kind = 'supersedes'"),
    "a relation that has ended": update(EDGE, "r.kind = 'contradicts'", valid_until=parse_moment(FIRST)),
    "superseded evidence": lambda home: home.file("facts/superseded.parquet", emptied),
    "notes": lambda home: home.file("notes.parquet", emptied),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_verify_names_damage_of_every_form(calm: Path, tmp_path: Path, name: str) -> None:
    damaged = Home(Path(shutil.copytree(calm, tmp_path / "home")))
    DAMAGED[name](damaged)
    failed = {each.name: each.detail for each in verify_store(damaged.store)["s0/2"] if not each.passed}
    if name == "notes":
        assert failed == {"L3 rebuild": "notes.parquet differs from the notes in the ledger"}
    else:
        assert failed.keys() - {"L3 rebuild"}, "nothing but the fold of the whole ledger sees it"


# A real server


def asked(client: Client, key: str) -> bytes:
    """All that the routes that read say to a key."""
    paths = ["/v1/topics?limit=100", "/v1/facts?history=true&limit=100", "/v1/resources?content=true"]
    question = {"q": "Who runs the firm at the quay, and what are the rules?"}
    found = [client.get(path, X_API_Key=key) for path in paths]
    found.append(client.post("/v1/query", question | {"pending": True, "evidence_k": 100}, X_API_Key=key))
    found.append(client.post("/v1/context", question | {"budget": 4000}, X_API_Key=key))
    assert [each.status for each in found] == [200] * len(found), [each.content for each in found]
    return b"\n".join(each.content for each in found)


def keys(store: Store) -> tuple[str, str, str]:
    """Keys for the scope that writes, and for two others, one of which owns nothing."""
    scopes = ["user:cleo", "user:ben", "user:nobody"]
    one, two, three = (key_for(store, f"key{n}", "write", [scope], n) for n, scope in enumerate(scopes, start=1))
    return one, two, three


@pytest.mark.parametrize("door", ["http", "mcp"])
def test_a_server_takes_every_form_and_a_foreign_key_sees_none_of_it(calm: Path, tmp_path: Path, door: str) -> None:
    again = Path(shutil.copytree(calm, tmp_path / "home"))
    store = open_store(again, {})
    cleo, *others = keys(store)
    given = [{"scope": {"type": "user", "id": "cleo"}, "memory": each} for each in memories("zq7e")]
    with served(store, Options(poll_seconds=0.05, record=False)) as client:
        client.until_ready()
        if door == "http":
            stored = client.post("/v1/ingest", given, X_API_Key=cleo)
            assert stored.status == 202, stored.content
        else:

            async def hand_over(tools: Any) -> list[Any]:
                return [await tools.call_tool("memory_ingest", {"memory": each["memory"]}) for each in given]

            assert not any(each.is_error for each in call(over_http(client, cleo), hand_over))
        seen_before = [asked(client, key) for key in others]
    now = "2030-01-01T02:00:00Z"
    assert document(again, "maintain", "--now", now)["counts"]["evidence"] >= len(given)
    with served(open_store(again, {}), Options(record=False)) as client:
        client.until_ready()
        mine = asked(client, cleo)
        seen = [asked(client, key) for key in others]
    for word in (b"content", b"text", b"object", b"harbour", b"label", b"uri"):
        assert b"zq7e" + word in mine
    assert not [each for each in (*seen_before, *seen) if b"zq7e" in each]
