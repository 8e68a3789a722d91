"""The `merges` step: duplicates become one topic, by recorded decisions that the fold follows.

A merge changes no data itself. It records which topic was dropped and which survives, and the ledger is folded
again with that decision: histories interleave by valid time, edges and references follow, and the dropped topic
stays as a tombstone that resolves to its survivor. Undoing the decision restores everything.
"""

from __future__ import annotations

import polars as pl

from memstate_core.model.frames import conform, empty, project
from memstate_core.model.ledger_tables import DECISION
from memstate_core.model.step_frames import CHANGES, MERGE_BAND
from memstate_core.revise.matching.clustering import in_group, joined
from memstate_core.revise.merge_precision import ESTIMATES, estimates
from memstate_core.revise.reading_text import READING, reading_text
from memstate_core.revise.spot_checks import DECIDING, merge_checks
from memstate_core.run.apply import apply_state, changes
from memstate_core.run.embed_topics import refresh_embeddings
from memstate_core.run.refold import fold_of_steps, fold_run
from memstate_core.run.run import Run
from memstate_core.run.step import StepResult
from memstate_core.run.store import Store
from memstate_core.state.fold.decisions import JUDGED, MERGED, UNMERGED
from memstate_core.state.fold.rollbacks import ROLLED_BACK, in_effect
from memstate_core.state.fold.shard_history import of_shard
from memstate_core.state.graph import TOPIC, open_graph

STEP = "merges"
SHOWN = 20
"""Merges that the metadata of the step show."""


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
    checked = _checked(store, run)
    run.keep_table("spot_checks", checked)
    tables = {"spot checks of earlier runs": checked} if checked.height else {}
    if not decided.height:
        return StepResult(empty(CHANGES), {"merges": 0, "expected_false_merges": 0.0}, tables, decided)
    earlier = fold_of_steps(store, run, decided)
    run.decide(STEP, decided)
    folded = fold_run(store, run, earlier)
    with open_graph(run.graph, buffer_mib=store.settings.store.graph_buffer_mib) as graph:
        applied = apply_state(run, graph, folded, new_evidence=False)
    refreshed = refresh_embeddings(store, run)
    frame = changes(folded.state, applied).with_columns(
        change=pl.when(pl.col("topic_id").is_in(decided["topic_id"].implode()))
        .then(pl.lit("merged"))
        .otherwise("change")
    )
    made = pairs.filter(pl.col("band") == MERGE_BAND)
    right = in_group(*(made[name].to_numpy() for name in ("a", "b", "probability")))
    counts = {"merges": decided.height, "expected_false_merges": round(float((1 - right).sum()), 2), **refreshed.counts}
    tables = {"merged": _shown(decided), **tables}
    return StepResult(conform(frame, CHANGES), counts, tables, decided)


_OLDEST = {"survivor": "id", "survivor_title": "title"}
_RECORDED = (
    "survivor", "survivor_title", "dropped_title", "dropped_kind",
    "probability", "weight", "features", "partner", "reading", "confirmed_by",
)  # fmt: skip
"""What a merge records: titles as they were, features and reading of the pair, how many answers confirm it."""
_SHOWN = pl.Struct(
    {
        **dict.fromkeys(("survivor", "survivor_title", "dropped_title"), pl.String),
        "probability": pl.Float64,
        "reading": READING,
    }
)


def decide(pairs: pl.DataFrame, topics: pl.DataFrame) -> pl.DataFrame:
    """Merge decisions (columns DECISION): one for each topic to drop.

    Topics of one scope joined by pairs of the merge band form a group; topics of different scopes are never merged.
    The survivor is the oldest topic (created_at, then id), whatever the order of pairs. A decision holds the mean
    probability of the dropped topic with the others of its group, the strongest such pair's other topic (`partner`),
    and the features and the reading of that pair.

    Args:
        pairs: columns PAIRS.
        topics: columns id, scope, title, topic_kind, created_at of every topic in the pairs.
    """
    sure = pairs.filter(pl.col("band") == MERGE_BAND)
    members = joined(sure).join(topics, on="id")
    oldest = {name: pl.col(of).first().over("group", "scope") for name, of in _OLDEST.items()}
    ranked = members.sort("group", "created_at", "id").with_columns(**oldest)
    dropped = ranked.filter(pl.col("id") != pl.col("survivor")).sort("id")
    rows = dropped.join(_support(sure), on="id").rename({"title": "dropped_title", "topic_kind": "dropped_kind"})
    payload = pl.struct(_RECORDED)
    reason = pl.format(
        "the same with probability {}: {}", pl.col("probability").round(4), _strongest(pl.col("features"))
    )
    answers = pl.format("; {} answers about such pairs confirm it", "confirmed_by")
    reason = pl.when(pl.col("confirmed_by") > 0).then(pl.concat_str(reason, answers)).otherwise(reason)
    decided = rows.with_columns(kind=pl.lit(MERGED), topic_id="id", payload_json=payload.struct.json_encode())
    return project(decided.with_columns(reason=reason), DECISION, nulls=("evidence_ids",))


def _checked(store: Store, run: Run) -> pl.DataFrame:
    """The precision of earlier runs whose merges people have checked (columns ESTIMATES), newest run first."""
    if run.facts.transitions_version is None:
        return empty(ESTIMATES)
    table = store.ledger.scan("transitions", run.facts.transitions_version)
    kinds = pl.col("kind").is_in([*DECIDING, ROLLED_BACK])
    own = in_effect(of_shard(table, run.facts.shard).filter(kinds).sort("seq").collect())
    if not own["kind"].is_in([JUDGED, UNMERGED]).any():
        return empty(ESTIMATES)
    return estimates(merge_checks(own, run.policy.merge_probability)).filter(pl.col("answered") > 0)


def _shown(decided: pl.DataFrame) -> pl.DataFrame:
    """The first merges: titles of both topics, probability, and the reading as text."""
    recorded = pl.col("payload_json").str.json_decode(_SHOWN)
    first = decided.select("scope", "topic_id", _payload=recorded).head(SHOWN).unnest("_payload")
    texts = [reading_text(reading) for reading in first["reading"]]
    shown = first.with_columns(reading=pl.Series(texts, dtype=pl.String))
    return shown.select("dropped_title", "survivor_title", "probability", "reading", "scope", "topic_id", "survivor")


_OF_STRONGEST = ("weight", "features", "partner", "reading", "confirmed_by")


def _support(sure: pl.DataFrame) -> pl.DataFrame:
    """The evidence for each topic's merge (columns id, probability and _OF_STRONGEST)."""
    ends = [
        sure.drop("scope").rename({one: "id", other: "partner"}).with_columns(reading=_from_side(one, other))
        for one, other in (("a", "b"), ("b", "a"))
    ]
    both = pl.concat([ends[0], ends[1].select(ends[0].columns)]).sort("weight", "partner", descending=[True, False])
    grouped = both.group_by("id", maintain_order=True)
    return grouped.agg(pl.col("probability").mean(), pl.col(_OF_STRONGEST).first())


def _from_side(one: str, other: str) -> pl.Expr:
    """The readings of pairs with the values of topic `one` as those of the dropped topic."""
    part = pl.element().struct
    values = pl.struct(part.field("name"), dropped=part.field(one), partner=part.field(other))
    return pl.col("reading").struct.with_fields(pl.field("differ").list.eval(values))


def _strongest(features: pl.Expr) -> pl.Expr:
    """The names of the three comparisons with the largest weights."""
    by_weight = pl.element().sort_by(pl.element().struct.field("weight"), descending=True)
    return features.list.eval(by_weight.struct.field("name")).list.head(3).list.join(", ")
