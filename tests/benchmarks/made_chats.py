"""Chats that move from subject to subject."""

from __future__ import annotations

import numpy as np
import polars as pl
from drawing import WINDOW_SECONDS, Spec, any_of, column, fill, mix, moment, pick
from vocabulary import (
    ADJECTIVES,
    NOUNS,
    PEOPLE,
    PLACES,
    SENTENCES,
    TURN,
)


def turns(spec: Spec) -> pl.DataFrame:
    """Turns in sessions of 20 to 40, in which the subject changes every 6 to 12 turns."""
    rng = np.random.default_rng([spec.seed, 9])
    lengths = rng.integers(20, 41, size=spec.rows // 20 + 1)
    starts = np.sort(rng.random(len(lengths))) * (WINDOW_SECONDS - 40 * 300)
    session = np.repeat(np.arange(len(lengths)), lengths)[: spec.rows].astype(np.uint64)
    frame = pl.DataFrame({"session": session, "gap": rng.integers(5, 300, size=spec.rows)})
    frame = frame.with_row_index("row").with_columns(turn=pl.int_range(1, pl.len() + 1).over("session"))
    pace = mix(spec.seed, 10, session) % np.uint64(7) + np.uint64(6)
    subject = mix(spec.seed, 11, session, column(frame, "turn") // pace)
    start = pl.Series(starts[session.astype(np.int64)].astype(np.int64))
    return frame.with_columns(
        subject=pl.Series(subject),
        draw=pl.Series(mix(spec.seed, 12, column(frame, "row")) >> np.uint64(8)),
        observed=start + pl.col("gap").cum_sum().over("session"),
    )


def lines(part: pl.DataFrame, spec: Spec) -> pl.Series:
    """The lines of some turns, in their order."""
    return part.select(line=_line(spec))["line"]


def _line(spec: Spec) -> pl.Expr:
    draw = pl.col("draw")
    words = {**subject_words(pl.col("subject")), "number": draw // 1000 % 480 + 12}
    first, second = draw % len(SENTENCES), draw + 1 + draw // 100 % (len(SENTENCES) - 1)
    first, second = any_of(SENTENCES, first, words), any_of(SENTENCES, second, words)
    text = pl.when(draw % 3 == 0).then(first).otherwise(pl.concat_str(first, second, separator=" "))
    speaker = pl.when(pl.col("turn") % 2 == 1).then(pl.lit("user")).otherwise(pl.lit("assistant"))
    line = {name: pl.col(name) for name in ("session", "turn")}
    line |= {"seed": pl.lit(str(spec.seed)), "scope": pl.col("session") % spec.scopes, "speaker": speaker}
    return fill(TURN, {**line, "observed_at": moment(pl.col("observed")), "text": text})


def subject_words(draw: pl.Expr) -> dict[str, pl.Expr]:
    """The words of a subject."""
    vocabularies = {"adjective": ADJECTIVES, "noun": NOUNS, "other": NOUNS, "place": PLACES, "person": PEOPLE}
    return {name: pick(words, draw, salt) for salt, (name, words) in enumerate(vocabularies.items())}
