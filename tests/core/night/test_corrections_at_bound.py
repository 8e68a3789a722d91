"""Law L4 where a scope has as many active topics as its bound allows: every decision can be undone."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from memstate_core.forget.manual_actions import pin_decisions
from memstate_core.night.reembed import drafts, publish_drafts
from memstate_core.night.verify import verify
from memstate_core.run.publications import REEMBEDDING
from memstate_core.run.store import Store, with_model
from memstate_core.state.graph import TOPIC
from tests.core.night.checks.damage import Home, update
from tests.core.night.corrections import ACME, BOAT, LATER, begun, decide, merge, shard, undo
from tests.core.revise.nights import night_without_duplicates as night
from tests.core.revise.nights import record_by_key as record

pytestmark = pytest.mark.slow


def active(store: Store) -> set[str]:
    return set(shard(store).topics.filter(pl.col("state") == "active")["id"])


def failures(store: Store) -> list[str]:
    return [verdict.name for verdict in verify(store, shard(store).snapshot) if not verdict.passed]


def full(home: Path, bound: int) -> Store:
    return begun(home, max_active_topics=bound, topic_count_soft_limit=2)


def test_an_archived_topic_is_restored_and_the_next_night_archives_another(tmp_path: Path) -> None:
    store = full(tmp_path / "home", 2)
    (archived,) = shard(store).topics.filter(pl.col("state") == "archived")["id"]
    undo(store, archived)
    assert len(active(store)) == 3
    assert failures(store) == []
    night(store, 3)
    assert len(active(store)) == 2
    assert archived in active(store)
    assert failures(store) == []


def test_a_merge_is_undone_after_its_place_was_taken(tmp_path: Path) -> None:
    store = full(tmp_path / "home", 3)
    merge(store, ACME, BOAT)
    record(store, LATER, 3)
    night(store, 4)
    assert len(active(store)) == 3
    undo(store, BOAT, 4)
    assert len(active(store)) == 4
    assert {ACME, BOAT} <= active(store)
    assert failures(store) == []
    night(store, 5)
    assert len(active(store)) == 3
    assert failures(store) == []


def test_another_model_is_published_before_the_next_night_and_corrections_go_on(tmp_path: Path) -> None:
    store = full(tmp_path / "home", 2)
    (archived,) = shard(store).topics.filter(pl.col("state") == "archived")["id"]
    undo(store, archived)
    other = with_model(store, "hashing")
    with drafts(other, [shard(store).snapshot], f"{REEMBEDDING}1", None) as made:
        publish_drafts(other, made)
    assert len(active(store)) == 3
    assert failures(store) == []
    decide(store, pin_decisions(shard(store), [archived], on=True), 2)
    assert len(active(store)) == 3
    assert failures(store) == []


def test_a_restored_topic_makes_room_for_itself_alone_beside_pins(tmp_path: Path) -> None:
    store = full(tmp_path / "home", 2)
    record(store, LATER, 3)
    decide(store, pin_decisions(shard(store), sorted(active(store)), on=True), 3)
    night(store, 4)
    restored, other = shard(store).topics.filter(pl.col("state") == "archived")["id"].sort()
    undo(store, restored, 5)
    assert (len(active(store)), failures(store)) == (3, [])
    update(TOPIC, f"r.id = '{other}'", state="active", archived=False)(Home(store.home.root))
    assert len(active(store)) == 4
    assert any(name.startswith("C5") for name in failures(store))
