"""Reads from recorded decisions what people answered about suggested pairs (`matching.answers`)."""

from __future__ import annotations

import polars as pl

from memstate_core.model.frames import Schema
from memstate_core.model.verdicts import DIFFERENT, SAME
from memstate_core.revise.matching.answers import KINDS, Answers
from memstate_core.state.fold.decisions import PAIR_SUGGESTED, judgements

ANSWERED: Schema = {"scope": pl.String, "probability": pl.Float64, "pair_kind": pl.String, "same": pl.Boolean}
_SHOWN = pl.Struct({"a": pl.String, "b": pl.String, "probability": pl.Float64, "pair_kind": pl.String})


def answered(decisions: pl.DataFrame) -> pl.DataFrame:
    """Pairs that were suggested and then judged (columns ANSWERED); suggestions of earlier versions name no kind."""
    shown = decisions.filter(pl.col("kind") == PAIR_SUGGESTED).select(
        "scope", _payload=pl.col("payload_json").str.json_decode(_SHOWN)
    )
    known = shown.unnest("_payload").filter(pl.col("pair_kind").is_in(KINDS))
    last = known.group_by("a", "b", maintain_order=True).last()
    said = judgements(decisions).filter(pl.col("verdict").is_in([SAME, DIFFERENT]))
    both = said.join(last, on=["a", "b"], maintain_order="left")
    return both.select("scope", "probability", "pair_kind", same=pl.col("verdict") == SAME)


def answers_of(rows: pl.DataFrame) -> Answers:
    """Answers of one scope (columns ANSWERED)."""
    kind = rows["pair_kind"].replace_strict(KINDS, range(len(KINDS)), return_dtype=pl.Int64)
    return Answers(rows["probability"].to_numpy(), kind.to_numpy(), rows["same"].to_numpy())
