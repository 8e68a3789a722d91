"""Searches one scope: decides what may be seen, has it scored, and keeps the best.

By default only topics that are served (active) and their evidence are seen (C1). With a moment to look
back to, topics that have since been detached or archived are seen too, and nothing that came later.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import numpy as np
import polars as pl

from memstate_core.embed.encoder import DIMENSION
from memstate_core.retrieve.index import TOPIC_COLUMNS, matrix
from memstate_core.retrieve.layout import SERVED_STATE
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.retrieve.scoring import Array, Asked, Parts, evidence_parts, topic_parts, total
from memstate_core.retrieve.slices import TopicSlice
from memstate_core.state.graph import TOPIC, VECTOR


@dataclass(frozen=True)
class Found:
    """What one scope has to say to a question.

    Attributes:
        topics: all topics that may be seen, with `score`, `similarity` (null when not compared) and
            `parts` (what the score is made of).
        evidence: the best evidence, best first, with `score` and `parts`.
    """

    topics: pl.DataFrame
    evidence: pl.DataFrame


def search_scope(
    reader: SnapshotReader, scope: str, asked: Asked, *, evidence_k: int, as_of: datetime | None, topic_ids: list[str]
) -> Found:
    """Scores the topics and the evidence of one scope.

    Args:
        reader: the snapshot that serves the scope.
        scope: which scope.
        asked: the question.
        evidence_k: how much evidence to keep.
        as_of: look back to this moment.
        topic_ids: keep evidence of these topics only, archived ones too; all that are served when empty.
    """
    served = reader.topics(scope)
    topics = _with_departed(reader, scope) if topic_ids or as_of is not None else served
    visible = topics.frame if as_of is None else topics.frame.filter(pl.col("created_at") <= as_of)
    if topic_ids and as_of is None:
        visible = visible.filter(pl.col("id").is_in([*topic_ids, *served.frame["id"]]))
    evidence = reader.evidence(scope)
    scored = _scored(evidence.frame, evidence_parts(evidence, asked)).filter(_may_be_seen(visible, as_of))
    parts, similarity = topic_parts(topics, asked, _best_by_topic(scored, topics.frame))
    ranked = _scored(topics.frame, parts).with_columns(pl.Series("similarity", similarity).fill_nan(None))
    if topic_ids:
        scored = scored.filter(pl.col("topic_id").is_in(topic_ids))
    return Found(ranked.join(visible, on="id", how="semi"), best_first(scored, "evidence_id").head(evidence_k))


def best_first(rows: pl.DataFrame, key: str) -> pl.DataFrame:
    """Rows by falling score; equal ones by key, so that the order never depends on chance."""
    return rows.sort("score", key, descending=[True, False])


def _scored(frame: pl.DataFrame, parts: Parts) -> pl.DataFrame:
    return frame.with_columns(pl.Series("score", total(parts)), pl.DataFrame(parts).to_struct("parts"))


def _may_be_seen(topics: pl.DataFrame, as_of: datetime | None) -> pl.Expr:
    seen = pl.col("topic_id").is_null() | pl.col("topic_id").is_in(topics["id"].implode())
    return seen if as_of is None else seen & (pl.col("observed_at") <= as_of)


def _best_by_topic(evidence: pl.DataFrame, topics: pl.DataFrame) -> Array:
    best = evidence.group_by("topic_id").agg(pl.col("score").max())
    joined = topics.select("id").join(best, left_on="id", right_on="topic_id", how="left", maintain_order="left")
    return joined["score"].fill_null(float("nan")).to_numpy()


def _with_departed(reader: SnapshotReader, scope: str) -> TopicSlice:
    """The served topics of a scope, then those that have been detached or archived (never tombstones)."""
    served = reader.topics(scope)
    where = "r.scope = $scope AND r.state <> $served AND r.merged_into IS NULL"
    departed = reader.graph.read(TOPIC, [*TOPIC_COLUMNS], where, scope=scope, served=SERVED_STATE).sort("id")
    kept = reader.graph.read(VECTOR, ["id", "embedding"], "r.id IN $ids", ids=departed["id"].to_list())
    placed = departed.select("id").with_row_index().join(kept, on="id")
    vectors = np.full((departed.height, DIMENSION), np.nan, dtype=np.float32)
    vectors[placed["index"].to_numpy()] = matrix(placed["embedding"])
    return TopicSlice(pl.concat([served.frame, departed]), np.concatenate([served.vectors, vectors]), served.words)
