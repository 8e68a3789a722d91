"""Merges of an older version judged again by today's model, on a real store."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memstate_core.model.ledger_tables import DECISION
from memstate_core.night.corrections import correct
from memstate_core.night.rejudge import Rejudged, rejudge
from memstate_core.revise.merge_history import merge_documents
from memstate_core.revise.pair_outcomes import KEPT_APART, NOT_COMPARED, UNLIKELY
from memstate_core.revise.scope_matches import HELD_BACK
from memstate_core.revise.verdicts import verdict_decisions
from memstate_core.run.served_state import read_served
from memstate_core.run.store import Store, open_store
from tests.core.frames import filled
from tests.core.night.corrections import undo
from tests.core.night.older_merges import merge_as_before
from tests.core.revise.nights import Topic, ids, night_without_duplicates, record
from tests.core.revise.test_steps import CROWD, OWNED, QUARTZ, TOPICS
from tests.core.strategies import day

pytestmark = pytest.mark.slow

MORE: dict[str, Topic] = {
    "quartz": {"title": QUARTZ["title"]},
    "deal": {"title": "Amber glacier", "summary": "Before the snow", "topic_kind": "deal"} | OWNED,
    "task": {"title": "Amber glacier", "summary": "Before the snow", "topic_kind": "task"} | OWNED,
}
CLEAN = {"same-2": "same-1", "same-3": "same-1"}
TITLES, FIELDS = HELD_BACK[1], HELD_BACK[3]
WRONG = {
    "crowd-Oslo-tax return": ("crowd-Graz-tax return", TITLES),
    "key-2": ("key-1", KEPT_APART),
    "week-2": ("week-1", FIELDS),
    "task": ("deal", NOT_COMPARED),
}
"""Topics that an older version merged and today's would not: into which topic, and why not."""
FORGETFUL = {f"MEMSTATE_POLICY_{step}_SALIENCE_THRESHOLD": "10" for step in ("SUMMARISE", "DETACH", "FORGET")} | {
    "MEMSTATE_POLICY_TOPIC_COUNT_SOFT_LIMIT": "0"
}
"""Everything is archived at once."""
STRICT = {"MEMSTATE_POLICY_MERGE_PROBABILITY": "1"}


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A store that an older version has merged, and the topics of its observations before that."""
    store = open_store(tmp_path_factory.mktemp("older") / "home", {})
    record(store, MORE | TOPICS | CROWD, 1)
    night_without_duplicates(store, 2)
    named = ids(store)
    made = {**CLEAN, **{dropped: survivor for dropped, (survivor, _) in WRONG.items()}}
    merge_as_before(store, [(named[dropped], named[survivor]) for dropped, survivor in made.items()], day(3))
    return store.home.root, named


@pytest.fixture
def store(older: tuple[Path, dict[str, str]], tmp_path: Path) -> Store:
    return open_store(Path(shutil.copytree(older[0], tmp_path / "home")), {})


@pytest.fixture
def named(older: tuple[Path, dict[str, str]]) -> dict[str, str]:
    return older[1]


def judged(store: Store) -> Rejudged:
    return rejudge(store, read_served(store)["s0"])


def refused(found: Rejudged, named: dict[str, str]) -> dict[str, dict[str, Any]]:
    """The listed merges, by the name of the dropped topic."""
    names = {topic: name for name, topic in named.items()}
    return {names[merge["dropped"]["id"]]: merge for merge in found.refused}


def files(home: Path) -> dict[str, bytes]:
    """Everything in the store but the embedding cache."""
    return {
        str(path.relative_to(home)): path.read_bytes()
        for path in sorted(home.rglob("*"))
        if path.is_file() and path.relative_to(home).parts[0] != "cache"
    }


def test_merges_that_today_s_model_would_not_make_are_listed_with_the_reason(
    store: Store, named: dict[str, str]
) -> None:
    before = files(store.home.root)
    found = judged(store)
    listed = refused(found, named)
    assert {name: merge["why"] for name, merge in listed.items()} == {name: why for name, (_, why) in WRONG.items()}
    assert (found.judged, found.unjudged) == (len(CLEAN) + len(WRONG), 0)
    assert listed["task"]["today"] is None
    assert found.refused[0]["dropped"]["id"] == named["task"]
    assert 0 <= listed["week-2"]["today"] <= 1
    assert listed["crowd-Oslo-tax return"]["apart"] == {"dropped": "tax return Oslo", "survivor": "tax return Graz"}
    known = {merge["id"]: merge for merge in merge_documents([read_served(store)["s0"]])}
    assert all(merge.items() >= known[merge["id"]].items() for merge in found.refused)
    assert files(store.home.root) == before


def test_the_store_s_present_settings_judge(store: Store, named: dict[str, str]) -> None:
    listed = refused(judged(open_store(store.home.root, STRICT)), named)
    assert listed.keys() == CLEAN.keys() | WRONG.keys()
    assert {listed[name]["why"] for name in CLEAN} == {UNLIKELY}
    assert all(0.9 < listed[name]["today"] < 1 for name in CLEAN)


def test_manual_merges_and_verdicts_hold(store: Store, named: dict[str, str]) -> None:
    """A wrong merge that a person confirms is kept; merges are followed through those that people made."""
    served = read_served(store)["s0"]
    pair = sorted((named["week-1"], named["week-2"]))
    said = f'{{"a": "{pair[0]}", "b": "{pair[1]}", "verdict": "same", "actor": "person"}}'
    confirmed = filled(
        pl.DataFrame([{"kind": "judged", "scope": "user:aya", "topic_id": pair[0], "payload_json": said}]), DECISION
    )
    manual = verdict_decisions(served, [(named["quartz"], named["same-1"], "same")])
    correct(store, "s0", "people", day(4), pl.concat([confirmed, manual]), "a person said so")
    found = judged(store)
    assert read_served(store)["s0"].living(named["same-2"]) == named["quartz"]
    assert refused(found, named).keys() == WRONG.keys() - {"week-2"}
    assert found.judged == len(CLEAN) + len(WRONG)


def test_what_was_undone_is_not_judged_and_merges_of_archived_topics_are_counted(
    store: Store, named: dict[str, str]
) -> None:
    undo(store, named["key-2"], 4)
    night_without_duplicates(open_store(store.home.root, FORGETFUL), 4)
    undo(store, named["week-1"], 5)
    found = judged(store)
    assert refused(found, named).keys() == {"week-2"}
    assert (found.judged, found.unjudged) == (1, len(CLEAN) + len(WRONG) - 2)
