"""The `merges` step: duplicates become one topic, by recorded decisions that the fold follows.

A merge moves nothing by hand. It records which topic was dropped and which survives, and the ledger is
folded again with that: histories interleave by valid time, edges and references follow, the dropped topic
stays as a tombstone that resolves to its survivor. Taking the decision back takes everything back.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from memstate_core.embed.refresh import refresh_embeddings
from memstate_core.model.frames import CHANGES, DECISION, conform, empty
from memstate_core.state.apply import apply_state, changes, fold_run
from memstate_core.state.decisions import MERGED
from memstate_core.state.graph import TOPIC, open_graph
from memstate_core.state.run import Run
from memstate_core.state.step import StepResult
from memstate_core.state.store import Store

STEP = "merges"


def merge_duplicates(store: Store, run: Run, pairs: pl.DataFrame) -> StepResult:
    """Merges duplicates in the working graph.

    Args:
        store: the store.
        run: the run in progress.
        pairs: columns PAIRS.

    Returns:
        Columns CHANGES: survivors (updated) and dropped topics (merged).
    """
    with open_graph(run.graph, read_only=True) as graph:
        topics = graph.read(TOPIC, ["id", "scope", "title", "topic_kind", "created_at"], "r.state = 'active'")
    decided = decide(pairs, topics)
    if not decided.height:
        return StepResult(empty(CHANGES), {"merges": 0}, {}, decided)
    run.decide(STEP, decided)
    state = fold_run(store, run)
    with open_graph(run.graph, buffer_mib=store.settings.store.graph_buffer_mib) as graph:
        applied = apply_state(run, graph, state)
    refreshed = refresh_embeddings(store, run)
    frame = changes(state, applied).with_columns(
        change=pl.when(pl.col("topic_id").is_in(decided["topic_id"].implode()))
        .then(pl.lit("merged"))
        .otherwise("change")
    )
    counts = {"merges": decided.height, **refreshed.counts}
    return StepResult(conform(frame, CHANGES), counts, {"merged": decided.drop("evidence_ids").head(20)}, decided)


def decide(pairs: pl.DataFrame, topics: pl.DataFrame) -> pl.DataFrame:
    """Merge decisions (columns DECISION): one for each topic to drop.

    Topics joined by duplicate pairs form a group; a group with a conflicting pair inside is left alone.
    The survivor is the topic that was there first (created_at, then id), whatever order pairs come in.

    Args:
        pairs: columns PAIRS.
        topics: columns id, scope, title, topic_kind, created_at of every topic in the pairs.
    """
    groups = _groups(pairs.filter("duplicate"))
    inside = pairs.join(groups.rename({"id": "a"}), on="a").join(groups.rename({"id": "b"}), on="b", suffix="_b")
    torn = inside.filter((pl.col("group") == pl.col("group_b")) & (pl.col("conflicts") > 0))
    members = groups.join(torn.select("group"), on="group", how="anti").join(topics, on="id")
    ranked = members.sort("group", "created_at", "id").with_columns(survivor=pl.col("id").first().over("group"))
    dropped = ranked.filter(pl.col("id") != pl.col("survivor")).sort("id")
    best = pl.concat(
        [pairs.filter("duplicate"), pairs.filter("duplicate").rename({"a": "b", "b": "a"})], how="diagonal"
    )
    best = best.group_by(id="a").agg(pl.col("score", "agreements").max(), pl.col("rule").first())
    scored = dropped.join(best, on="id").rename({"title": "dropped_title", "topic_kind": "dropped_kind"})
    payload = pl.struct("survivor", "dropped_title", "dropped_kind", "score", "agreements").struct.json_encode()
    reason = pl.format("{}; {} further agreements, no conflict", "rule", "agreements")
    return conform(
        scored.with_columns(kind=pl.lit(MERGED), topic_id="id", payload_json=payload, reason=reason), DECISION
    )


def _groups(duplicates: pl.DataFrame) -> pl.DataFrame:
    ids = pl.concat([duplicates["a"], duplicates["b"]]).unique().sort()
    if not len(ids):
        return pl.DataFrame(schema={"id": pl.String, "group": pl.Int32})
    row, column = ids.search_sorted(duplicates["a"]), ids.search_sorted(duplicates["b"])
    links = coo_array((np.ones(duplicates.height), (row, column)), shape=(len(ids), len(ids)))
    return pl.DataFrame({"id": ids, "group": connected_components(links, directed=False)[1]})
