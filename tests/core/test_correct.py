"""Corrections on a real store: what a person decides is published at once, and nothing else moves."""

from __future__ import annotations

import json
import shutil
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memstate_core.embed.refresh import refresh_embeddings
from memstate_core.forget.ladder import forget
from memstate_core.forget.salience import update_salience
from memstate_core.ingest.importer import import_paths
from memstate_core.ingest.place import place
from memstate_core.ingest.placement import key_id
from memstate_core.model.errors import (
    CheckRefused,
    MergeUndone,
    NothingToUndo,
    NotStale,
    StoreNotFound,
    VerdictRefused,
)
from memstate_core.model.frames import DECISION, conform, empty
from memstate_core.retrieve.export import export_records
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.revise.dependency import queue_reviews
from memstate_core.revise.judgements import open_pairs, verdict_decisions
from memstate_core.revise.listing import merge_documents
from memstate_core.revise.served import Served, read_served
from memstate_core.revise.sides import side_by_side
from memstate_core.revise.undo import confirm_decisions, nothing_to_undo, stale_topics, undo_decisions
from memstate_core.state.apply import update_topics
from memstate_core.state.begin import begin_run, new_evidence
from memstate_core.state.correct import correct
from memstate_core.state.decisions import judgements, undone
from memstate_core.state.publish import publish
from memstate_core.state.rebuild import fold_recorded
from memstate_core.state.snapshots import current_snapshot, move_current
from memstate_core.state.store import Store, open_store
from memstate_core.state.verify import verify
from tests.core.strategies import day

Said = dict[str, dict[str, Any]]
"""What is observed, by the key of the topic; "" names none."""

SCOPE = "user:aya"
BEFORE: Said = {
    "acme": {"title": "Acme renewal", "fields": [{"name": "owner", "value": "Aya"}]},
    "boat": {"title": "Boat shed", "fields": [{"name": "owner", "value": "Ben"}]},
    "cat": {"title": "Cat food", "edges": [{"to_topic_key": "boat", "kind": "part_of"}]},
}
LATER: Said = {
    "boat": {"fields": [{"name": "owner", "value": "Cleo"}]},
    "acme": {"title": "Acme", "summary": "Signed at last"},
    "dune": {"title": "Dune buggy"},
}
ACME, BOAT, CAT = (pl.select(key_id(pl.lit(SCOPE), pl.lit(key))).item() for key in ("acme", "boat", "cat"))


def told(store: Store, said: Said, at: int) -> None:
    """Imports one observation a key, made on a day, the next a minute later."""
    rows = [
        {"scope": {"type": "user", "id": "aya"}, "observed_at": f"2026-01-{at + 1:02}T00:0{n}:00Z"}
        | ({"topic_key": key} if key else {})
        | content
        for n, (key, content) in enumerate(said.items())
    ]
    path = store.home.root / f"day-{at}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    report = import_paths(store.ledger, store.settings, [path], now=day(at), run_id=f"import-{at}")
    assert report.accepted == len(rows)


def night(store: Store, now: datetime) -> None:
    """A nightly run without a search for duplicates, its steps in their order."""
    run = begin_run(store, "s0", f"night-{now.isoformat()}", now)
    new = new_evidence(store, run).frame
    steps = {"placements": place(store, run, new)}
    run.keep("placements", steps["placements"], 0.0)
    topics = update_topics(store, run)
    run.keep("topics", topics, 0.0)
    refresh_embeddings(store, run)
    run.keep("dependency_review", queue_reviews(run, topics.frame), 0.0)
    run.keep("forgetting", forget(run, update_salience(run).frame, new), 0.0)
    publish(store, run)
    run.end()


def shard(store: Store) -> Served:
    return read_served(store)["s0"]


def decide(store: Store, decisions: pl.DataFrame | None, at: float) -> str:
    """One correction; answers the state hash."""
    assert decisions is not None
    count = store.ledger.scan("transitions").select(pl.len()).collect().item()
    return correct(store, "s0", f"correction-{count}", day(at), decisions, "a person said so").state_hash


def merge(store: Store, a: str, b: str, at: float = 2) -> str:
    return decide(store, verdict_decisions(shard(store), [(a, b, "same")]), at)


def undo(store: Store, name: str, at: float = 2) -> str:
    return decide(store, undo_decisions(shard(store), name), at)


def state_hash(store: Store) -> str:
    return shard(store).snapshot.manifest.state_hash


def exported(store: Store) -> list[dict[str, Any]]:
    with ExitStack() as stack:
        return list(export_records([stack.enter_context(SnapshotReader(shard(store).snapshot))]))


def without_marks(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Records without what the review queue says, which is no part of the state."""
    return [{name: value for name, value in row.items() if name not in ("stale", "warnings")} for row in records]


def homes(store: Store) -> dict[str, str]:
    """The topic that answers for each of the three."""
    served = shard(store)
    return {name: str(served.living(topic)) for name, topic in (("acme", ACME), ("boat", BOAT), ("cat", CAT))}


@pytest.fixture(scope="module")
def first_night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home after its first night; tests copy it."""
    return begun(tmp_path_factory.mktemp("first") / "home").home.root


@pytest.fixture
def store(first_night: Path, tmp_path: Path) -> Store:
    return open_store(shutil.copytree(first_night, tmp_path / "home"), {})


def begun(home: Path, **policy: Any) -> Store:
    home.mkdir()
    lines = [f"{name} = {value}" for name, value in policy.items()]
    (home / "memstate.toml").write_text("\n".join(["[policy]", *lines, ""]))
    store = open_store(home, {})
    told(store, BEFORE, 0)
    night(store, day(2))
    return store


# L4: taking a merge back is never having made it


def test_undo_gives_the_store_that_never_merged_also_after_a_chain_and_later_evidence(
    store: Store, first_night: Path, tmp_path: Path
) -> None:
    never = open_store(shutil.copytree(first_night, tmp_path / "never"), {})
    merge(store, ACME, BOAT)
    merge(store, CAT, ACME)
    assert homes(store) == {"acme": ACME, "boat": ACME, "cat": ACME}
    for either in (store, never):
        told(either, LATER, 3)
        night(either, day(4))
    undo(store, BOAT, 4)
    assert homes(store) == {"acme": ACME, "boat": BOAT, "cat": ACME}
    assert undo(store, CAT, 4) == state_hash(never)
    assert without_marks(exported(store)) == without_marks(exported(never))
    assert fold_recorded(store, "s0", tmp_path / "fold", "check").state_hash == state_hash(never)


def test_the_middle_of_a_chain_is_freed_with_what_it_holds(store: Store) -> None:
    acme_first = verdict_decisions(shard(store), [(ACME, BOAT, "same")])
    decide(store, acme_first, 2)
    into_cat = acme_first.filter(pl.col("kind") == "merged").with_columns(
        topic_id=pl.lit(ACME), payload_json=pl.lit(json.dumps({"survivor": CAT, "dropped_title": "Acme"}))
    )
    decide(store, into_cat, 2)
    assert set(homes(store).values()) == {CAT}
    undo(store, ACME)
    assert homes(store) == {"acme": ACME, "boat": ACME, "cat": CAT}


def test_undoing_forgets_that_a_merge_had_settled_whose_a_title_is(tmp_path: Path) -> None:
    """After the undo the owner of the title, which came later, has its evidence, as if nobody had merged."""
    merged, never = open_store(tmp_path / "merged", {}), open_store(tmp_path / "never", {})
    for either in (merged, never):
        told(either, {"": {"title": "Plan B"}, "acme": BEFORE["acme"]}, 0)
        night(either, day(2))
    (alias,) = shard(merged).topics.filter(pl.col("title") == "Plan B")["id"]
    merge(merged, alias, ACME)
    for either in (merged, never):
        told(either, {"plan": {"title": "Plan B"}}, 3)
        night(either, day(4))
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
    with pytest.raises(MergeUndone, match="taken back at 2026-01-03"):
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


# Nothing else moves


def test_a_correction_takes_in_no_evidence_and_no_new_policy(store: Store) -> None:
    told(store, LATER, 1)
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
    night(changed, day(2))
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
    links = shard(store).links
    both = links.filter(pl.col("topic_id").is_in([ACME, BOAT]))["evidence_id"]
    assert undoing["evidence_ids"] == sorted(both)


def test_a_refused_correction_leaves_everything_as_it_was(tmp_path: Path) -> None:
    """Three topics, room for two: one is archived, and bringing it back would break the bound (C5)."""
    store = begun(tmp_path / "home", max_active_topics=2, topic_count_soft_limit=2)
    (archived,) = shard(store).topics.filter(pl.col("state") == "archived")["id"]
    number, recorded = shard(store).snapshot.manifest.number, store.ledger.count("transitions")
    with pytest.raises(CheckRefused, match="C5_bounded_active_state"):
        undo(store, archived)
    assert (shard(store).snapshot.manifest.number, store.ledger.count("transitions")) == (number, recorded)
    assert not store.home.work("s0").exists()


def test_an_archived_topic_comes_back_and_stays_through_a_rebuild(tmp_path: Path) -> None:
    store = begun(tmp_path / "home", forget_salience_threshold=10, topic_count_soft_limit=0)
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


def test_the_last_word_on_a_pair_counts(store: Store) -> None:
    decide(store, verdict_decisions(shard(store), [(ACME, CAT, "different")]), 2)
    merge(store, ACME, CAT)
    assert homes(store)["cat"] == ACME


def test_topics_of_two_scopes_are_never_compared(store: Store) -> None:
    told(store, {"": {"scope": {"type": "user", "id": "ben"}, "title": "Acme renewal"}}, 3)
    night(store, day(4))
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
    decide(store, conform(pl.DataFrame(rows), DECISION), 2)
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
    store = begun(tmp_path / "home", forget_salience_threshold=10, topic_count_soft_limit=0)
    a, b = sorted((ACME, BOAT))
    said = {"a": a, "b": b, "probability": 0.5, "weight": 0.0, "value": 0.5, "features": []}
    row = {"kind": "pair_suggested", "scope": SCOPE, "topic_id": a, "payload_json": json.dumps(said)}
    decide(store, conform(pl.DataFrame([row]), DECISION), 2)
    undo(store, ACME)
    assert open_pairs(shard(store)).is_empty()
    undo(store, BOAT)
    assert open_pairs(shard(store)).select("a", "b").rows() == [(a, b)]


# Listing


def test_a_listed_merge_says_who_answers_today_and_which_evidence_it_brought(store: Store) -> None:
    acme_evidence, boat_evidence = (
        shard(store).links.filter(pl.col("topic_id") == topic)["evidence_id"].to_list() for topic in (ACME, BOAT)
    )
    merge(store, BOAT, CAT)
    merge(store, ACME, BOAT)
    newest, oldest = merge_documents([shard(store)])
    assert (newest["dropped"]["id"], newest["survivor"]["id"], newest["actor"]) == (BOAT, ACME, "person")
    assert (oldest["dropped"]["id"], oldest["survivor"]["id"], oldest["into"]["id"]) == (CAT, BOAT, ACME)
    assert set(boat_evidence) < set(newest["evidence_ids"])
    assert set(acme_evidence).isdisjoint(newest["evidence_ids"])
    assert len(oldest["evidence_ids"]) == 1
    assert oldest["survivor"]["title"] == "Boat shed"
    assert [row["id"] for row in merge_documents([shard(store)], topic=CAT)] == [oldest["id"]]
    assert merge_documents([shard(store)], topic="nobody") == []


# Stale topics


def test_a_confirmed_topic_is_no_longer_stale_nor_after_a_rebuild(store: Store, tmp_path: Path) -> None:
    told(store, {"boat": {"summary": "It leaks"}}, 3)
    night(store, day(4))
    cat = next(record for record in exported(store) if record["id"] == CAT)
    assert cat["stale"] == {
        "reason": "Boat shed changed, 1 extension hops away", "cause_topic_id": BOAT, "since": "2026-01-05T00:00:00Z"
    }  # fmt: skip
    assert [warning["kind"] for warning in cat["warnings"]] == ["stale"]
    before = state_hash(store)
    assert stale_topics([shard(store)], [CAT]) == {"s0": [CAT]}
    assert decide(store, confirm_decisions(shard(store), [CAT]), 4) == before
    cat = next(record for record in exported(store) if record["id"] == CAT)
    assert (cat["stale"], cat["warnings"]) == (None, [])
    assert shard(store).reviews.is_empty()
    ended = shard(store).transitions.row(-1, named=True)
    assert (ended["kind"], ended["reason"]) == ("review_ended", "confirmed by a person")
    assert json.loads(ended["payload_json"]) == {"cause_topic_id": BOAT, "hops": 1, "actor": "person"}
    folded = fold_recorded(store, "s0", tmp_path / "fold", "check")
    assert folded.state_hash == before
    with pytest.raises(NotStale, match="memstate confirm"):
        stale_topics([shard(store)], [CAT])


def test_what_extends_a_merged_topic_is_stale_and_stays_so(store: Store) -> None:
    """Cat food is part of the boat shed: its link follows the merge, which is no news of its own."""
    merge(store, ACME, BOAT, 3)
    assert shard(store).reviews.select("topic_id", "cause_topic_id").rows() == [(CAT, ACME)]
    told(store, {"dune": {"title": "Dune buggy"}}, 4)
    night(store, day(5))
    assert shard(store).reviews["topic_id"].to_list() == [CAT]


def test_a_stale_mark_outlives_the_merge_of_its_cause(store: Store) -> None:
    told(store, {"boat": {"summary": "It leaks"}}, 3)
    night(store, day(4))
    merge(store, ACME, BOAT, 4)
    assert shard(store).reviews["topic_id"].to_list() == [CAT]
