"""Every form of `memory` in one real store: copies, rebuilds, kills, plans, undo and erasure treat all of them alike.

What each form says is in `form_homes`; a further form is tested as soon as it is registered.
"""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memstate_core.model.forms.form import Form
from memstate_core.model.forms.registry import FORMS
from memstate_core.model.text import parse_moment
from memstate_core.night.verify import verify_store
from memstate_core.run.store import Store, open_store
from memstate_core.serve.options import Options
from memstate_core.state.graph import EDGE, REVISION, TOPIC
from tests import warm
from tests.core.night.checks.damage import Damage, Home, delete, update
from tests.core.serve.conftest import Client, served
from tests.core.serve.mcp.calls import call, over_http
from tests.core.serve.scopes.two_scopes import key_for
from tests.pipeline.conftest import clean_environment, fork_memstate
from tests.pipeline.erased_homes import dump, erase, left
from tests.pipeline.form_homes import (
    FIRST,
    NEW,
    OLD,
    POLICY,
    SECOND,
    SESSION,
    THIRD,
    answers,
    document,
    imported,
    memories,
    names_of,
    night,
    own_words,
)
from tests.pipeline.test_crash import DIE_AT, TURNING_POINTS

pytestmark = pytest.mark.slow

FORGETFUL = """topic_count_soft_limit = 1
summarise_salience_threshold = 9.0
detach_salience_threshold = 9.0
forget_salience_threshold = 9.0
"""
UNREAD = "zq7anever"
"""A date that is none: kept in the record, and shown by nothing that reads."""
LISTED = {
    "ledger/evidence/*": "evidence/",
    "ledger/transitions/*": "transitions/",
    "inbox/processed/*": "processed/",
    "dagster/*": "dagster/",
    "snapshots/*/graph.kuzu": "`graph.kuzu`",
    "snapshots/*/evidence.parquet": "`evidence.parquet`",
    "snapshots/*/topics.parquet": "`topics.parquet`",
    "snapshots/*/facts/*": "`facts/`",
}
"""Where text of memory may be, and how the reference of the files of a store names each place."""
form_by_form = pytest.mark.parametrize("form", FORMS, ids=lambda form: form.form())


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
    exported, facts, pack, resources, relations = answers(calm)
    kinds = {each["topic_kind"] for each in exported["topics"]}
    assert {"memory:core_block", "memory:session_state", "memory:resource", "memory:verification"} <= kinds
    assert {"owner_zq7apredicate", "supersedes", "contradicts"} <= {each["predicate"] for each in facts["facts"]}
    assert "Ask zq7acontent first." in pack["text"]
    assert "boat:/zq7auri" in [each["uri"] for each in resources["resources"]]
    assert [each["relation"] for each in relations["relations"]] == ["extends", "supersedes"]
    states = {each["title"]: each["state"] for each in exported["topics"] if each["topic_kind"] == SESSION}
    assert (states["zq7asession"], states["zq7csession"]) == ("archived", "active")


def test_a_copied_folder_opened_elsewhere_answers_alike(calm: Path, tmp_path: Path) -> None:
    copied = Path(shutil.copytree(calm, tmp_path / "elsewhere" / "copy"))
    assert answers(copied) == answers(calm)
    assert fork_memstate(copied, "verify", "--deep").code == 0


def test_a_rebuild_has_the_same_state(calm: Path, expected: str, tmp_path: Path) -> None:
    again = Path(shutil.copytree(calm, tmp_path / "home"))
    assert document(again, "rebuild")["state_hash"] == expected
    assert fork_memstate(again, "verify", "--deep").code == 0


@pytest.mark.parametrize("point", ["before the graph is written", "with its name, before the ledger knows"])
def test_a_night_that_was_killed_and_repeated_has_the_same_state(own: Path, expected: str, point: str) -> None:
    module, name = TURNING_POINTS[point]
    killed = warm.run(["-c", DIE_AT.format(module=module, name=name, night=SECOND), str(own)], clean_environment())
    assert killed.returncode == 137, killed.stderr
    assert night(own, SECOND) == expected
    assert fork_memstate(own, "verify").code == 0


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
    assert fork_memstate(again, "verify", "--deep").code == 0


def session_of(home: Path) -> dict[str, Any]:
    found: list[dict[str, Any]] = document(home, "export")["topics"]
    return next(each for each in found if each["title"] == "zq7asession")


def histories(topic: dict[str, Any]) -> dict[str, Any]:
    return {name: field["history"] for name, field in topic["fields"].items()}


# Form by form


@pytest.fixture(scope="module")
def answered(calm: Path) -> str:
    return json.dumps(answers(calm))


@form_by_form
def test_what_is_compared_has_each_form(answered: str, form: type[Form]) -> None:
    words = [word for word in own_words(form, "zq7a") if word != UNREAD]
    assert words
    assert [word for word in words if word not in answered] == []


def shown(home: Path) -> dict[str, str]:
    """All topics with their states, histories and edges, by id and without what time alone changes."""

    def plain(topic: dict[str, Any]) -> dict[str, Any]:
        fields = {name: (field["detached"], field["history"]) for name, field in topic["fields"].items()}
        return {name: topic[name] for name in ("title", "state", "edges", "observation_ids")} | {"fields": fields}

    return {each["id"]: json.dumps(plain(each)) for each in document(home, "export")["topics"]}


@pytest.fixture(scope="module")
def undone(calm: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], ...]:
    """The topics before a night that archives and detaches what it may, after it, and when all of it was undone."""
    again = Path(shutil.copytree(calm, tmp_path_factory.mktemp("undone") / "home"))
    before = shown(again)
    (again / "memstate.toml").write_text(POLICY + FORGETFUL)
    run = document(again, "maintain", "--now", THIRD)["run_id"]
    after = shown(again)
    document(again, "undo", "--run", run, "--now", THIRD)
    assert fork_memstate(again, "verify").code == 0
    return before, after, shown(again)


@form_by_form
def test_undo_of_a_forgetful_night_leaves_each_form_as_it_was(
    undone: tuple[dict[str, str], ...], form: type[Form]
) -> None:
    before, after, back = undone
    words = own_words(form, "zq7a") + own_words(form, "zq7c")
    mine = [each for each, text in before.items() if any(word in text for word in words)]
    assert mine
    assert [back[each] for each in mine] == [before[each] for each in mine]
    assert ([after[each] for each in mine] != [before[each] for each in mine]) != form.SPARED


@pytest.fixture(scope="module")
def places(calm: Path) -> dict[str, list[str]]:
    """The files that have words of the forms, with the words."""
    return left(calm, [word for form in FORMS for word in own_words(form, "zq7a")])


@form_by_form
def test_the_text_of_each_form_is_where_the_reference_says(places: dict[str, list[str]], form: type[Form]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "pages" / "reference" / "store.md").read_text()
    assert [name for name in LISTED.values() if name not in page] == []
    words = own_words(form, "zq7a")
    holding = [name for name, found in places.items() if set(found) & set(words)]
    assert "ledger" in {name.split("/")[0] for name in holding}
    assert [name for name in holding if not any(fnmatch(name, listed) for listed in LISTED)] == []


@form_by_form
def test_nothing_is_left_of_the_erased_records_of_each_form(calm: Path, tmp_path: Path, form: type[Form]) -> None:
    again = Path(shutil.copytree(calm, tmp_path / "home"))
    words, store = own_words(form, "zq7a"), open_store(again, {})
    assert left(again, words)
    for name in names_of(form, "zq7a"):
        erase(store, "observation", name)
    assert left(again, words) == {}
    others = [own_words(other, "zq7a")[0] for other in FORMS if other is not form]
    assert {word for found in left(again, others).values() for word in found} == set(others)
    assert all(each.passed for found in verify_store(store).values() for each in found)


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
    assert fork_memstate(again, "verify", "--deep").code == 0


# Damage that digests do not show, since they are corrected


def emptied(rows: pl.DataFrame) -> pl.DataFrame:
    assert rows.height
    return rows.clear()


VALUE = "r.part = 'field' AND r.rank = 0 AND "
DAMAGED: dict[str, tuple[str, Damage]] = {
    "its text": ("resource", update(REVISION, f"{VALUE}r.value_json CONTAINS 'zq7atext'", value_json='"Other"')),
    "its content": (
        "core_block",
        update(REVISION, f"{VALUE}r.value_json CONTAINS 'zq7acontent'", value_json='"Other"'),
    ),
    "its goal": ("session_state", update(REVISION, f"{VALUE}r.value_json CONTAINS 'zq7agoal'", value_json='"Other"')),
    "its state": ("session_state", update(TOPIC, "r.title = 'zq7asession'", state="active", archived=False)),
    "a record": ("verification", update(REVISION, f"{VALUE}r.name STARTS WITH 'zq7acheck '", value_json="{}")),
    "its object": ("fact", update(REVISION, "r.value_json CONTAINS 'zq7aobject'", value_json='"Other"')),
    "it is gone": ("relation", delete(EDGE, "r.kind = 'supersedes'")),
    "it has ended": ("relation", update(EDGE, "r.kind = 'contradicts'", valid_until=parse_moment(FIRST))),
    "superseded evidence": ("", lambda home: home.file("facts/superseded.parquet", emptied)),
    "notes": ("", lambda home: home.file("notes.parquet", emptied)),
}
"""Damage to each form, by its name, and to files beside the graph."""


def test_every_form_is_damaged() -> None:
    assert {form for form, _ in DAMAGED.values() if form} == {form.form() for form in FORMS}


@pytest.mark.parametrize("name", DAMAGED)
def test_verify_names_damage_of_every_form(calm: Path, tmp_path: Path, name: str) -> None:
    damaged = Home(Path(shutil.copytree(calm, tmp_path / "home")))
    DAMAGED[name][1](damaged)
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


async def pry(tools: Any) -> bytes:
    """All that the tools that read say."""
    question = {"query": "Who runs the firm at the quay, and what are the rules?"}
    given = [question | {"pending": True, "evidence_k": 100}, question | {"budget": 4000}]
    found = [await tools.call_tool("memory_query", each) for each in given]
    found.append(await tools.call_tool("memory_resources", {}))
    assert not any(each.is_error for each in found)
    return b"".join(part.text.encode() for each in found for part in each.content)


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
    tomorrow = datetime.now(UTC) + timedelta(days=1)  # years later the session would be complete
    assert document(again, "maintain", "--now", tomorrow.isoformat())["counts"]["evidence"] >= len(given)
    with served(open_store(again, {}), Options(record=False)) as client:
        client.until_ready()
        mine = asked(client, cleo)
        seen = [asked(client, key) for key in others]
        owned = [each["topic_id"] for each in client.get("/v1/topics?limit=100", X_API_Key=cleo).document["topics"]]
        assert len(owned) > 3
        by_id = [client.get(f"/v1/topics/{each}{more}", X_API_Key=key).status
                 for each in owned for more in ("", "/history", "?pending=true") for key in others]  # fmt: skip
        assert set(by_id) == {404}
        seen += [call(over_http(client, key), pry) for key in others]
    lacking = [form.form() for form in FORMS if not any(word.encode() in mine for word in own_words(form, "zq7e"))]
    assert not lacking, "the scope's own key sees every form"
    assert not [each for each in (*seen_before, *seen) if b"zq7e" in each]
