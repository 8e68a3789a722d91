"""Reads from recorded decisions what people answered about suggested pairs (`matching.answers`)."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from memstate_core.model.frames import Schema, project
from memstate_core.model.verdicts import DIFFERENT, SAME, SKIP
from memstate_core.revise.constraints import resolved
from memstate_core.revise.matching.answers import KINDS, Answers, Flags, Reals, Sample
from memstate_core.revise.matching.arrays import Ints
from memstate_core.revise.suggestions import drawn, likely
from memstate_core.state.fold.decisions import (
    JUDGED,
    PAIR_SUGGESTED,
    PAIR_WITHDRAWN,
    PERSON,
    UNMERGED,
    judgements,
    merges,
)
from memstate_core.state.fold.identity import survivors

ANSWERED: Schema = {
    "scope": pl.String,
    "probability": pl.Float64,
    "value": pl.Float64,
    "pair_kind": pl.String,
    "same": pl.Boolean,
    "at": pl.Int64,
    "in_order": pl.Boolean,
}
"""A suggested pair with the last verdict on it: `same` is null if it was skipped. `at` is the position of the verdict
among the decisions; it is `in_order` if no pair that came before it in the queue still waits without a verdict."""
_PAIR = pl.Struct(
    dict.fromkeys(("a", "b", "survivor", "actor", "verdict", "pair_kind"), pl.String)
    | dict.fromkeys(("probability", "value"), pl.Float64)
)


def answered(decisions: pl.DataFrame) -> pl.DataFrame:
    """Pairs that were suggested and then judged, in the order of the last verdicts (columns ANSWERED).

    A merge of a suggested pair that a person undid is an answer `different`. Suggestions of earlier versions name no
    kind.
    """
    numbered = _numbered(decisions, [PAIR_SUGGESTED, PAIR_WITHDRAWN, JUDGED, UNMERGED])
    said = _said(decisions, numbered)
    shown = numbered.filter(pl.col("kind") == PAIR_SUGGESTED).group_by("a", "b", maintain_order=True).last()
    known = shown.filter(pl.col("pair_kind").is_in(KINDS)).drop("at", "kind", "verdict")
    both = said.join(known, on=["a", "b"], maintain_order="left").sort("at")
    same = pl.when(pl.col("verdict") != SKIP).then(pl.col("verdict") == SAME)
    left = _left(decisions, numbered).join(said, on=["a", "b"], how="anti")
    return project(both.with_columns(same=same, in_order=_in_order(both, left)), ANSWERED)


def waiting(decisions: pl.DataFrame) -> pl.DataFrame:
    """Pairs that are suggested, by what their topics were merged into (columns scope, and those of WAITING)."""
    numbered = _numbered(decisions, [PAIR_SUGGESTED, PAIR_WITHDRAWN])
    moved = resolved(_suggested(numbered), survivors(merges(decisions)))
    return moved.group_by("scope", "a", "b", maintain_order=True).agg(pl.col("at").min())


def answers_of(rows: pl.DataFrame, waiting: pl.DataFrame | None) -> Answers:
    """Answers of one scope (columns ANSWERED), and the pairs that are suggested in it; None if all are, for ever."""
    sampled = rows.filter(pl.col("in_order") | ~pl.col("same"))
    probability, kind, same = _columns(rows.drop_nulls("same"))
    value, at = (sampled[name].to_numpy() for name in ("value", "at"))
    return Answers(probability, kind, same, Sample(*_columns(sampled), value, at, waiting))


def _columns(rows: pl.DataFrame) -> tuple[Reals, Ints, Flags]:
    kind = rows["pair_kind"].replace_strict(KINDS, range(len(KINDS)), return_dtype=pl.Int64)
    return rows["probability"].to_numpy(), kind.to_numpy(), rows["same"].fill_null(False).to_numpy()


def _numbered(decisions: pl.DataFrame, kinds: Sequence[str]) -> pl.DataFrame:
    """Decisions of some kinds about two topics, with their position as `at`."""
    rows = decisions.select("kind", "scope", "topic_id", "payload_json").with_row_index("at").cast({"at": pl.Int64})
    rows = rows.filter(pl.col("kind").is_in(kinds))
    return rows.with_columns(_payload=pl.col("payload_json").str.json_decode(_PAIR)).unnest("_payload")


def _suggested(numbered: pl.DataFrame) -> pl.DataFrame:
    """The last suggestion of each pair that was not withdrawn since."""
    named = numbered.filter(pl.col("kind").is_in([PAIR_SUGGESTED, PAIR_WITHDRAWN]))
    last = named.group_by("a", "b", maintain_order=True).last()
    return last.filter(pl.col("kind") == PAIR_SUGGESTED)


def _left(decisions: pl.DataFrame, numbered: pl.DataFrame) -> pl.DataFrame:
    """Suggested pairs of topics that were not merged away."""
    gone = merges(decisions)["dropped"].implode()
    return _suggested(numbered).filter(~pl.col("a").is_in(gone) & ~pl.col("b").is_in(gone))


def _said(decisions: pl.DataFrame, numbered: pl.DataFrame) -> pl.DataFrame:
    """The verdicts in force, skips among them (columns a, b, verdict, at), each where it was last given."""
    ends = {"a": pl.min_horizontal("topic_id", "survivor"), "b": pl.max_horizontal("topic_id", "survivor")}
    undone = numbered.filter(pl.col("kind") == UNMERGED, pl.col("actor") == PERSON).with_columns(**ends)
    undone = undone.select("a", "b", "at", verdict=pl.lit(DIFFERENT))
    given = numbered.filter(pl.col("kind") == JUDGED).select("a", "b", "verdict", "at")
    given = given.group_by("a", "b", "verdict").agg(pl.col("at").max())
    held = judgements(decisions).join(given, on=["a", "b", "verdict"])
    both = pl.concat([undone, held.select(undone.columns)]).sort("at")
    return both.group_by("a", "b", maintain_order=True).last()


def _in_order(answers: pl.DataFrame, left: pl.DataFrame) -> pl.Series:
    """Whether no pair waits that was suggested before each verdict and came before its pair in the queue.

    Pairs of another value do not count: they are no part of the sample.

    Args:
        answers: columns scope, a, b, probability, value, at, in the order of `at`.
        left: pairs without a verdict, with the same columns.
    """
    columns = ("scope", "a", "b", "probability", "value", "at")
    rows = pl.concat(
        [part.select(columns).with_columns(left=pl.lit(flag)) for part, flag in ((answers, False), (left, True))]
    )
    ranked = rows.with_columns(
        likely=likely(), order=drawn().rank("ordinal"), value=(pl.col("value") * 1e4).round().cast(pl.Int64)
    )
    ranked = ranked.sort("at", "left", descending=[False, True])
    first = pl.when("left").then("order").cum_min().forward_fill().over("scope", "value", "likely")
    return (
        ranked.with_columns(first=first)
        .filter(~pl.col("left"))
        .select(pl.col("first").is_null() | (pl.col("order") < pl.col("first")))
        .to_series()
    )
