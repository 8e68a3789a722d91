"""The topic that a segment continues, if any: an existing one, or an earlier segment of the same import.

Segments are processed in the order of time, so that importing years of chats at once gives the topics of nightly
imports. Each scope decides for itself (`memstate_core.placement.continuation_graph`), by a probability calibrated on
the scope (`memstate_core.placement.calibration`). Invariant: scopes are never compared with each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from memstate_core.model.frames import Schema
from memstate_core.placement.calibration import calibrated
from memstate_core.placement.continuation_graph import NONE, NOTHING, Bools, ContinuationGraph
from memstate_core.placement.segment_vectors import SegmentVectors
from memstate_core.placement.vectors import Embeddings, Numbers
from memstate_core.policy.settings import Policy

FOUND: Schema = {"id": pl.String, "topic_id": pl.String, "score": pl.Float64, "probability": pl.Float64}


def continued(new: SegmentVectors, existing: Embeddings, recorded: SegmentVectors, policy: Policy) -> pl.DataFrame:
    """The topic that each new segment continues.

    Args:
        new: segments that have no topic yet.
        existing: the topics that may be continued.
        recorded: segments of earlier runs, on which the scope's calibration rests.
        policy: `placement_probability`, and `placement_similarity` as the least plain cosine.

    Returns:
        Columns FOUND: the new segment's id, the topic's (for an earlier new segment, that one's id), the centred
        cosine with it, the probability; only segments that continue something.
    """
    compared = _Compared.of(new, existing, recorded)
    topics, known = _rows(existing.scopes), _rows(recorded.frame["scope"])
    found = [NOTHING]
    for scope, rows in _rows(new.frame["scope"]).items():
        own = topics.get(scope, NONE)
        pairs = compared.scope(own, known.get(scope, NONE), rows).continued(policy)
        found.append(pairs.renumbered(np.concatenate([own, len(existing.ids) + rows])))
    segment, topic, score, probability = (np.concatenate(parts) for parts in zip(*found, strict=True))
    ids = pl.concat([existing.ids, new.frame["id"]])
    return pl.DataFrame(
        {
            "id": ids.gather(segment),
            "topic_id": ids.gather(topic),
            "score": score.round(6),
            "probability": probability.round(6),
        },
        schema=FOUND,
    )


def _rows(scopes: pl.Series) -> dict[str, Numbers]:
    """The rows of each scope, in order."""
    grouped = scopes.to_frame("scope").with_row_index("row").group_by("scope", maintain_order=True).agg("row")
    return {scope: np.asarray(rows, dtype=np.int64) for scope, rows in grouped.iter_rows()}


@dataclass(frozen=True)
class _Compared:
    """The data of all scopes, from which each scope selects its rows.

    Attributes:
        new: segments that have no topic yet.
        existing: the topics that may be continued.
        recorded: segments of earlier runs.
        sessions: a number for the session of each recorded segment, and of each new one.
        comparable: which new segments may be continued or continue something.
    """

    new: SegmentVectors
    existing: Embeddings
    recorded: SegmentVectors
    sessions: tuple[Numbers, Numbers]
    comparable: Bools

    @classmethod
    def of(cls, new: SegmentVectors, existing: Embeddings, recorded: SegmentVectors) -> _Compared:
        numbers = pl.concat([recorded.frame["session"], new.frame["session"]]).rank("dense").to_numpy()
        past, own = np.split(numbers.astype(np.int64), [recorded.frame.height])
        return cls(new, existing, recorded, (past, own), new.frame["comparable"].to_numpy())

    def scope(self, topics: Numbers, known: Numbers, rows: Numbers) -> ContinuationGraph:
        """One scope, by its rows of the topics, of the segments of earlier runs and of the new ones."""

        def joined(recorded: npt.NDArray[Any], new: npt.NDArray[Any]) -> npt.NDArray[Any]:
            return np.concatenate([recorded[known], new[rows]])

        first, second = (joined(*side) for side in zip(self.recorded.halves, self.new.halves, strict=True))
        calibration = calibrated(joined(self.recorded.whole, self.new.whole), (first, second), joined(*self.sessions))
        plain = np.concatenate([self.existing.vectors[topics], self.new.whole[rows]])
        may = np.concatenate([np.ones(len(topics), bool), self.comparable[rows]])
        return ContinuationGraph(len(topics), may, plain, calibration.centred(plain), calibration)
