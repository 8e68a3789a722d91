"""The `duplicate_pairs` step: which topics are one and the same, by a first, conservative rule.

Two active topics of a scope are duplicates when their normalised titles and kinds are equal, nothing else
that both say disagrees (fields of the same name, explicit keys), and something else that both say agrees
(a field, or their summaries). Similar titles alone never suffice.
"""

from __future__ import annotations

import polars as pl

from memstate_core.model.frames import LINKS, PAIRS, conform
from memstate_core.model.text import normalised
from memstate_core.policy.settings import Policy
from memstate_core.state.graph import REVISION, TOPIC, VECTOR, open_graph
from memstate_core.state.run import Run
from memstate_core.state.step import StepResult
from memstate_core.state.store import Store
from memstate_core.state.view import shard_evidence

MAX_BLOCK = 64
"""Topics of one scope, kind and title that are compared with each other; a larger block is reported."""
_BLOCK = ["scope", "_kind", "_title"]


def find_duplicates(store: Store, run: Run) -> StepResult:
    """Candidate pairs of active topics with what was decided of each (columns PAIRS)."""
    with open_graph(run.graph, read_only=True) as graph:
        topics = graph.read(TOPIC, ["id", "scope", "title", "summary", "topic_kind"], "r.state = 'active'")
        blocks, skipped = _blocks(topics)
        members = blocks["id"].to_list()
        current = graph.read(
            REVISION,
            ["topic_id", "name", "value_json"],
            "r.part = 'field' AND r.rank = 0 AND r.value_json <> 'null' AND r.topic_id IN $ids",
            ids=members,
        )
        vectors = graph.read(VECTOR, ["id", "embedding"], "r.id IN $ids", ids=members)
    pairs = _pairs(blocks)
    evidence = [
        _compared(pairs, current.select("topic_id", "name", value=normalised(pl.col("value_json")))),
        _compared(pairs, _keys(store, run).select("topic_id", "value", name=pl.lit("topic_key"))),
        _summaries(pairs, blocks, vectors, run.policy),
    ]
    scored = pl.concat(evidence).group_by("a", "b").agg(pl.col("agreements", "conflicts").sum())
    frame = _decided(pairs.join(scored, on=["a", "b"], how="left"))
    counts = {
        "candidates": frame.height,
        "duplicates": int(frame["duplicate"].sum()),
        "conflicting": frame.filter(pl.col("conflicts") > 0).height,
        "topics_in_oversized_blocks": skipped,
    }
    return StepResult(
        frame,
        counts,
        {"candidate pairs": frame.sort("duplicate", "a", "b", descending=[True, False, False]).head(20)},
    )


def _blocks(topics: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    keyed = topics.with_columns(
        _title=normalised(pl.col("title")), _kind=normalised(pl.col("topic_kind")).fill_null("")
    )
    sized = keyed.with_columns(_size=pl.len().over(_BLOCK)).filter(pl.col("_size") > 1)
    return sized.filter(pl.col("_size") <= MAX_BLOCK), sized.filter(pl.col("_size") > MAX_BLOCK).height


def _pairs(blocks: pl.DataFrame) -> pl.DataFrame:
    joined = blocks.join(blocks, on=_BLOCK, suffix="_b").filter(pl.col("id") < pl.col("id_b"))
    return joined.select("scope", a="id", b="id_b").sort("a", "b")


def _compared(pairs: pl.DataFrame, values: pl.DataFrame) -> pl.DataFrame:
    """Names that both topics have values for: in agreement when they share one, else in conflict."""
    sets = values.group_by("topic_id", "name").agg(pl.col("value").unique())
    both = pairs.join(sets.rename({"topic_id": "a"}), on="a").join(
        sets.rename({"topic_id": "b", "value": "value_b"}), on=["b", "name"]
    )
    shared = pl.col("value").list.set_intersection("value_b").list.len() > 0
    return both.select("a", "b", agreements=shared.cast(pl.Int64), conflicts=(~shared).cast(pl.Int64))


def _keys(store: Store, run: Run) -> pl.DataFrame:
    keyed = shard_evidence(store.ledger, run, ["evidence_id", "topic_key"]).filter(pl.col("topic_key").is_not_null())
    links = run.table("links", LINKS)
    return keyed.join(links, on="evidence_id").select("topic_id", value="topic_key").unique()


def _summaries(pairs: pl.DataFrame, blocks: pl.DataFrame, vectors: pl.DataFrame, policy: Policy) -> pl.DataFrame:
    texts = blocks.filter(pl.col("summary").is_not_null()).join(vectors, on="id").select("id", "summary", "embedding")
    both = pairs.join(texts.rename({"id": "a"}), on="a").join(texts.rename({"id": "b"}), on="b", suffix="_b")
    cosine = (both["embedding"].to_numpy() * both["embedding_b"].to_numpy()).sum(axis=1) if both.height else []
    same = normalised(pl.col("summary")) == normalised(pl.col("summary_b"))
    alike = (same | (pl.Series("cosine", cosine, dtype=pl.Float64) >= policy.merge_similarity)).cast(pl.Int64)
    return both.select("a", "b", agreements=alike, conflicts=pl.lit(0, pl.Int64))


def _decided(pairs: pl.DataFrame) -> pl.DataFrame:
    agreements, conflicts = pl.col("agreements").fill_null(0), pl.col("conflicts").fill_null(0)
    counted = pairs.with_columns(agreements, conflicts, rule=pl.lit("same title and kind"))
    counted = counted.with_columns(score=agreements / (agreements + conflicts).clip(lower_bound=1))
    return conform(counted.with_columns(duplicate=(agreements > 0) & (conflicts == 0)), PAIRS)
