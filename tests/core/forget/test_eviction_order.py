"""Over its bound, a scope with recorded accesses is ordered by its event history; others by salience."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import polars as pl

from memstate_core.forget.eviction_order import EVICTION_FITS, with_retention
from memstate_core.model.frames import empty
from memstate_core.model.ledger_tables import ACCESSES
from memstate_core.model.step_frames import ALIASES, EVIDENCE_TOPIC
from memstate_core.run.begin import begin_run
from memstate_core.run.store import Store, open_store
from tests.core.frames import filled
from tests.core.strategies import day, evidence_frame, observation

BOUND = 10
NOW = 40


def store_of(home: Path, accesses: list[tuple[str, datetime]]) -> Store:
    """A ledger with one piece of evidence for each of twenty topics, and accesses of some."""
    home.joinpath("memstate.toml").write_text(f"[policy]\ntopic_count_soft_limit = 1\nmax_active_topics = {BOUND}\n")
    store = open_store(home, {})
    said = [observation(number, title=f"t{number:02}", observed_at=day(0)) for number in range(20)]
    rows = [
        {"access_id": f"a{n}", "topic_id": topic, "at": at, "failed": False} for n, (topic, at) in enumerate(accesses)
    ]
    with store.ledger.writing("test"):
        store.ledger.append("evidence", evidence_frame(said), "import/1")
        if rows:
            store.ledger.append("accesses", filled(pl.DataFrame(rows), ACCESSES), "accesses/1")
    return store


def order(store: Store) -> tuple[list[str], pl.DataFrame]:
    """The topics in eviction order, and the fitted curves."""
    run = begin_run(store, "s0", "night", day(NOW))
    ids = [f"t{number:02}" for number in range(20)]
    links = pl.DataFrame({"evidence_id": [f"e{number:02}" for number in range(20)], "topic_id": ids})
    run.keep_table("links", filled(links, EVIDENCE_TOPIC))
    run.keep_table("aliases", empty(ALIASES))
    features = pl.DataFrame({"topic_id": ids, "salience": [number / 20 for number in range(20)]}).with_columns(
        scope=pl.lit("user:aya"), topic_kind=pl.lit(None, pl.String), state=pl.lit("active"), active=pl.lit(20)
    )
    topics, fitted = with_retention(store, run, features)
    return topics.sort("retention", "topic_id")["topic_id"].to_list(), fitted


def test_without_accesses_salience_decides(tmp_path: Path) -> None:
    found, fitted = order(store_of(tmp_path, []))
    assert found == sorted(found)
    assert fitted.equals(empty(EVICTION_FITS))


def test_few_accesses_are_too_little_evidence(tmp_path: Path) -> None:
    found, fitted = order(store_of(tmp_path, [("t00", day(3))]))
    assert found == sorted(found)
    assert fitted["hits"].equals(fitted["default_hits"].alias("hits"))


def test_where_only_the_latest_accesses_count_the_last_accessed_topics_stay(tmp_path: Path) -> None:
    """For thirty days each day's topics are those of the day before, shifted by one: recency is all there is."""
    accesses = [
        (f"t{(today + place) % 20:02}", day(today) + timedelta(minutes=place * 7 + again))
        for today in range(5, NOW)
        for place in range(6)
        for again in range(4)
    ]
    found, fitted = order(store_of(tmp_path, accesses))
    assert fitted["hits"].item() > fitted["default_hits"].item()
    assert fitted["half_life_days"].item() < 16
    assert set(found[-6:]) == {f"t{(NOW - 1 + place) % 20:02}" for place in range(6)}
