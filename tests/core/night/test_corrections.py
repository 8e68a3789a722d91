"""Corrections on a real store: manual decisions are published at once, and nothing else changes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

from memstate_core.model.errors import (
    CheckRefused,
    MergeUndone,
    NothingToUndo,
    StoreNotFound,
    VerdictRefused,
)
from memstate_core.model.frames import empty
from memstate_core.model.ledger_tables import DECISION
from memstate_core.night.rebuild import fold_recorded
from memstate_core.night.verify import verify
from memstate_core.revise.merge_history import merge_documents
from memstate_core.revise.pair_view import side_by_side
from memstate_core.revise.undo import nothing_to_undo, undo_decisions
from memstate_core.revise.verdicts import open_pairs, verdict_decisions
from memstate_core.run.store import Store, open_store
from memstate_core.state.current import current_snapshot, move_current
from memstate_core.state.fold.decisions import judgements, undone
from tests.core.frames import filled
from tests.core.night import corrections
from tests.core.night.corrections import (
    ACME,
    BEFORE,
    BOAT,
    CAT,
    LATER,
    SCOPE,
    begun,
    decide,
    exported,
    homes,
    merge,
    shard,
    state_hash,
    undo,
    without_marks,
)
from tests.core.revise.nights import night_without_duplicates as night
from tests.core.revise.nights import record_by_key as record

pytestmark = pytest.mark.slow

first_night, store = corrections.first_night, corrections.store
STEPS = ("summarise", "detach", "forget")
FORGETFUL = {f"{step}_salience_threshold": 10 for step in STEPS} | {"topic_count_soft_limit": 0}
"""Everything is archived at once."""

# L4: undoing a merge gives the state without it


def test_undo_gives_the_store_that_never_merged_also_after_a_chain_and_later_evidence(
    store: Store, first_night: Path, tmp_path: Path
) -> None:
    never = open_store(shutil.copytree(first_night, tmp_path / "never"), {})
    merge(store, ACME, BOAT)
    merge(store, CAT, ACME)
    assert homes(store) == {"acme": ACME, "boat": ACME, "cat": ACME}
    for either in (store, never):
        record(either, LATER, 3)
        night(either, 4)
    undo(store, BOAT, 4)
    assert homes(store) == {"acme": ACME, "boat": BOAT, "cat": ACME}
    assert undo(store, CAT, 4) == state_hash(never)
    assert without_marks(exported(store)) == without_marks(exported(never))
    assert fold_recorded(store, "s0", tmp_path / "fold", "check").state_hash == state_hash(never)


def test_the_middle_of_a_chain_is_freed_with_what_it_holds(store: Store) -> None:
    acme_first = verdict_decisions(shard(store), [(ACME, BOAT, "same")])
    decide(store, acme_first, 2)
    ends = {"survivor": CAT, "a": min(ACME, CAT), "b": max(ACME, CAT), "verdict": "same", "actor": "person"}
    into_cat = acme_first.with_columns(topic_id=pl.lit(ACME), payload_json=pl.lit(json.dumps(ends)))
    decide(store, into_cat, 2)
    assert set(homes(store).values()) == {CAT}
    undo(store, ACME)
    assert homes(store) == {"acme": ACME, "boat": ACME, "cat": CAT}


def test_undoing_forgets_that_a_merge_had_settled_whose_a_title_is(tmp_path: Path) -> None:
    """After the undo the owner of the title, which came later, has its evidence, as without the merge."""
    merged, never = open_store(tmp_path / "merged", {}), open_store(tmp_path / "never", {})
    for either in (merged, never):
        record(either, {"": {"title": "Plan B"}, "acme": BEFORE["acme"]}, 0)
        night(either, 2)
    (alias,) = shard(merged).topics.filter(pl.col("title") == "Plan B")["id"]
    merge(merged, alias, ACME)
    for either in (merged, never):
        record(either, {"plan": {"title": "Plan B"}}, 3)
        night(either, 4)
    (dropped,) = shard(merged).topics.filter(pl.col("state") == "merged")["id"]
    assert undo(merged, dropped, 4) == state_hash(never)


def test_what_was_undone_can_be_merged_again(store: Store) -> None:
    first = merge(store, ACME, BOAT)
    undo(store, BOAT)
    assert undone(shard(store).transitions).height == 1
    assert merge(store, ACME, BOAT) == first
    assert undone(shard(store).transitions).is_empty()
    listed = merge_documents([shard(store)], undone_too=True)
    assert [row["undone"] for row in listed] == [False, True]
    assert len({row["id"] for row in listed}) == 2
    undo(store, listed[0]["id"])
    with pytest.raises(MergeUndone, match="was undone at 2026-01-03"):
        undo(store, listed[0]["id"])


def test_each_topic_of_a_group_is_parted_from_all_that_it_was_one_with(store: Store) -> None:
    merge(store, ACME, BOAT)
    merge(store, ACME, CAT)
    undo(store, BOAT)
    undo(store, CAT)
    parted = set(undone(shard(store).transitions).select("a", "b").rows())
    assert parted == {tuple(sorted(pair)) for pair in ((ACME, BOAT), (ACME, CAT), (BOAT, CAT))}
    merge(store, BOAT, CAT)
    assert set(undone(shard(store).transitions).select("a", "b").rows()) == parted - {tuple(sorted((BOAT, CAT)))}


# Nothing else changes


def test_a_correction_takes_in_no_evidence_and_no_new_policy(store: Store) -> None:
    record(store, LATER, 1)
    (store.home.root / "memstate.toml").write_text("[policy]\nsalience_half_life_days = 1\n")
    changed = open_store(store.home.root, {})
    before = current_snapshot(store.home, "s0")
    merge(changed, ACME, BOAT)
    undo(changed, BOAT)
    after = current_snapshot(store.home, "s0")
    assert before is not None
    assert after is not None
    kept = ("evidence_version", "policy", "policy_hash", "embedding_model", "counts", "state_hash")
    assert [getattr(after.manifest, name) for name in kept] == [getattr(before.manifest, name) for name in kept]
    night(changed, 2)
    assert "Dune buggy" in shard(changed).topics["title"].to_list()


def test_every_decision_of_a_person_says_so_and_only_decisions_are_recorded(store: Store) -> None:
    merge(store, ACME, BOAT)
    undo(store, BOAT)
    rows = shard(store).transitions.filter(pl.col("run_id").str.starts_with("correction"))
    assert set(rows["kind"]) == {"judged", "merged", "unmerged", "review_queued"}
    said = rows.filter(pl.col("kind") != "review_queued")
    assert said["kind"].to_list() == ["judged", "merged", "unmerged"]
    assert [json.loads(payload)["actor"] for payload in said["payload_json"]] == ["person"] * 3
    (undoing,) = rows.filter(pl.col("kind") == "unmerged").to_dicts()
    assert json.loads(undoing["payload_json"]) == {
        "survivor": ACME, "weight": None, "probability": 1.0, "others": [ACME], "actor": "person"
    }  # fmt: skip
    links = shard(store).evidence_topic
    both = links.filter(pl.col("topic_id").is_in([ACME, BOAT]))["evidence_id"]
    assert undoing["evidence_ids"] == sorted(both)


def test_a_refused_correction_leaves_everything_as_it_was(tmp_path: Path) -> None:
    """A topic that is archived for no reason that policy knows would break C2."""
    store = begun(tmp_path / "home")
    number, recorded = shard(store).snapshot.manifest.number, store.ledger.count("transitions")
    row = {"kind": "archived", "topic_id": BOAT, "scope": SCOPE, "reason": "", "payload_json": '{"by": "threshold"}'}
    with pytest.raises(CheckRefused, match="C2_transition_soundness found"):
        decide(store, filled(pl.DataFrame([row]), DECISION), 2)
    assert (shard(store).snapshot.manifest.number, store.ledger.count("transitions")) == (number, recorded)
    assert not store.home.work("s0").exists()


def test_an_archived_topic_comes_back_and_stays_through_a_rebuild(tmp_path: Path) -> None:
    store = begun(tmp_path / "home", **FORGETFUL)
    assert set(shard(store).topics["state"]) == {"archived"}
    restored = undo(store, ACME)
    states = dict(shard(store).topics.select("id", "state").iter_rows())
    assert states == {ACME: "active", BOAT: "archived", CAT: "archived"}
    assert fold_recorded(store, "s0", tmp_path / "fold", "check").state_hash == restored
    with pytest.raises(VerdictRefused, match=f"{BOAT} is archived; `memstate undo {BOAT}`"):
        merge(store, ACME, BOAT)


def test_a_store_that_serves_nothing_has_nothing_to_correct(tmp_path: Path) -> None:
    with pytest.raises(StoreNotFound, match="memstate import"):
        decide(open_store(tmp_path, {}), empty(DECISION), 2)


def test_verifying_says_that_a_crash_left_an_older_snapshot_served(store: Store) -> None:
    merge(store, ACME, BOAT)
    move_current(store.home, "s0", 1)
    (failed,) = (verdict for verdict in verify(store, shard(store).snapshot) if not verdict.passed)
    assert failed.name == "L3 rebuild"
    assert "the ledger records s0/2 as published" in failed.detail


def test_an_id_that_names_nothing_is_no_undo(store: Store) -> None:
    assert undo_decisions(shard(store), "nobody") is None
    assert isinstance(nothing_to_undo("nobody", [shard(store)]), NothingToUndo)


# Verdicts


def test_the_oldest_of_a_group_survives_and_all_its_pairs_are_recorded(store: Store) -> None:
    decide(store, verdict_decisions(shard(store), [(CAT, BOAT, "same"), (BOAT, ACME, "same")]), 2)
    assert set(homes(store).values()) == {ACME}
    pairs = {tuple(sorted(pair)) for pair in ((CAT, BOAT), (BOAT, ACME))}
    assert set(judgements(shard(store).transitions).rows()) == {(*pair, "same") for pair in pairs}


def test_verdicts_that_would_make_one_topic_of_what_was_judged_different_are_refused(store: Store) -> None:
    decide(store, verdict_decisions(shard(store), [(ACME, CAT, "different")]), 2)
    with pytest.raises(VerdictRefused, match="judged different"):
        verdict_decisions(shard(store), [(BOAT, CAT, "same"), (ACME, BOAT, "same")])
    merge(store, BOAT, CAT)
    with pytest.raises(VerdictRefused, match="judged different"):
        merge(store, ACME, BOAT)
    with pytest.raises(VerdictRefused, match="they are one topic"):
        verdict_decisions(shard(store), [(BOAT, CAT, "different")])
    undo(store, CAT)
    assert merge(store, ACME, BOAT)


def test_a_pair_judged_different_is_not_made_one_by_the_name_of_what_was_merged_into_it(store: Store) -> None:
    decide(store, verdict_decisions(shard(store), [(ACME, BOAT, "different")]), 2)
    merge(store, BOAT, CAT)
    with pytest.raises(VerdictRefused, match="name these two"):
        merge(store, ACME, CAT)
    assert merge(store, ACME, BOAT)


def test_the_last_verdict_on_a_pair_counts(store: Store) -> None:
    decide(store, verdict_decisions(shard(store), [(ACME, CAT, "different")]), 2)
    merge(store, ACME, CAT)
    assert homes(store)["cat"] == ACME


def test_topics_of_two_scopes_are_never_compared(store: Store) -> None:
    record(store, {"": {"scope": {"type": "user", "id": "ben"}, "title": "Acme renewal"}}, 3)
    night(store, 4)
    (foreign,) = shard(store).topics.filter(pl.col("scope") == "user:ben")["id"]
    with pytest.raises(VerdictRefused, match="different scopes"):
        verdict_decisions(shard(store), [(ACME, foreign, "same")])


def test_open_pairs_come_by_value_with_skipped_ones_last_and_their_reasons_go_into_the_merge(store: Store) -> None:
    features = [{"name": "kind", "value": 1.0, "weight": 0.5}, {"name": "owner", "value": 0.0, "weight": -2.0}]
    pairs = [(*sorted((ACME, BOAT)), 0.9), (*sorted((ACME, CAT)), 0.5), (*sorted((BOAT, CAT)), 0.7)]
    rows = [
        {"kind": "pair_suggested", "scope": SCOPE, "topic_id": a}
        | {"payload_json": json.dumps(
            {"a": a, "b": b, "probability": 0.5, "weight": -1.5, "value": value, "features": features}
        )}
        for a, b, value in pairs
    ]  # fmt: skip
    decide(store, filled(pl.DataFrame(rows), DECISION), 2)
    decide(store, verdict_decisions(shard(store), [(ACME, BOAT, "skip")]), 2)
    first = side_by_side(shard(store), open_pairs(shard(store)))[0]
    assert open_pairs(shard(store))["value"].to_list() == [0.7, 0.5, 0.9]
    assert {first["a"]["id"], first["b"]["id"]} == {BOAT, CAT}
    boat = first["a"] if first["a"]["id"] == BOAT else first["b"]
    assert (boat["title"], boat["fields"], boat["evidence"]) == ("Boat shed", {"owner": "Ben"}, 1)
    assert [feature["name"] for feature in first["features"]] == ["owner", "kind"]
    merge(store, ACME, BOAT)
    (listed,) = merge_documents([shard(store)])
    assert (listed["dropped"]["id"], listed["survivor"]["id"], listed["weight"]) == (BOAT, ACME, -1.5)
    assert [feature["name"] for feature in listed["features"]] == ["owner", "kind"]
    assert open_pairs(shard(store)).select("a", "b").rows() == [tuple(sorted((ACME, CAT)))]


def test_a_pair_with_an_archived_topic_waits_until_the_topic_is_back(tmp_path: Path) -> None:
    store = begun(tmp_path / "home", **FORGETFUL)
    a, b = sorted((ACME, BOAT))
    said = {"a": a, "b": b, "probability": 0.5, "weight": 0.0, "value": 0.5, "features": []}
    row = {"kind": "pair_suggested", "scope": SCOPE, "topic_id": a, "payload_json": json.dumps(said)}
    decide(store, filled(pl.DataFrame([row]), DECISION), 2)
    undo(store, ACME)
    assert open_pairs(shard(store)).is_empty()
    undo(store, BOAT)
    assert open_pairs(shard(store)).select("a", "b").rows() == [(a, b)]
