"""Groups new turns into the sessions that a model reads, and cuts long sessions into chunks.

Turns without a session form one session per scope, in order of time. Turns whose `placement` requests a new topic are
left out. Chunks end at segment boundaries, unless a segment is longer than a chunk.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from memstate_core.embed.encoder import Vectors
from memstate_core.model.text import iso
from memstate_core.placement.text_tiling import segment
from memstate_core.placement.vectors import centroids
from memstate_core.policy.settings import SegmentSettings

_LONGEST_TURN = 8000


class Turn(NamedTuple):
    """A turn: evidence id, actor, time and text."""

    evidence_id: str
    actor: str | None
    observed_at: datetime
    text: str


@dataclass(frozen=True)
class Session:
    """The new turns of one session, in order.

    Attributes:
        scope: the scope of all of them.
        session_id: the session; None for turns without one.
        turns: the turns.
        segments: the number of each turn's segment, ascending from 0.
        vectors: a unit vector per turn (float32, n x d).
    """

    scope: str
    session_id: str | None
    turns: Sequence[Turn]
    segments: Sequence[int]
    vectors: Vectors

    @property
    def subjects(self) -> Vectors:
        """The centroid of each segment (float32, n x d)."""
        return centroids(np.array(self.segments, dtype=np.int64), self.vectors, self.segments[-1] + 1)

    @property
    def name(self) -> str:
        """Its name in reports."""
        return f"{self.scope}/{self.session_id or 'turns without a session'}"

    @property
    def characters(self) -> int:
        """The length of its turns."""
        return sum(len(turn.text) for turn in self.turns)


def readable() -> pl.Expr:
    """Whether a turn may be sent to a model: it has text, and does not request a new topic."""
    own = (pl.col("placement") == "new_topic").fill_null(False)
    return ~own & (pl.col("text").str.strip_chars().str.len_chars() > 0).fill_null(False)


def in_sessions(turns: pl.DataFrame) -> pl.DataFrame:
    """Turns with a column `_session`, sorted by the start of the session, the session, and their order in it."""
    began = pl.col("observed_at").min().over("scope", "session_id")
    return turns.with_columns(_session=pl.struct("scope", "session_id"), _began=began).sort(
        "_began", "scope", "session_id", "turn", "observed_at", "evidence_id", nulls_last=True
    )


def sessions(ordered: pl.DataFrame, vectors: Vectors, settings: SegmentSettings) -> list[Session]:
    """The sessions of turns.

    Args:
        ordered: turns as `in_sessions` returns them.
        vectors: the turns' unit vectors (float32, n x d).
        settings: how a session is cut into segments.
    """
    number = ordered.select(pl.col("_session").rle_id()).to_series()
    numbers = segment(number.cast(pl.String), vectors, settings)
    framed = ordered.with_columns(_segment=numbers, _row=pl.int_range(pl.len()))
    return [_session(part, vectors) for part in framed.partition_by("_session", maintain_order=True)]


def _session(part: pl.DataFrame, vectors: Vectors) -> Session:
    segments = part.select(pl.col("_segment").rle_id()).to_series().to_list()
    rows = part.select("evidence_id", "actor", "observed_at", "text").iter_rows()
    turns = [Turn(*row) for row in rows]
    return Session(part["scope"][0], part["session_id"][0], turns, segments, vectors[part["_row"].to_numpy()])


def chunks(session: Session, longest: int) -> list[range]:
    """The session in parts of about `longest` characters, as ranges of turns."""
    bounds, length = [0], 0
    for start, stop in _segments(session):
        size = sum(len(turn.text) for turn in session.turns[start:stop])
        if length and length + size > longest:
            bounds.append(start)
            length = 0
        length += size
        if length > longest:
            bounds += _cuts(session, bounds[-1], stop, longest)
            length = sum(len(turn.text) for turn in session.turns[bounds[-1] : stop])
    return [range(start, stop) for start, stop in zip(bounds, [*bounds[1:], len(session.turns)], strict=True)]


def _segments(session: Session) -> Iterator[tuple[int, int]]:
    edges = [at for at in range(1, len(session.turns)) if session.segments[at] != session.segments[at - 1]]
    return zip([0, *edges], [*edges, len(session.turns)], strict=True)


def _cuts(session: Session, start: int, stop: int, longest: int) -> list[int]:
    """The turns at which a segment that is longer than a chunk is cut."""
    cuts, length = [], 0
    for at in range(start, stop):
        size = len(session.turns[at].text)
        if length and length + size > longest:
            cuts.append(at)
            length = 0
        length += size
    return cuts


def shown(turns: Sequence[Turn], first: int | None = None) -> list[dict[str, Any]]:
    """Turns as prompt data, numbered from `first` or without numbers; a very long text is shortened in its middle."""
    rows = []
    for at, turn in enumerate(turns):
        number = {} if first is None else {"turn": first + at}
        rows.append({**number, "at": iso(turn.observed_at), "by": turn.actor, "text": _shortened(turn.text)})
    return rows


def _shortened(text: str) -> str:
    half = _LONGEST_TURN // 2
    left_out = len(text) - 2 * half
    return text if left_out <= 0 else f"{text[:half]} … ({left_out} characters left out) … {text[-half:]}"
