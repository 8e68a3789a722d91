"""References of forms to observations: ids that lead to the topic that holds an observation of the scope.

A reference is an alias of that topic, so that whatever follows aliases follows references too. What is about an
observation that is still unknown has no topic until it arrives.
"""

from __future__ import annotations

import polars as pl

from memstate_core.model.forms.item import OBSERVATION, REFERENCE
from memstate_core.model.forms.verification import VERIFICATION
from memstate_core.model.frames import empty, project
from memstate_core.model.step_frames import ALIASES, PLACEMENTS
from memstate_core.placement.named import REFUSED

_LONGEST = 32
"""How many references may follow one another."""


def reference_aliases(evidence: pl.DataFrame, placements: pl.DataFrame) -> pl.DataFrame:
    """The topic of every observation that a form refers to (columns ALIASES).

    Args:
        evidence: the whole evidence of the shard (columns EVIDENCE).
        placements: the topic of each piece (columns PLACEMENTS), itself a reference where a form names one.
    """
    wanted = _wanted(evidence)
    if not wanted.len():
        return empty(ALIASES)
    named = pl.concat_str(pl.lit(REFERENCE), "scope", pl.lit(f":{OBSERVATION}:"), "observation_id")
    rows = evidence.select("evidence_id", "scope", alias=named).filter(pl.col("alias").is_in(wanted.implode()))
    held = rows.join(placements.select("evidence_id", "topic_id").drop_nulls(), on="evidence_id")
    return project(_followed(held), ALIASES).sort("alias")


def resolved(placements: pl.DataFrame, references: pl.DataFrame) -> pl.DataFrame:
    """The placements with the topics that references lead to; refused where an observation is not known yet."""
    led = pl.col("topic_id").replace(references["alias"], references["topic_id"])
    lost = led.str.starts_with(REFERENCE).fill_null(False)
    placed = placements.with_columns(
        topic_id=pl.when(~lost).then(led),
        operation=pl.when(lost).then(pl.lit(REFUSED)).otherwise("operation"),
        reason=pl.when(lost).then(pl.lit("it names an observation that is not known yet")).otherwise("reason"),
    )
    return project(placed, PLACEMENTS)


def _wanted(evidence: pl.DataFrame) -> pl.Series:
    """The references that evidence holds, each once."""
    edges = evidence.filter(pl.col("edges").list.len() > 0).select(
        id=pl.col("edges").list.eval(pl.element().struct.field("to_topic_id"))
    )
    records = evidence.filter(pl.col("topic_kind") == VERIFICATION).select(
        id=pl.col("fields").list.eval(pl.element().struct.field("ref_topic_id"))
    )
    ids = pl.concat([evidence["topic_id"], edges["id"].explode(), records["id"].explode()]).drop_nulls()
    return ids.filter(ids.str.starts_with(REFERENCE)).unique()


def _followed(held: pl.DataFrame) -> pl.DataFrame:
    """References that lead to references, followed to their end; without those that lead to no topic or in a circle."""
    for _ in range(_LONGEST):
        further = held["topic_id"].replace(held["alias"], held["topic_id"])
        if further.equals(held["topic_id"]):
            break
        held = held.with_columns(topic_id=further)
    return held.filter(~pl.col("topic_id").str.starts_with(REFERENCE))
