"""Verdicts on merges of nightly runs: what they undo and confirm, and what the next fit learns from them."""

from __future__ import annotations

import shutil
from pathlib import Path

import polars as pl
import pytest

from memstate_core.model.errors import VerdictRefused
from memstate_core.model.ledger_tables import DECISION
from memstate_core.night.verify import verify_store
from memstate_core.revise.merge_history import merge_list
from memstate_core.revise.merge_precision import ESTIMATES
from memstate_core.revise.merge_sides import merged_pairs
from memstate_core.revise.spot_checks import merge_checks, open_checks
from memstate_core.revise.verdicts import verdict_decisions
from memstate_core.run.store import Store, open_store
from memstate_core.state.fold.decisions import judgements
from tests.core.frames import filled
from tests.core.night.corrections import decide, shard, state_hash, undo
from tests.core.revise.nights import Topic, ids, night, night_without_duplicates, record

pytestmark = pytest.mark.slow

PLACES = ("Oslo", "Graz", "Lyon", "Turin", "Cork", "Bergen", "Porto", "Ghent", "Lund", "Split", "Brno", "Vigo")
TASKS = ("roof repair", "tax return", "choir rehearsal", "bicycle tour", "water bill")
TWICE: dict[str, Topic] = {
    f"{place}-{copy}": {
        "title": f"{place} quartz harvest",
        "summary": f"Signing at the harbour of {place}",
        "fields": [{"name": "owner", "value": f"Partner {place}"}, {"name": "copy", "value": "both"}],
    }
    for place in PLACES
    for copy in ("first", "second")
}
CROWD: dict[str, Topic] = {
    f"{place}-{task}": {"title": f"{task} {place}", "summary": f"What {place} needs for the {task}"}
    for place in PLACES
    for task in TASKS
}


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which a night merged two topics of each place."""
    home = tmp_path_factory.mktemp("verdicts") / "home"
    store = open_store(home, {})
    record(store, TWICE | CROWD, 1)
    assert night(store, 2).merged.counts["merges"] == len(PLACES)
    return home


@pytest.fixture
def store(first: Path, tmp_path: Path) -> Store:
    return open_store(Path(shutil.copytree(first, tmp_path / "home")), {})


def checks(store: Store) -> pl.DataFrame:
    return merge_checks(shard(store).transitions, store.settings.policy.merge_probability)


def merged_ends(store: Store) -> list[tuple[str, str]]:
    """The dropped and the surviving topic of each merge that waits for a verdict."""
    return open_checks(checks(store)).select("dropped", "survivor").rows()


def judge(store: Store, *verdicts: tuple[str, str, str], at: float = 2.5) -> pl.DataFrame:
    decided = verdict_decisions(shard(store), verdicts)
    if decided.height:
        decide(store, decided, at)
    return decided


def test_a_rejected_merge_is_undone_at_once_and_for_good(store: Store) -> None:
    (dropped, survivor), *others = merged_ends(store)
    judge(store, (dropped, survivor, "different"))
    named = ids(store)
    pair = sorted(name for name, topic in named.items() if topic in (dropped, survivor))
    assert pair == [name for name in TWICE if name.split("-")[0] == pair[0].split("-")[0]]
    assert named[pair[0]] != named[pair[1]]
    assert merged_ends(store) == others
    night(store, 3)
    record(store, {"new": TWICE[pair[0]]}, 4)
    night(store, 5)
    later = ids(store)
    assert later[pair[0]] != later[pair[1]]
    assert all(verdict.passed for verdicts in verify_store(store).values() for verdict in verdicts)


def test_rejecting_a_merge_gives_the_state_that_undoing_it_gives(store: Store, first: Path, tmp_path: Path) -> None:
    (dropped, survivor), (other, _), *_ = merged_ends(store)
    merged = state_hash(store)
    judge(store, (dropped, survivor, "different"))
    second = open_store(Path(shutil.copytree(first, tmp_path / "second")), {})
    assert undo(second, other, 2.5) != state_hash(store)
    third = open_store(Path(shutil.copytree(first, tmp_path / "third")), {})
    assert undo(third, dropped, 2.5) == state_hash(store) != merged


def test_a_confirmed_merge_is_asked_for_no_more_and_stays(store: Store) -> None:
    before = ids(store)
    (dropped, survivor), *others = merged_ends(store)
    assert judge(store, (survivor, dropped, "same")).height == 1
    assert judge(store, (dropped, survivor, "same")).is_empty()
    assert merged_ends(store) == others
    assert ids(store) == before
    night(store, 3)
    assert ids(store) == before


def test_a_skipped_merge_comes_last(store: Store) -> None:
    (dropped, survivor), *others = merged_ends(store)
    judge(store, (dropped, survivor, "skip"))
    assert merged_ends(store) == [*others, (dropped, survivor)]


def test_many_rejections_at_once_are_one_publication(store: Store) -> None:
    ends = merged_ends(store)
    before = shard(store).snapshot.manifest.number
    judge(store, *((dropped, survivor, "different") for dropped, survivor in ends))
    assert shard(store).snapshot.manifest.number == before + 1
    assert len({*ids(store).values()}) == len(TWICE | CROWD)


def test_verdicts_on_pairs_that_no_run_merged_are_refused(store: Store) -> None:
    (dropped, survivor), (other, _), *_ = merged_ends(store)
    judge(store, (survivor, other, "same"))
    with pytest.raises(VerdictRefused, match="they are one topic now"):
        verdict_decisions(shard(store), [(dropped, other, "different")])


def test_an_alias_and_its_topic_are_no_merge(store: Store) -> None:
    served = shard(store)
    alias, topic = (
        served.aliases.join(served.topics, left_on="topic_id", right_on="id").select("alias", "topic_id").row(0)
    )
    with pytest.raises(VerdictRefused, match="ids of one topic"):
        verdict_decisions(served, [(alias, topic, "different")])
    assert verdict_decisions(served, [(alias, topic, "same")]).is_empty()


def test_both_topics_are_shown_as_they_were_apart(store: Store) -> None:
    waiting = open_checks(checks(store))
    pairs = merged_pairs(store, shard(store), waiting)
    assert [(pair["a"]["id"], pair["b"]["id"]) for pair in pairs] == merged_ends(store)
    for pair in pairs:
        for side in (pair["a"], pair["b"]):
            place = side["title"].removesuffix(" quartz harvest")
            assert (side["summary"], side["evidence"]) == (f"Signing at the harbour of {place}", 1)
            assert side["fields"] == {"owner": f"Partner {place}", "copy": "both"}
    assert {pair["a"]["created_at"] for pair in pairs}.isdisjoint({pair["b"]["created_at"] for pair in pairs})


def test_what_was_stated_after_the_merge_is_on_the_side_that_is_left(store: Store) -> None:
    (dropped, survivor), *_ = merged_ends(store)
    record(store, {"late": {"placement": "extend_topic", "topic_id": survivor, "summary": "Postponed to autumn"}}, 3)
    night_without_duplicates(store, 4)
    (pair,) = (pair for pair in merged_pairs(store, shard(store), checks(store)) if pair["a"]["id"] == dropped)
    assert (pair["a"]["evidence"], pair["b"]["evidence"]) == (1, 2)
    assert "Postponed to autumn" == pair["b"]["summary"] != pair["a"]["summary"]


def test_a_merge_whose_evidence_was_set_aside_is_not_shown(store: Store) -> None:
    (dropped, _), *others = merged_ends(store)
    (listed,) = merge_list(shard(store)).filter(pl.col("dropped") == dropped)["evidence_ids"].to_list()
    aside = {"kind": "set_aside", "scope": "user:aya", "evidence_ids": listed, "payload_json": "{}", "reason": "test"}
    decide(store, filled(pl.DataFrame([aside]), DECISION), 2.5)
    waiting = open_checks(checks(store)).filter(pl.col("dropped") == dropped)
    assert waiting.height == 1
    assert merged_pairs(store, shard(store), waiting) == []
    assert len(merged_pairs(store, shard(store), open_checks(checks(store)))) == len(others)


def test_the_next_fit_learns_from_verdicts_and_doubts_merges_like_the_rejected_ones(store: Store) -> None:
    ends = merged_ends(store)
    judge(store, *((dropped, survivor, "different") for dropped, survivor in ends[:8]), (*ends[8], "same"))
    assert not checks(store)["doubted"].any()
    night(store, 3)
    after = checks(store)
    assert set(after.filter("doubted")["dropped"]) == {dropped for dropped, _ in ends[9:]}
    assert merged_ends(store) == [*after.filter("doubted").sort("today", "id").select("dropped", "survivor").rows()]


def test_a_night_reports_the_precision_that_checks_of_earlier_runs_show(store: Store) -> None:
    ends = merged_ends(store)
    assert not night(store, 3).merged.tables
    judge(store, *((dropped, survivor, "same") for dropped, survivor in ends[1:]), (*ends[0], "different"), at=3.5)
    (table,) = night(store, 4).merged.tables.values()
    (row,) = table.select(ESTIMATES.keys()).to_dicts()
    assert (row["run_id"], row["merges"], row["answered"], row["wrong"]) == ("night-2", len(PLACES), len(PLACES), 1)
    assert (row["precision"], row["low"], row["high"]) == pytest.approx((11 / 12,) * 3)
    assert judgements(shard(store).transitions).height == len(PLACES)
