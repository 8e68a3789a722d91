"""New turns as the sessions that a model reads, and long sessions as chunks.

A turn without a session belongs to a session of all such turns of its scope, in order of time. A turn whose
writer asked for a topic of its own is not shown to a model. Chunks end where stretches end, as long as one
stretch does not exceed a chunk by itself.
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
from memstate_core.placement.vectors import means
from memstate_core.policy.settings import SegmentSettings

_LONGEST_TURN = 8000


class Turn(NamedTuple):
    """One turn: its evidence, who said it, when, and what."""

    evidence_id: str
    actor: str | None
    observed_at: datetime
    text: str


@dataclass(frozen=True)
class Session:
    """The new turns of one session, in order.

    Attributes:
        scope: the scope of all of them.
        session_id: the session; None for turns that have none.
        turns: the turns.
        stretches: for each turn the number of its stretch, not falling.
        vectors: a unit vector for each turn (float32, n x 384).
    """

    scope: str
    session_id: str | None
    turns: Sequence[Turn]
    stretches: Sequence[int]
    vectors: Vectors

    @property
    def subjects(self) -> Vectors:
        """The middle of each stretch (float32, n x 384)."""
        return means(np.array(self.stretches, dtype=np.int64), self.vectors, self.stretches[-1] + 1)

    @property
    def name(self) -> str:
        """How reports call it."""
        return f"{self.scope}/{self.session_id or 'turns without a session'}"

    @property
    def characters(self) -> int:
        """How much there is to read."""
        return sum(len(turn.text) for turn in self.turns)


def readable() -> pl.Expr:
    """Whether a turn may be shown to a model: it has words, and asks for no topic of its own."""
    own = (pl.col("placement") == "new_topic").fill_null(False)
    return ~own & (pl.col("text").str.strip_chars().str.len_chars() > 0).fill_null(False)


def in_sessions(turns: pl.DataFrame) -> pl.DataFrame:
    """Turns with a column `_session`, those of a session together and in order; sessions by their beginning."""
    began = pl.col("observed_at").min().over("scope", "session_id")
    return turns.with_columns(_session=pl.struct("scope", "session_id"), _began=began).sort(
        "_began", "scope", "session_id", "turn", "observed_at", "evidence_id", nulls_last=True
    )


def sessions(ordered: pl.DataFrame, vectors: Vectors, settings: SegmentSettings) -> list[Session]:
    """The sessions of turns.

    Args:
        ordered: as `in_sessions` gives them.
        vectors: the turns' unit vectors (float32, n x 384).
        settings: how a session is cut into stretches.
    """
    number = ordered.select(pl.col("_session").rle_id()).to_series()
    stretch = segment(number.cast(pl.String), vectors, settings)
    framed = ordered.with_columns(_stretch=stretch, _row=pl.int_range(pl.len()))
    return [_session(part, vectors) for part in framed.partition_by("_session", maintain_order=True)]


def _session(part: pl.DataFrame, vectors: Vectors) -> Session:
    stretches = part.select(pl.col("_stretch").rle_id()).to_series().to_list()
    rows = part.select("evidence_id", "actor", "observed_at", "text").iter_rows()
    turns = [Turn(*row) for row in rows]
    return Session(part["scope"][0], part["session_id"][0], turns, stretches, vectors[part["_row"].to_numpy()])


def chunks(session: Session, longest: int) -> list[range]:
    """The session in parts of about `longest` characters, as ranges of turns."""
    bounds, length = [0], 0
    for start, stop in _stretches(session):
        size = sum(len(turn.text) for turn in session.turns[start:stop])
        if length and length + size > longest:
            bounds.append(start)
            length = 0
        length += size
        if length > longest:
            bounds += _cuts(session, bounds[-1], stop, longest)
            length = sum(len(turn.text) for turn in session.turns[bounds[-1] : stop])
    return [range(start, stop) for start, stop in zip(bounds, [*bounds[1:], len(session.turns)], strict=True)]


def _stretches(session: Session) -> Iterator[tuple[int, int]]:
    edges = [at for at in range(1, len(session.turns)) if session.stretches[at] != session.stretches[at - 1]]
    return zip([0, *edges], [*edges, len(session.turns)], strict=True)


def _cuts(session: Session, start: int, stop: int, longest: int) -> list[int]:
    """Where a stretch that is too long by itself is cut, between turns."""
    cuts, length = [], 0
    for at in range(start, stop):
        size = len(session.turns[at].text)
        if length and length + size > longest:
            cuts.append(at)
            length = 0
        length += size
    return cuts


def shown(turns: Sequence[Turn], first: int | None = None) -> list[dict[str, Any]]:
    """Turns as a model sees them, numbered from `first`, or without numbers; a very long text is cut in the middle."""
    rows = []
    for at, turn in enumerate(turns):
        number = {} if first is None else {"turn": first + at}
        rows.append({**number, "at": iso(turn.observed_at), "by": turn.actor, "text": _shortened(turn.text)})
    return rows


def _shortened(text: str) -> str:
    half = _LONGEST_TURN // 2
    left_out = len(text) - 2 * half
    return text if left_out <= 0 else f"{text[:half]} … ({left_out} characters left out) … {text[-half:]}"
