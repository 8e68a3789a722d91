"""Nights over a real ledger, a real graph and the real model, and what can be read after them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from memstate_core.forget.ladder import forget
from memstate_core.forget.salience import update_salience
from memstate_core.ingest.importer import import_paths
from memstate_core.night.publish import publish
from memstate_core.night.reused_base import place_or_reuse_base
from memstate_core.revise.dependency import queue_reviews
from memstate_core.revise.duplicates import find_duplicates
from memstate_core.revise.merge import merge_duplicates
from memstate_core.run.apply import update_topics
from memstate_core.run.begin import begin_run, new_evidence
from memstate_core.run.embed_topics import refresh_embeddings
from memstate_core.run.run import Run
from memstate_core.run.step import StepResult
from memstate_core.run.store import Store
from memstate_core.state.current import current_snapshot
from memstate_core.state.graph import TOPIC, open_graph
from memstate_core.state.kept_open import kept_open
from tests.core.strategies import day

Topic = Mapping[str, Any]


@dataclass(frozen=True)
class Night:
    """The results of the two steps."""

    found: StepResult
    merged: StepResult


def record(store: Store, topics: Mapping[str, Topic], at: int) -> None:
    """Imports an observation a topic, each with a topic of its own, one a minute."""
    _imported(
        store, [{"observation_id": name, "placement": "new_topic", **topic} for name, topic in topics.items()], at
    )


def record_by_key(store: Store, topics: Mapping[str, Topic], at: int) -> None:
    """Imports an observation a key, one a minute; an empty key names no topic."""
    _imported(store, [{**({"topic_key": key} if key else {}), **topic} for key, topic in topics.items()], at)


def record_rows(store: Store, rows: Sequence[Mapping[str, Any]], at: int) -> None:
    """Imports observations as they are, one a minute."""
    _imported(store, rows, at)


@kept_open()
def night(store: Store, at: float, judgements: Sequence[tuple[Any, ...]] = (), shard: str = "s0") -> Night:
    """A nightly run of a shard, its steps in their order; with the verdicts of that day."""
    run, new, topics = _begun(store, at, judgements, shard)
    found = find_duplicates(store, run, topics)
    run.keep("duplicate_pairs", found, 0.0)
    merged = merge_duplicates(store, run, found.frame)
    run.keep("merges", merged, 0.0)
    _ended(store, run, new, pl.concat([topics, merged.frame]))
    return Night(found, merged)


def night_without_duplicates(store: Store, at: int) -> None:
    """A nightly run that looks for no duplicates."""
    run, new, topics = _begun(store, at)
    _ended(store, run, new, topics)


def ids(store: Store) -> dict[str, str]:
    """The topic that each observation made, by the observation's name."""
    evidence = store.ledger.scan("evidence").select("evidence_id", "observation_id").collect()
    snapshot = current_snapshot(store.home, "s0")
    assert snapshot is not None
    links = pl.read_parquet(snapshot.path / "evidence.parquet", columns=["evidence_id", "topic_id"])
    return dict(evidence.join(links, on="evidence_id").select("observation_id", "topic_id").iter_rows())


def topics(store: Store) -> pl.DataFrame:
    snapshot = current_snapshot(store.home, "s0")
    assert snapshot is not None
    with open_graph(snapshot.path / "graph.kuzu", read_only=True) as graph:
        return graph.read(TOPIC)


def transitions(store: Store, kind: str) -> pl.DataFrame:
    return store.ledger.scan("transitions").filter(pl.col("kind") == kind).collect().sort("seq")


def pair(found: StepResult, one: str, other: str) -> list[str]:
    """The band of a pair of topics; nothing for the ignore band."""
    a, b = sorted((one, other))
    return found.frame.filter((pl.col("a") == a) & (pl.col("b") == b))["band"].to_list()


def _imported(store: Store, rows: Sequence[Topic], at: int) -> None:
    observations = [
        {"scope": {"type": "user", "id": "aya"}}
        | {"observed_at": f"2026-01-{at + 1:02}T{minute // 60:02}:{minute % 60:02}:00Z", **row}
        for minute, row in enumerate(rows)
    ]
    path = store.home.root / f"day-{at}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in observations))
    report = import_paths(store.ledger, store.settings, [path], now=day(at), run_id=f"import-{at}")
    assert report.accepted == len(rows)


def _begun(
    store: Store, at: float, judgements: Sequence[tuple[Any, ...]] = (), shard: str = "s0"
) -> tuple[Run, pl.DataFrame, pl.DataFrame]:
    """A run with its vectors, the new evidence, and what changed."""
    run = begin_run(store, shard, f"night-{at}{'' if shard == 's0' else '-' + shard}", day(at))
    new = new_evidence(store, run).frame
    payloads = [(kind, topic, json.dumps(payload)) for kind, topic, payload in judgements]
    decided = pl.DataFrame(payloads, orient="row", schema=["kind", "topic_id", "payload_json"])
    run.decide("corrections", decided.with_columns(scope=pl.lit("user:aya"), evidence_ids=None, reason=pl.lit("test")))
    run.keep("placements", place_or_reuse_base(store, run, new), 0.0)
    topics = update_topics(store, run)
    run.keep("topics", topics, 0.0)
    refresh_embeddings(store, run)
    return run, new, topics.frame


def _ended(store: Store, run: Run, new: pl.DataFrame, changed: pl.DataFrame) -> None:
    run.keep("dependency_review", queue_reviews(run, changed), 0.0)
    update_salience(run)
    run.keep("forgetting", forget(store, run, new), 0.0)
    publish(store, run)
    run.end()
