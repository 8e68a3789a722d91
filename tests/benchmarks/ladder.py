"""Decay and the ladder of forgetting on synthetic topics: seconds by part and the peak of memory.

Topics are made from a seed: a hundred scopes of Zipf-like sizes, two fields a topic, one to seven values of each
over the last three years, accesses of a fifth of the topics, an edge to another topic of the scope from each third one.
They are written into a real graph, and the steps of the night are run on it: strength (what the fold computes from
events), salience, and the ladder. With `--bound` the scopes are held to so many active topics each.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import polars as pl
from numpy.random import Generator

from memstate_core.forget.ladder import forget
from memstate_core.forget.salience import update_salience
from memstate_core.model.frames import empty, project
from memstate_core.model.graph_tables import EDGES, FIELDS, REVISIONS, TOPICS
from memstate_core.model.ledger_tables import ACCESSES
from memstate_core.model.step_frames import ALIASES, EVIDENCE_TOPIC
from memstate_core.policy.settings import Policy
from memstate_core.run.begin import begin_run
from memstate_core.run.run import Run
from memstate_core.run.store import Store, open_store
from memstate_core.state.fold.strength import strength
from memstate_core.state.graph import EDGE, FIELD, REVISION, TOPIC, open_graph

NOW = datetime(2026, 1, 1, tzinfo=UTC)
YEARS = 3
SCOPES = 100
FIELD_NAMES = ("owner", "stage")


def topics_of(count: int, rng: Generator) -> pl.DataFrame:
    """Topics (columns id, scope), the first scopes with the most."""
    share = 1 / np.arange(1, SCOPES + 1)
    scope = rng.choice(SCOPES, count, p=share / share.sum())
    ids = pl.Series("id", np.arange(count)).cast(pl.String).str.zfill(8)
    return pl.DataFrame({"id": "t" + ids, "scope": "project:p" + pl.Series(scope).cast(pl.String)})


def events_of(topics: pl.DataFrame, rng: Generator, policy: Policy) -> pl.DataFrame:
    """Events of fields (columns topic_id, name, at, weight, failed, half_life)."""
    slots = topics.select(topic_id="id").join(pl.DataFrame({"name": FIELD_NAMES}), how="cross")
    said = _at_random_times(slots, rng.integers(1, 8, slots.height), rng, policy.field_salience_initial)
    used = np.where(rng.random(slots.height) < 0.2, rng.integers(1, 6, slots.height), 0)
    return pl.concat([said, _at_random_times(slots, used, rng, policy.query_salience_bump)]).with_columns(
        failed=pl.lit(False), half_life=pl.lit(policy.salience_half_life_days)
    )


def _at_random_times(slots: pl.DataFrame, times: np.ndarray, rng: Generator, weight: float) -> pl.DataFrame:
    rows = slots[np.repeat(np.arange(slots.height), times)]
    ago = pl.Series(rng.random(rows.height) * YEARS * 365 * 86_400e6).cast(pl.Int64).cast(pl.Duration("us"))
    return rows.with_columns(at=pl.lit(NOW) - ago, weight=pl.lit(weight))


def fill(run: Run, topics: pl.DataFrame, by_topic: pl.DataFrame, by_field: pl.DataFrame, rng: Generator) -> None:
    """Writes the topics, their fields, one revision a field, and edges into the working graph."""
    described = topics.join(by_topic, left_on="id", right_on="topic_id").with_columns(
        title="id", state=pl.lit("active"), archived=pl.lit(False), pinned=pl.lit(False), created_at=pl.lit(NOW)
    )
    slots = by_field.with_columns(id=pl.concat_str("topic_id", "name"), field_type=pl.lit("string"))
    values = slots.select("id", "topic_id", "name", part=pl.lit("field"), rank=pl.lit(0), value_json=pl.lit('"x"'))
    linked = topics.gather_every(3).with_columns(to_id=pl.col("id").shuffle(seed=int(rng.integers(1000))).over("scope"))
    edges = linked.filter(pl.col("id") != pl.col("to_id")).select(from_id="id", to_id="to_id", kind=pl.lit("mentions"))
    off = pl.lit(False)
    with open_graph(run.graph, buffer_mib=4096) as graph:
        graph.insert(TOPIC, project(described, TOPICS, nulls=list(TOPICS)))
        graph.insert(FIELD, project(slots.with_columns(detached=off, conflicts=pl.lit(0)), FIELDS, nulls=list(FIELDS)))
        graph.insert(REVISION, project(values, REVISIONS, nulls=list(REVISIONS)))
        graph.insert(EDGE, project(edges.with_columns(detached=off), EDGES, nulls=list(EDGES)))
    links = topics.select(evidence_id="id", scope="scope", topic_id="id")
    for name, frame in {
        "links": project(links, EVIDENCE_TOPIC, nulls=list(EVIDENCE_TOPIC)),
        "aliases": empty(ALIASES),
        "compressed": empty(REVISIONS),
    }.items():
        run.keep_table(name, frame)


def measure(home: Path, count: int, seed: int, bound: int) -> dict[str, float | int]:
    """Seconds by part, steps taken, and the peak of memory in MiB, for so many topics in an empty home."""
    rng, seconds = np.random.default_rng(seed), dict[str, float]()
    store = _store(home, bound)
    topics = topics_of(count, rng)
    events = events_of(topics, rng, store.settings.policy)
    with _timed(seconds, "strength"):
        by_field = strength(events, ["topic_id", "name"], store.settings.policy)
        by_topic = strength(events.drop("name"), ["topic_id"], store.settings.policy)
    _record_accesses(store, events, store.settings.policy)
    run = begin_run(store, "s0", "benchmark", NOW)
    with _timed(seconds, "filling the graph (not of the night)"):
        fill(run, topics, by_topic, by_field, rng)
    with _timed(seconds, "salience"):
        run.keep("salience", update_salience(run), 0.0)
    with _timed(seconds, "ladder"):
        steps = forget(store, run, empty({"evidence_id": pl.String}))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"topics": count, "events": events.height, **seconds, **steps.counts, "peak MiB": round(peak)}


def _store(home: Path, bound: int) -> Store:
    (home / "memstate.toml").write_text(f"[policy]\nmax_active_topics = {bound}\n")
    return open_store(home, {})


def _record_accesses(store: Store, events: pl.DataFrame, policy: Policy) -> None:
    used = events.filter(pl.col("weight") == policy.query_salience_bump).with_row_index("access_id")
    rows = used.with_columns(recorded_at="at", fields=pl.concat_list("name"))
    with store.ledger.writing("benchmark"):
        store.ledger.append("accesses", project(rows, ACCESSES, nulls=list(ACCESSES)), "benchmark")


@contextmanager
def _timed(seconds: dict[str, float], part: str) -> Iterator[None]:
    began = time.perf_counter()
    yield
    seconds[part] = round(time.perf_counter() - began, 2)


def main(given: Sequence[str] | None = None) -> None:
    """Measures and prints one JSON document."""
    parser = argparse.ArgumentParser(description="Decay and ladder on made topics.")
    parser.add_argument("--topics", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--bound", type=int, default=100_000, help="active topics a scope may have")
    args = parser.parse_args(given)
    with tempfile.TemporaryDirectory() as home:
        print(json.dumps(measure(Path(home), args.topics, args.seed, args.bound), indent=1))


if __name__ == "__main__":
    main()
