"""Search in one scope: determines what is visible, scores it and keeps the best.

By default only served (active) topics and their evidence are visible (C1). As of a past moment, topics that have been
archived since are visible too, and nothing later than the moment is.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import numpy as np
import polars as pl

from memstate_core.embed.encoder import DIMENSION
from memstate_core.retrieve.index.layout import SERVED_STATE
from memstate_core.retrieve.index.windows import MISSING
from memstate_core.retrieve.index.write import TOPIC_COLUMNS, matrix
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.retrieve.scope_data import EvidenceSlice, Flags, Rows, TopicSlice, places_of
from memstate_core.retrieve.scoring import Array, Parts, PreparedQuestion, evidence_parts, topic_parts, total
from memstate_core.state.graph import TOPIC, VECTOR


@dataclass(frozen=True)
class Found:
    """The result of one scope.

    Attributes:
        topics: all visible topics, with `score` and `similarity` (null if not compared).
        evidence: the best evidence, best first, with `score`.

    With `explain` both have `parts`, the parts of the score.
    """

    topics: pl.DataFrame
    evidence: pl.DataFrame


def search_scope(
    reader: SnapshotReader,
    scope: str,
    asked: PreparedQuestion,
    *,
    evidence_k: int,
    as_of: datetime | None,
    topic_ids: list[str],
    explain: bool,
) -> Found:
    """Scores the topics and the evidence of one scope.

    Args:
        reader: the snapshot with the scope.
        scope: the scope.
        asked: the question.
        evidence_k: how much evidence to keep.
        as_of: search as of this moment.
        topic_ids: keep evidence of these topics only, archived ones too; of all served topics when empty.
        explain: keep the parts of each score.
    """
    served, evidence = reader.topics(scope), reader.evidence(scope)
    topics = _with_archived(reader, scope) if topic_ids or as_of is not None else served
    homes = reader.homes(scope) if topics is served else places_of(evidence.frame["topic_id"], topics.frame["id"])
    visible = _visible_topics(topics, served, as_of, topic_ids)
    seen = _visible_evidence(evidence, homes, visible, as_of)
    parts = evidence_parts(evidence, asked)
    scores = total(parts)
    best = _best_by_topic(scores, np.where(seen, homes, MISSING), topics.frame.height)
    topic_scores, similarity = topic_parts(topics, asked, best)
    if topic_ids:
        seen &= evidence.frame["topic_id"].is_in(topic_ids).fill_null(False).to_numpy()
    rows = _highest(scores, np.flatnonzero(seen), evidence_k)
    found = _scored(evidence.frame[rows], {name: part[rows] for name, part in parts.items()}, explain)
    ranked = _scored(topics.frame, topic_scores, explain).with_columns(
        pl.Series("similarity", similarity).fill_nan(None)
    )
    return Found(ranked if visible.all() else ranked.filter(visible), best_first(found, "evidence_id").head(evidence_k))


def best_first(rows: pl.DataFrame, key: str) -> pl.DataFrame:
    """Rows by descending score; ties by key, so that the order is deterministic."""
    return rows.sort("score", key, descending=[True, False])


def _scored(frame: pl.DataFrame, parts: Parts, explain: bool) -> pl.DataFrame:
    explained = [pl.DataFrame(parts).to_struct("parts")] if explain else []
    return frame.with_columns(pl.Series("score", total(parts)), *explained)


def _best_by_topic(scores: Array, homes: Rows, topics: int) -> Array:
    """The best score of each topic's evidence; NaN where it has none."""
    best = np.full(topics + 1, -np.inf)
    np.maximum.at(best, homes, scores)  # rows without a topic fall on the last, extra one
    return np.where(np.isfinite(best), best, np.nan)[:-1]


def _highest(scores: Array, rows: Rows, count: int) -> Rows:
    """The rows with the `count` highest scores, and all that tie with the last of them."""
    if not 0 < count < len(rows):
        return rows if count else rows[:0]
    least = np.partition(scores[rows], len(rows) - count)[len(rows) - count]
    highest: Rows = rows[scores[rows] >= least]
    return highest


def _visible_topics(topics: TopicSlice, served: TopicSlice, as_of: datetime | None, topic_ids: list[str]) -> Flags:
    """Which topics may be returned."""
    if as_of is not None:
        return (topics.frame["created_at"] <= as_of).fill_null(False).to_numpy()
    is_served = np.arange(topics.frame.height) < served.frame.height
    return is_served | topics.frame["id"].is_in(topic_ids).to_numpy() if topic_ids else is_served


def _visible_evidence(evidence: EvidenceSlice, homes: Rows, visible: Flags, as_of: datetime | None) -> Flags:
    """Which evidence may be returned: that of visible topics, and evidence without a topic."""
    seen: Flags = evidence.without_topic | np.append(visible, False)[homes]
    return seen if as_of is None else seen & (evidence.frame["observed_at"] <= as_of).fill_null(False).to_numpy()


def _with_archived(reader: SnapshotReader, scope: str) -> TopicSlice:
    """The served topics of a scope, then those that have been detached or archived (never tombstones)."""
    served = reader.topics(scope)
    where = "r.scope = $scope AND r.state <> $served AND r.merged_into IS NULL"
    archived = reader.graph.read(TOPIC, [*TOPIC_COLUMNS], where, scope=scope, served=SERVED_STATE).sort("id")
    kept = reader.graph.read(VECTOR, ["id", "embedding"], "r.id IN $ids", ids=archived["id"].to_list())
    placed = archived.select("id").with_row_index().join(kept, on="id")
    vectors = np.full((archived.height, DIMENSION), np.nan, dtype=np.float32)
    vectors[placed["index"].to_numpy()] = matrix(placed["embedding"])
    return TopicSlice(pl.concat([served.frame, archived]), np.concatenate([served.vectors, vectors]), served.terms)
