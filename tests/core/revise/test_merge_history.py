"""The list of merges, and the topics marked as stale."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from memstate_core.model.errors import NotStale
from memstate_core.night.rebuild import fold_recorded
from memstate_core.revise.merge_history import merge_documents
from memstate_core.revise.undo import confirm_decisions, stale_topics
from memstate_core.run.store import Store
from tests.core.night import corrections
from tests.core.night.corrections import ACME, BOAT, CAT, decide, exported, merge, shard, state_hash
from tests.core.revise.nights import night_without_duplicates as night
from tests.core.revise.nights import record_by_key as record

pytestmark = pytest.mark.slow

first_night, store = corrections.first_night, corrections.store


# Listing


def test_a_listed_merge_names_the_topic_it_resolves_to_and_its_evidence(store: Store) -> None:
    acme_evidence, boat_evidence = (
        shard(store).evidence_topic.filter(pl.col("topic_id") == topic)["evidence_id"].to_list()
        for topic in (ACME, BOAT)
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


def test_a_merge_has_both_titles_as_they_were(store: Store) -> None:
    merge(store, BOAT, CAT)
    record(store, {"boat": {"title": "Marina"}}, 3)
    night(store, 4)
    (listed,) = merge_documents([shard(store)])
    assert (listed["dropped"]["title"], listed["survivor"]["title"]) == ("Cat food", "Boat shed")
    assert listed["into"]["title"] == "Marina"


# Stale topics


def test_a_confirmed_topic_is_no_longer_stale_nor_after_a_rebuild(store: Store, tmp_path: Path) -> None:
    record(store, {"boat": {"summary": "It leaks"}}, 3)
    night(store, 4)
    cat = next(record for record in exported(store) if record["id"] == CAT)
    assert cat["stale"] == {
        "reason": "Boat shed changed, 1 extension away", "cause_topic_id": BOAT, "since": "2026-01-05T00:00:00Z"
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
    """Cat food is part of the boat shed: its edge follows the merge, which does not change the topic itself."""
    merge(store, ACME, BOAT, 3)
    assert shard(store).reviews.select("topic_id", "cause_topic_id").rows() == [(CAT, ACME)]
    record(store, {"dune": {"title": "Dune buggy"}}, 4)
    night(store, 5)
    assert shard(store).reviews["topic_id"].to_list() == [CAT]


def test_a_stale_mark_outlives_the_merge_of_its_cause(store: Store) -> None:
    record(store, {"boat": {"summary": "It leaks"}}, 3)
    night(store, 4)
    merge(store, ACME, BOAT, 4)
    assert shard(store).reviews["topic_id"].to_list() == [CAT]
