"""C2 refuses merges that a run cannot have made: of other keys, other kinds, judged different, undone, overrated.

A person merged the topics of a real store, which allows everything. The decisions are then changed to those of a run,
as sure as can be. The figures are those of merges that a real night made.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memstate_core.model.ids import uuid_text
from memstate_core.night.checks.suite import served_conditions
from memstate_core.night.corrections import correct
from memstate_core.revise.verdicts import verdict_decisions
from memstate_core.run.served_state import read_served
from memstate_core.run.store import open_store
from tests.core.night.checks.damage import Damage, Home, both, decide, forget, policy, rewrite
from tests.core.revise.nights import night, night_without_duplicates, record, record_rows
from tests.core.revise.test_steps import CROWD
from tests.core.revise.test_steps import TOPICS as MADE_TOPICS
from tests.core.strategies import day
from tests.pipeline.conftest import shared

pytestmark = pytest.mark.slow

AYA = "user:aya"
TOPICS: dict[str, dict[str, str]] = {
    "plain": {},
    "plain too": {},
    "one key": {"topic_key": "one"},
    "another key": {"topic_key": "another"},
    "a task": {"topic_kind": "task"},
    "a log": {"topic_kind": "log"},
    "a Task": {"topic_kind": " TASK"},
    "a task as well": {"topic_kind": "task"},
    "between": {},
    "third key": {"topic_key": "third"},
    "fourth key": {"topic_key": "fourth"},
    "without a key": {},
    "fifth key": {"topic_key": "fifth"},
    "first job": {"topic_kind": "job"},
    "second job": {"topic_kind": "job"},
}
SAME = {name: MADE_TOPICS[name] for name in ("same-1", "same-2", "same-3")}
PAIRS = [
    ("plain", "plain too"), ("one key", "another key"), ("a task", "a log"), ("a Task", "a task as well"),
    ("between", "third key"), ("between", "fourth key"), ("without a key", "fifth key"),
    ("first job", "second job"),
]  # fmt: skip
SURE = {"actor": None, "probability": 0.99, "weight": 9.0}


MADE = (pl.col("kind") == "merged") & (pl.col("seq") == pl.col("seq").max().over("kind"))
"""The last merge."""


def id_of(name: str) -> str:
    key = TOPICS[name].get("topic_key")
    return uuid_text("observation", AYA, name) if key is None else uuid_text("key", AYA, key)


@pytest.fixture(scope="session")
def judged_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which a person merged all PAIRS."""

    def made(root: Path) -> None:
        store = open_store(root, {})
        rows = [{"observation_id": name, "title": f"About {name}", **more} for name, more in TOPICS.items()]
        record_rows(store, [row if "topic_key" in row else {"placement": "new_topic", **row} for row in rows], 0)
        night_without_duplicates(store, 2)
        verdicts = [(id_of(one), id_of(other), "same") for one, other in PAIRS]
        decisions = verdict_decisions(read_served(store)["s0"], verdicts)
        correct(store, "s0", "correction-3", day(3), decisions, "a person decided it")

    return shared(tmp_path_factory, "judged", made)


@pytest.fixture(scope="session")
def searched_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which a night merged topics."""

    def made(root: Path) -> None:
        store = open_store(root, {})
        record(store, SAME | CROWD, 1)
        night(store, 2)

    return shared(tmp_path_factory, "searched", made)


@pytest.fixture
def searched(searched_home: Path, tmp_path: Path) -> Home:
    return Home(shutil.copytree(searched_home, tmp_path / "home"))


@pytest.fixture
def judged(judged_home: Path, tmp_path: Path) -> Home:
    return Home(shutil.copytree(judged_home, tmp_path / "home"))


def by_run(*dropped: str) -> Damage:
    """The merges of some topics as those of a run."""
    return rewrite(merge_of(*dropped), **SURE)


def merge_of(*dropped: str) -> pl.Expr:
    return (pl.col("kind") == "merged") & pl.col("topic_id").is_in([id_of(name) for name in dropped])


def pair(kind: str) -> pl.Expr:
    return (pl.col("kind") == kind) & pl.col("topic_id").is_in([id_of("plain"), id_of("plain too")])


def ruled(when: str, merge: float, on: str = "nightly") -> Damage:
    """A policy with a merge rule."""
    rule = {"name": "a rule", "on": on, "when": when, "do": "merge", "merge_probability": merge}
    return policy(rules=[rule])


def parted(kind: str, weight: float, evidence: list[str] | None) -> Damage:
    """The two plain topics were parted before; a run merged them since."""
    payload = {"survivor": id_of("plain"), "weight": weight, "others": []}
    topic = id_of("plain too")
    return both(by_run("plain too"), decide(kind, topic, AYA, payload, first=True, evidence=evidence))


def problems(home: Home) -> list[tuple[str, str]]:
    """What the conditions find, all of it by C2."""
    checked = served_conditions(home.store, Home(home.store.home.root).snapshot)
    assert checked is not None
    assert [name[:2] for name, check in checked.items() if not check.passed] in ([], ["C2"])
    return [row for check in checked.values() for row in check.violations.rows()]


def evidence_of(home: Home) -> list[str]:
    return home.store.ledger.scan("evidence").collect()["evidence_id"].to_list()


@pytest.mark.parametrize("dropped", [["plain too"], ["a task as well"], ["fifth key"]])
def test_what_nothing_keeps_apart_may_be_a_runs_merge(judged: Home, dropped: list[str]) -> None:
    by_run(*dropped)(judged)
    assert problems(judged) == []


def test_a_merge_at_the_policys_probability_may_be_a_runs(judged: Home) -> None:
    rewrite(merge_of("plain too"), actor=None, probability=0.8, weight=4.0)(judged)
    assert problems(judged) == []


@pytest.mark.parametrize(
    ("rule", "weight", "may_be"),
    [
        (ruled("topic_kind == 'job'", 0.7), 1.1, True),
        (ruled("topic_kind == 'job'", 0.99), 3.0, False),
        (ruled("topic_kind == 'log'", 0.7), 1.1, False),
        (ruled("topic_kind == 'log'", 0.99), 3.0, True),
        (ruled("topic_kind == 'job'", 0.7, "ingest_complete"), 1.1, True),
        (ruled("scope == 'user:ben'", 0.7), 1.1, False),
        (ruled("scope_type == 'user'", 0.7), 1.1, True),
        (ruled("salience < 2", 0.7), 1.1, True),
    ],
)
def test_a_run_merges_from_the_probability_of_the_rule_that_applies(
    judged: Home, rule: Damage, weight: float, *, may_be: bool
) -> None:
    """A pair of weight 1.1 is the same with a probability of 0.75, one of weight 3 with 0.95; without a rule 0.8."""
    both(rewrite(merge_of("second job"), actor=None, probability=0.74, weight=weight), rule)(judged)
    weak = [(id_of("first job"), "a merge that the policy's probability does not ask for")]
    assert problems(judged) == ([] if may_be else weak)


@pytest.mark.parametrize(
    ("dropped", "into", "problem"),
    [
        (["another key"], "one key", "a run merged topics that have keys and share none"),
        (["third key", "fourth key"], "between", "a run merged topics that have keys and share none"),
        (["a log"], "a task", "a run merged topics of different kinds"),
    ],
)
def test_a_run_merges_no_topics_that_evidence_distinguishes(
    judged: Home, dropped: list[str], into: str, problem: str
) -> None:
    by_run(*dropped)(judged)
    assert problems(judged) == [(id_of(into), problem)]


def test_a_run_does_not_merge_what_was_judged_different(judged: Home) -> None:
    a, b = sorted((id_of("plain"), id_of("plain too")))
    payload = {"a": a, "b": b, "verdict": "different", "actor": "person"}
    both(forget(pair("judged")), by_run("plain too"), decide("judged", a, AYA, payload, first=True))(judged)
    assert problems(judged) == [(a, "merged with a topic that a person judged different")]


@pytest.mark.parametrize("kind", ["unmerged", "kept_apart"])
def test_a_run_does_not_merge_again_what_was_undone_without_new_evidence(judged: Home, kind: str) -> None:
    parted(kind, 1.0, evidence_of(judged))(judged)
    assert problems(judged) == [(id_of("plain"), "a run merged again what was undone, and nothing is new")]


def test_new_evidence_alone_frees_no_undone_pair(judged: Home) -> None:
    parted("unmerged", 8.0, [])(judged)
    assert problems(judged) == [(id_of("plain"), "a run merged again what was undone, and nothing is new")]


def test_new_evidence_and_a_higher_weight_free_an_undone_pair(judged: Home) -> None:
    parted("unmerged", 1.0, [])(judged)
    assert problems(judged) == []


def test_a_later_merge_by_a_person_frees_an_undone_pair(judged: Home) -> None:
    """Each decision is put before all earlier ones: undone, merged by a person, and its evidence elsewhere since."""
    payload = {"survivor": id_of("plain"), "actor": "person"}
    again = decide("merged", id_of("plain too"), AYA, payload, first=True)
    both(by_run("plain too"), again, decide("unmerged", id_of("plain too"), AYA, payload, first=True))(judged)
    assert problems(judged) == []


def test_a_nights_merges_have_the_figures_that_its_comparisons_give(searched: Home) -> None:
    merged = searched.store.ledger.scan("transitions").filter(pl.col("kind") == "merged").collect()
    assert (merged.height, problems(searched)) == (2, [])


HEAVY = "merged with more weight than comparisons give"
UNLIKE = "merged by comparisons that the model weighs otherwise"
ABSENT = "merged without a comparison that evidence gives"


@pytest.mark.parametrize(
    ("figures", "named"),
    [
        ({"weight": 24.0}, [HEAVY]),
        ({"features": []}, [HEAVY, ABSENT]),
        ({"weight": 3.0, "probability": 0.99}, ["merged with more probability than its weight gives"]),
        ({"weight": 9.0, "features": [{"name": "title", "value": 9.0, "weight": 20.0}]}, [UNLIKE, ABSENT]),
        ({"weight": 9.0, "features": [{"name": "a new one", "value": 1.0, "weight": 20.0}]}, [UNLIKE, ABSENT]),
    ],
)
def test_a_merge_with_figures_that_its_comparisons_do_not_give_is_named(
    searched: Home, figures: dict[str, Any], named: list[str]
) -> None:
    rewrite(MADE, **figures)(searched)
    assert [text for _, text in problems(searched)] == named
