"""Spot checks: the merges that people are asked to check.

Of the merges that a run made by itself, the most doubtful are asked for, and a random sample of the others. So the
precision of the run can be estimated (`merge_precision`), whatever the probabilities are worth. Where a merge of a
scope was rejected, those that the scope's next model supports less than the policy asks are asked for too; they count
only if they are in the sample.
"""

from __future__ import annotations

import polars as pl

from memstate_core.model.frames import MOMENT, Schema, project
from memstate_core.model.step_frames import PAIRS
from memstate_core.model.verdicts import DIFFERENT, SKIP
from memstate_core.revise.merge_history import merge_id
from memstate_core.revise.recorded_levels import logistic, rescored
from memstate_core.state.fold.decisions import JUDGED, MATCH_MODEL, MERGED, PERSON, UNMERGED, judgements

DOUBTFUL = 10
"""Merges with the lowest probability that are asked for, of each run."""
DRAWN = 20
"""Other merges that are asked for, drawn at random, of each run."""
DOUBTFUL_ONES, OTHERS = "doubtful", "others"
"""The strata that merges are drawn from."""
SHIFT = -0.05
"""Change of the logit from which the scope's model is said to support a merge less than when it was made."""

DECIDING = (MERGED, UNMERGED, JUDGED, MATCH_MODEL)
"""The kinds of decisions that spot checks follow from."""

CHECKS: Schema = {
    "id": pl.String,
    "run_id": pl.String,
    "at": MOMENT,
    "scope": pl.String,
    "dropped": pl.String,
    "survivor": pl.String,
    "probability": pl.Float64,
    "today": pl.Float64,
    "features": PAIRS["features"],
    "drawn_from": pl.String,
    "doubted": pl.Boolean,
    "verdict": pl.String,
}
"""A merge that a run made by itself: its probability then and, from its recorded comparisons, under the scope's
last model; the stratum that it is drawn from if it is asked for (`doubtful`, `others`), whether it would not
be made today, and the verdict on it."""

_PAYLOAD = pl.Struct(
    {
        "survivor": pl.String,
        "actor": pl.String,
        "probability": pl.Float64,
        "weight": pl.Float64,
        "features": PAIRS["features"],
    }
)


def merge_checks(transitions: pl.DataFrame, merge_probability: float) -> pl.DataFrame:
    """The merges that runs made by themselves, newest run first (columns CHECKS).

    Args:
        transitions: columns TRANSITIONS of one shard, in order; at least those of the kinds DECIDING.
        merge_probability: the probability that the policy asks of a merge.
    """
    made = _made(transitions)
    then, now = logistic(pl.col("weight")), logistic(pl.col("_today"))
    shifted = made.with_columns(_today=rescored(made, transitions))
    drop = pl.col("_today") - pl.col("weight") < SHIFT
    taught = (pl.col("verdict") == DIFFERENT).any().over("scope")
    fell = drop & (then >= merge_probability) & (now < merge_probability)
    doubted = fell & taught & pl.col("verdict").is_null()
    rows = shifted.with_columns(today=pl.when(drop).then(now).otherwise("probability"), doubted=doubted)
    return project(_sampled(rows).sort("seq", descending=True), CHECKS)


def open_checks(checks: pl.DataFrame) -> pl.DataFrame:
    """The merges that wait for a verdict, in the order in which to ask.

    First those that today's model would not make, then the newest run's, the doubtful ones before the others;
    skipped ones last.

    Args:
        checks: columns CHECKS.
    """
    is_asked = pl.col("doubted").fill_null(False) | pl.col("drawn_from").is_not_null()
    waiting = checks.filter(is_asked & (pl.col("verdict").is_null() | (pl.col("verdict") == SKIP)))
    skipped, certain = pl.col("verdict").eq_missing(pl.lit(SKIP)), ~pl.col("doubted").fill_null(False)
    age = -pl.col("at").to_physical()
    return waiting.sort(skipped, certain, age, "drawn_from", "today", "id", nulls_last=True)


def _made(transitions: pl.DataFrame) -> pl.DataFrame:
    """Merges by runs, with the verdict on each: of a person who judged the pair or who undid the merge.

    Merges that were undone because their topics turned out to belong to two scopes are left out.
    """
    rows = transitions.filter(pl.col("kind").is_in([MERGED, UNMERGED])).sort("seq")
    rows = rows.with_columns(_payload=pl.col("payload_json").str.json_decode(_PAYLOAD)).unnest("_payload")
    ended = {"_end": pl.col("kind").shift(-1).over("topic_id"), "_by": pl.col("actor").shift(-1).over("topic_id")}
    made = rows.with_columns(**ended).filter((pl.col("kind") == MERGED) & pl.col("actor").is_null())
    made = made.filter(pl.col("_end").is_null() | (pl.col("_by") == PERSON)).rename({"topic_id": "dropped"})
    ends = {"a": pl.min_horizontal("dropped", "survivor"), "b": pl.max_horizontal("dropped", "survivor")}
    said = judgements(transitions).rename({"verdict": "_said"})
    said = said.filter(pl.col("_said") != DIFFERENT)
    judged = made.with_columns(**ends).join(said, on=["a", "b"], how="left", maintain_order="left")
    verdict = pl.when(pl.col("_end").is_not_null()).then(pl.lit(DIFFERENT)).otherwise("_said")
    return judged.with_columns(id=merge_id(pl.col("dropped"), pl.col("survivor"), pl.col("run_id")), verdict=verdict)


def _sampled(made: pl.DataFrame) -> pl.DataFrame:
    """The merges with the stratum that they are drawn from; ids are hashes, so their order is random."""
    doubt = pl.struct("probability", "id").rank("ordinal").over("run_id") <= DOUBTFUL
    marked = made.with_columns(_doubtful=doubt)
    drawn = pl.col("id").rank("ordinal").over("run_id", "_doubtful") <= DRAWN
    stratum = pl.when("_doubtful").then(pl.lit(DOUBTFUL_ONES)).when(drawn).then(pl.lit(OTHERS))
    return marked.with_columns(drawn_from=stratum)
