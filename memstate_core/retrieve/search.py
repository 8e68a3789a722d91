"""Search in one scope: determines what is visible, scores it and keeps the best.

Only active topics and their evidence are visible (C1), unless a topic is requested by id. As of a past moment, what was
active then is, with the evidence observed by then.

Rarity of words and means of scores are those of the served snapshot, for the past too: they rank, and show nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from memstate_core.embed.encoder import Vectors
from memstate_core.embed.matrix import matrix
from memstate_core.model.forms.verification import VERIFICATION
from memstate_core.retrieve.calibration import Moments
from memstate_core.retrieve.index.layout import SERVED_STATE
from memstate_core.retrieve.index.windows import MISSING
from memstate_core.retrieve.index.write import TOPIC_COLUMNS
from memstate_core.retrieve.newest_first import newer, replaced_by
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.retrieve.replacement import PLACES, pool_of
from memstate_core.retrieve.scope_data import EvidenceSlice, Flags, Rows, TopicSlice, places_of
from memstate_core.retrieve.scoring import (
    Parts,
    PreparedQuestion,
    evidence_parts,
    highest,
    topic_parts,
    topic_similarity,
    topic_text_part,
)
from memstate_core.retrieve.standard_scores import Array, total
from memstate_core.retrieve.superseded import Statements, statements, superseded_evidence
from memstate_core.retrieve.turns.edits import exchanged
from memstate_core.state.graph import TOPIC, VECTOR

if TYPE_CHECKING:
    from memstate_core.retrieve.past import Past


@dataclass(frozen=True)
class Found:
    """The result of one scope: scores of all its topics, and the best of its evidence.

    Attributes:
        topics: the topics (n).
        visible: which of them may be returned (n).
        scores: the score of each topic (n).
        similarity: its cosine with the question, NaN if not compared (n).
        topic_parts: the parts of its score (each n).
        evidence: the evidence.
        rows: the rows of the best evidence, in no particular order (m).
        evidence_scores: their scores (m).
        evidence_parts: the parts of their scores (each m).
        replaced_by: the observation that may have replaced each, as `EvidenceHit` has it (m).
        topic_moments: of the scores of all visible topics.
        evidence_moments: of the scores of all evidence that may be returned.
    """

    topics: TopicSlice
    visible: Flags
    scores: Array
    similarity: Array
    topic_parts: Parts
    evidence: EvidenceSlice
    rows: Rows
    evidence_scores: Array
    evidence_parts: Parts
    replaced_by: list[str | None]
    topic_moments: Moments
    evidence_moments: Moments


def search_scope(
    reader: SnapshotReader,
    scope: str,
    asked: PreparedQuestion,
    *,
    evidence_k: int,
    as_of: datetime | None,
    topic_ids: list[str],
    only: pl.Expr | None = None,
) -> Found:
    """Scores the topics and the evidence of one scope.

    Args:
        reader: the snapshot with the scope.
        scope: the scope.
        asked: the question.
        evidence_k: how much evidence to keep.
        as_of: search as of this moment.
        topic_ids: keep evidence of these topics only, archived ones too; of all served topics when empty.
        only: keep evidence of which this is true only (over columns EVIDENCE_INDEX); all if None.
    """
    served = reader.topics(scope)
    topics, evidence, stated = _state(reader, scope, served, as_of, archived=bool(topic_ids))
    homes = reader.homes(scope) if topics is served else places_of(evidence.frame["topic_id"], topics.frame["id"])
    visible = topics.is_served | topics.frame["id"].is_in(topic_ids).to_numpy() if topic_ids else topics.is_served
    seen = _visible_evidence(evidence, homes, visible, as_of)
    similarity = topic_similarity(topics, asked)
    parts = evidence_parts(evidence, asked)
    if stated.stating.any():
        parts["topic_text"] = topic_text_part(evidence, similarity, homes, stated.stating)
    scores = total(parts.values())
    best = _best_by_topic(scores, np.where(seen, homes, MISSING), topics.frame.height)
    topic_scores = topic_parts(topics, asked, best, similarity)
    seen = _kept(evidence, seen, topic_ids, only)
    if (evidence.last_wordings != MISSING).any():
        parts["edited"] = exchanged(evidence.last_wordings, scores, seen)
        scores = scores + parts["edited"]
    pool = None
    if asked.dated:
        pool = pool_of(evidence, scores, seen, stated.stating, max(PLACES, evidence_k)) if asked.present else None
        parts["newer"] = newer(pool, scores, seen, stated)
        scores = scores + parts["newer"]
    rows = highest(scores, np.flatnonzero(seen), evidence_k)
    replaced = replaced_by(evidence, pool, seen, rows, stated)
    of_evidence, by_topic = Moments.of(scores[seen], parts), total(topic_scores.values())
    return Found(
        topics,
        visible,
        by_topic,
        similarity,
        topic_scores,
        evidence,
        rows,
        scores[rows],
        {name: part[rows] for name, part in parts.items()},
        replaced,
        Moments.of(by_topic[visible], topic_scores),
        of_evidence,
    )


def _state(
    reader: SnapshotReader, scope: str, served: TopicSlice, as_of: datetime | None, archived: bool
) -> tuple[TopicSlice, EvidenceSlice, Statements]:
    """Topics, evidence and what it states: as served, with archived topics or without, or as of a past moment."""
    evidence = reader.evidence(scope)
    if as_of is None:
        return _with_archived(reader, scope) if archived else served, evidence, reader.statements(scope)
    past = reader.past(scope, as_of)
    known = _past_evidence(evidence, past)
    return _past_topics(reader, scope, past), known, _past_statements(known, past)


def _kept(evidence: EvidenceSlice, seen: Flags, topic_ids: list[str], only: pl.Expr | None) -> Flags:
    """The evidence that is seen and asked for (n)."""
    if topic_ids:
        seen = seen & evidence.frame["topic_id"].is_in(topic_ids).fill_null(False).to_numpy()
    return seen if only is None else seen & evidence.frame.select(only).to_series().to_numpy()


def _best_by_topic(scores: Array, homes: Rows, topics: int) -> Array:
    """The best score of each topic's evidence; NaN where it has none."""
    best = np.full(topics + 1, -np.inf)
    np.maximum.at(best, homes, scores)  # rows without a topic fall on the last, extra one
    return np.where(np.isfinite(best), best, np.nan)[:-1]


def _visible_evidence(evidence: EvidenceSlice, homes: Rows, visible: Flags, as_of: datetime | None) -> Flags:
    """Which evidence may be returned: that of visible topics, and evidence without a topic."""
    seen: Flags = evidence.without_topic | np.append(visible, False)[homes]
    return seen if as_of is None else seen & (evidence.frame["observed_at"] <= as_of).fill_null(False).to_numpy()


def _with_archived(reader: SnapshotReader, scope: str) -> TopicSlice:
    """The served topics of a scope, then those that have been detached or archived (never tombstones)."""
    served = reader.topics(scope)
    where = "r.scope = $scope AND r.state <> $served AND r.merged_into IS NULL"
    archived = reader.graph.read(TOPIC, [*TOPIC_COLUMNS], where, scope=scope, served=SERVED_STATE).sort("id")
    vectors = _graph_vectors(reader, archived.select("id"), ["id"])
    unindexed = np.full(archived.height, MISSING)
    return TopicSlice(
        pl.concat([served.frame, archived]),
        np.concatenate([served.vectors, vectors]),
        served.terms,
        np.concatenate([served.term_rows, unindexed]),
    )


def _past_topics(reader: SnapshotReader, scope: str, past: Past) -> TopicSlice:
    """The living topics of a past moment; those whose text has changed since have neither terms nor a vector."""
    served, living = reader.topics(scope), past.topics.filter(pl.col("merged_into").is_null())
    topics = living.filter(pl.col("topic_kind").ne_missing(VERIFICATION))
    text = ["id", "title", "summary"]
    numbered = served.frame.select(text).with_row_index("row")
    rows = topics.select(text).join(numbered, on=text, how="left", nulls_equal=True, maintain_order="left")["row"]
    term_rows = rows.cast(pl.Int64).fill_null(MISSING).to_numpy()
    vectors, rest = _unknown(len(term_rows), served.vectors.shape[1]), term_rows == MISSING
    vectors[~rest] = served.vectors[term_rows[~rest]]
    vectors[rest] = _graph_vectors(reader, topics.select("id", "text_hash").filter(rest), ["id", "text_hash"])
    return TopicSlice(topics.select(TOPIC_COLUMNS), vectors, served.terms, term_rows)


def _graph_vectors(reader: SnapshotReader, topics: pl.DataFrame, key: list[str]) -> Vectors:
    """The vectors of topics from the graph, NaN without one (n x d)."""
    kept = reader.graph.read(VECTOR, [*key, "embedding"], "r.id IN $ids", ids=topics["id"].to_list())
    placed = topics.with_row_index().join(kept, on=key)
    vectors = _unknown(topics.height, reader.graph.dimension)
    vectors[placed["index"].to_numpy()] = matrix(placed["embedding"])
    return vectors


def _unknown(count: int, dimension: int) -> Vectors:
    return np.full((count, dimension), np.nan, dtype=np.float32)


def _past_evidence(evidence: EvidenceSlice, past: Past) -> EvidenceSlice:
    """The evidence of a scope with the topics that it belonged to at a past moment."""
    homes = past.evidence_topic.select("evidence_id", "topic_id")
    frame = evidence.frame.drop("topic_id").join(homes, on="evidence_id", how="left", maintain_order="left")
    return replace(evidence, frame=frame.select(evidence.frame.columns))


def _past_statements(evidence: EvidenceSlice, past: Past) -> Statements:
    """What the rows of evidence state at a past moment."""
    return statements(superseded_evidence(past.revisions), past.revisions, evidence.frame["evidence_id"])
