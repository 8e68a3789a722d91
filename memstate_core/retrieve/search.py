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
from memstate_core.retrieve.index.layout import SERVED_STATE
from memstate_core.retrieve.index.windows import NOBODY
from memstate_core.retrieve.index.write import TOPIC_COLUMNS, matrix
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.retrieve.scope_data import EvidenceSlice, Flags, Rows, TopicSlice, places_of
from memstate_core.retrieve.scoring import Array, Asked, Parts, evidence_parts, topic_parts, total
from memstate_core.state.graph import TOPIC, VECTOR


@dataclass(frozen=True)
class Found:
    """What one scope has to say to a question.

    Attributes:
        topics: all topics that may be seen, with `score` and `similarity` (null when not compared).
        evidence: the best evidence, best first, with `score`.

    Both have `parts`, what the score is made of, where that was asked for.
    """

    topics: pl.DataFrame
    evidence: pl.DataFrame


def search_scope(
    reader: SnapshotReader,
    scope: str,
    asked: Asked,
    *,
    evidence_k: int,
    as_of: datetime | None,
    topic_ids: list[str],
    explain: bool,
) -> Found:
    """Scores the topics and the evidence of one scope.

    Args:
        reader: the snapshot that serves the scope.
        scope: which scope.
        asked: the question.
        evidence_k: how much evidence to keep.
        as_of: look back to this moment.
        topic_ids: keep evidence of these topics only, archived ones too; all that are served when empty.
        explain: keep what each score is made of.
    """
    served, evidence = reader.topics(scope), reader.evidence(scope)
    topics = _with_departed(reader, scope) if topic_ids or as_of is not None else served
    homes = reader.homes(scope) if topics is served else places_of(evidence.frame["topic_id"], topics.frame["id"])
    shown = _shown(topics, served, as_of, topic_ids)
    heard = _heard(evidence, homes, shown, as_of)
    parts = evidence_parts(evidence, asked)
    scores = total(parts)
    best = _best_by_topic(scores, np.where(heard, homes, NOBODY), topics.frame.height)
    topic_scores, similarity = topic_parts(topics, asked, best)
    if topic_ids:
        heard &= evidence.frame["topic_id"].is_in(topic_ids).fill_null(False).to_numpy()
    rows = _highest(scores, np.flatnonzero(heard), evidence_k)
    found = _scored(evidence.frame[rows], {name: part[rows] for name, part in parts.items()}, explain)
    ranked = _scored(topics.frame, topic_scores, explain).with_columns(
        pl.Series("similarity", similarity).fill_nan(None)
    )
    return Found(ranked if shown.all() else ranked.filter(shown), best_first(found, "evidence_id").head(evidence_k))


def best_first(rows: pl.DataFrame, key: str) -> pl.DataFrame:
    """Rows by falling score; equal ones by key, so that the order never depends on chance."""
    return rows.sort("score", key, descending=[True, False])


def _scored(frame: pl.DataFrame, parts: Parts, explain: bool) -> pl.DataFrame:
    told = [pl.DataFrame(parts).to_struct("parts")] if explain else []
    return frame.with_columns(pl.Series("score", total(parts)), *told)


def _best_by_topic(scores: Array, homes: Rows, topics: int) -> Array:
    """The best score of each topic's evidence; NaN where it has none."""
    best = np.full(topics + 1, -np.inf)
    np.maximum.at(best, homes, scores)  # what has no topic falls on the last one
    return np.where(np.isfinite(best), best, np.nan)[:-1]


def _highest(scores: Array, rows: Rows, count: int) -> Rows:
    """Those of the rows that may be among the first by score; all that tie with the last of them."""
    if not 0 < count < len(rows):
        return rows if count else rows[:0]
    least = np.partition(scores[rows], len(rows) - count)[len(rows) - count]
    highest: Rows = rows[scores[rows] >= least]
    return highest


def _shown(topics: TopicSlice, served: TopicSlice, as_of: datetime | None, topic_ids: list[str]) -> Flags:
    """Which topics may be returned."""
    if as_of is not None:
        return (topics.frame["created_at"] <= as_of).fill_null(False).to_numpy()
    shown = np.arange(topics.frame.height) < served.frame.height
    return shown | topics.frame["id"].is_in(topic_ids).to_numpy() if topic_ids else shown


def _heard(evidence: EvidenceSlice, homes: Rows, shown: Flags, as_of: datetime | None) -> Flags:
    """Which evidence may be returned: that of topics which may be, and what has no topic."""
    heard: Flags = evidence.alone | np.append(shown, False)[homes]
    return heard if as_of is None else heard & (evidence.frame["observed_at"] <= as_of).fill_null(False).to_numpy()


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
