"""What one scope holds has no influence on the merges and suggestions of another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from memstate_core.model.frames import empty
from memstate_core.model.step_frames import EVIDENCE_TOPIC
from memstate_core.revise.constraints import constraints
from memstate_core.revise.matching.deduplication import deduplicate
from memstate_core.run.store import Store, open_store
from tests.core.revise.matching.corpora import corpus, dedupe
from tests.core.revise.nights import Night, Topic, ids, night, record
from tests.core.revise.test_steps import CROWD, TOPICS
from tests.core.revise.test_verdicts import judged, ledger

BEN = {"scope": {"type": "user", "id": "ben"}}
FLOOD: dict[str, Topic] = {
    f"flood-{number}": BEN | {"title": f"Quartz lagoon harvest {number}", "fields": [{"name": "owner", "value": "Aya"}]}
    for number in range(150)
}


def nightly(home: Path, topics: dict[str, Topic]) -> tuple[Store, Night]:
    store = open_store(home, {})
    record(store, topics, 1)
    return store, night(store, 2)


def of_scope(found: pl.DataFrame, scope: str) -> list[tuple[Any, ...]]:
    """Band, probability and weight of the pairs of a scope."""
    return found.filter(pl.col("scope") == scope).select("band", "probability", "weight").sort(pl.all()).rows()


@pytest.mark.slow
def test_another_scopes_topics_change_no_pair(tmp_path: Path) -> None:
    _, first = nightly(tmp_path / "alone", TOPICS | CROWD)
    _, second = nightly(tmp_path / "beside", TOPICS | CROWD | FLOOD)
    pairs = of_scope(first.found.frame, "user:aya")
    assert pairs == of_scope(second.found.frame, "user:aya")
    assert {band for band, _, _ in pairs} == {"merge", "review"}


@pytest.mark.slow
def test_a_scope_without_changes_is_not_searched_and_keeps_its_suggestions(tmp_path: Path) -> None:
    store, first = nightly(tmp_path / "home", TOPICS | CROWD)
    assert "pair_suggested" in first.found.decisions["kind"].to_list()
    record(store, FLOOD, 3)
    second = night(store, 4)
    assert second.found.counts["topics"] == len(FLOOD)
    assert set(second.found.frame["scope"]) <= {"user:ben"}
    assert set(second.found.decisions["scope"]) == {"user:ben"}
    third = night(store, 5)
    assert third.found.counts["candidates"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["judged", "restored"])
def test_a_scope_is_searched_again_after_a_decision_between_runs(kind: str, tmp_path: Path) -> None:
    store, _ = nightly(tmp_path / "home", TOPICS | CROWD)
    known = ids(store)
    made = judged(known["week-1"], known["week-2"], "different") if kind == "judged" else (kind, known["week-1"], {})
    assert night(store, 3, [made]).found.counts["candidates"] > 0
    assert night(store, 4).found.counts["candidates"] == 0


def mixed(scope: str, count: int) -> list[dict[str, Any]]:
    return [
        {"scope": scope, "title": f"Report on {word} of {place}", "summary": f"{word} {place} {number}"}
        for number in range(count)
        for word, place in [(["water", "heat", "light", "stone"][number % 4], ["Oslo", "Graz", "Lyon"][number % 3])]
    ]


def test_a_corpus_is_the_sum_of_its_scopes() -> None:
    topics = [
        topic | {"sources": [f"s{at % 2}"], "keys": [f"k{at}"] if at % 3 else [], "fields": {"at": str(at)}}
        for at, topic in enumerate(mixed("user:a", 7) + mixed("user:b", 1) + mixed("user:c", 12))
    ]
    whole, starts = corpus(topics), {"user:a": 0, "user:b": 7, "user:c": 8}
    parts = {scope: whole.of(scope) for scope in starts}
    assert {scope: len(part) for scope, part in parts.items()} == {"user:a": 7, "user:b": 1, "user:c": 12}
    assert pl.concat([part.topics for part in parts.values()]).equals(whole.topics)
    assert np.array_equal(np.concatenate([part.vectors for part in parts.values()]), whole.vectors)
    assert len(whole.of("user:b2")) == 0
    for name in ("fields", "sources", "keys"):
        frames = [getattr(part, name).with_columns(pl.col("row") + starts[scope]) for scope, part in parts.items()]
        assert pl.concat(frames).equals(getattr(whole, name))


def test_a_search_over_both_scopes_at_once_would_not_keep_them_apart() -> None:
    """The tests above can fail: rarity and the fit of a common search depend on what the other scope holds."""
    mine, theirs = mixed("user:a", 24), mixed("user:b", 200)
    alone, together = dedupe(mine), dedupe(mine + theirs)
    own = together.pairs.a < len(mine)
    assert not np.allclose(np.sort(alone.scored.weight), np.sort(together.scored.weight[own])[: len(alone.pairs)])
    part = corpus(mine + theirs).of("user:a")
    limits = constraints(ledger(), empty(EVIDENCE_TOPIC))
    again = deduplicate(part, limits, sure=0.9)
    assert np.array_equal(alone.scored.probability, again.scored.probability)
