"""Open suggestions for review: each pair is suggested once, and withdrawn when it leaves the review band."""

from __future__ import annotations

import polars as pl

from memstate_core.model.frames import project
from memstate_core.model.ids import uuid_expr
from memstate_core.model.ledger_tables import DECISION
from memstate_core.model.step_frames import REVIEW_BAND
from memstate_core.policy.settings import Policy
from memstate_core.revise.constraints import judged_different
from memstate_core.state.fold.decisions import PAIR_SUGGESTED, PAIR_WITHDRAWN, suggestions

DRIFT = 0.05
"""A suggestion is recorded again when its probability has changed by more than this, or its value by this share."""


def suggested(pairs: pl.DataFrame, before: pl.DataFrame, policy: Policy, searched: pl.Series) -> pl.DataFrame:
    """Decisions (columns DECISION) that update the open suggestions of some scopes to the run's review band.

    The value of a pair is its probability by the answers so far, at most that from which a run merges, times how many
    pairs of topics an answer joins, in units of FEW_PAIRS, where these are more. Pairs that a contradiction or an
    abstention keeps from a merge come first, since the model is sure of them and only an answer can merge them.

    Args:
        pairs: columns PAIRS.
        before: earlier decisions, in order.
        policy: gives the number of open suggestions of a scope.
        searched: the scopes that were searched; suggestions of others stay as they are.
    """
    band = pairs.filter(pl.col("band") == REVIEW_BAND).join(judged_different(before), on=["a", "b"], how="anti")
    valued = band.with_columns(value=pl.col("value").round(4)).sort(
        "value", likely(), drawn(), descending=[True, True, False]
    )
    best = valued.filter(pl.int_range(pl.len()).over("scope") < policy.review_max_pairs)
    is_open = (
        suggestions(before)
        .filter(pl.col("scope").is_in(searched.implode()))
        .select("a", "b", "scope", was="probability", valued="value", was_kind="pair_kind")
    )
    known = best.join(is_open.drop("scope"), on=["a", "b"], how="left", maintain_order="left")
    drifted = (pl.col("probability") - pl.col("was")).abs() > DRIFT
    revalued = (pl.col("value") - pl.col("valued")).abs() > DRIFT * pl.max_horizontal("valued", pl.lit(1.0))
    other = pl.col("pair_kind").ne_missing(pl.col("was_kind"))
    moved = pl.col("was").is_null() | other | drifted | revalued.fill_null(False)
    gone = is_open.join(best, on=["a", "b"], how="anti").sort("a", "b")
    return pl.concat([_suggested(known.filter(moved)), _withdrawn(gone)])


def likely() -> pl.Expr:
    """What comes first among pairs of one value: those that the fit takes for as likely, not the answers alone.

    They are what answers may confirm (`matching.confirmation`); columns probability, value.
    """
    return pl.col("probability") >= pl.col("value")


def drawn() -> pl.Expr:
    """What puts pairs of one value in random order, the same on every machine (columns a, b)."""
    return uuid_expr("question", pl.col("a"), pl.col("b"))


def _suggested(rows: pl.DataFrame) -> pl.DataFrame:
    payload = pl.struct("a", "b", "probability", "weight", "value", "pair_kind", "features").struct.json_encode()
    reason = pl.format("the same with probability {}, which is for a person to decide", pl.col("probability").round(3))
    return project(
        rows.with_columns(kind=pl.lit(PAIR_SUGGESTED), topic_id="a", payload_json=payload, reason=reason),
        DECISION,
        nulls=("evidence_ids",),
    )


def _withdrawn(rows: pl.DataFrame) -> pl.DataFrame:
    payload = pl.struct("a", "b").struct.json_encode()
    reason = pl.lit("no longer in the review band")
    return project(
        rows.with_columns(kind=pl.lit(PAIR_WITHDRAWN), topic_id="a", payload_json=payload, reason=reason),
        DECISION,
        nulls=("evidence_ids",),
    )
