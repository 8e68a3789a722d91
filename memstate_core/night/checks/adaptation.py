"""C6: salience follows from what the ledger records, and accesses since the base raised the salience of their topics.

Salience is compared with the base before it is clipped to its maximum, as a logarithm, so that levels differ however
far they have decayed. An access after the topic's last event must have an effect; that of an earlier one may be below
the precision. Topics that changed for other reasons too are left out: those with a failed access, those that lost
evidence to another or were merged, those of which rows were set aside, those with another kind than before, and those
whose last event is later than the run. If the policy differs from that of the base, nothing is compared.
"""

from __future__ import annotations

from datetime import datetime

import polars as pl

from memstate_core.night.checks.check import Check, check, violating
from memstate_core.night.checks.checked_state import CheckedState, Tables
from memstate_core.state.fold.decisions import MERGED, MOVED, SET_ASIDE, UNMERGED

_DAYS = 86_400_000_000
_ROUNDING = 1e-9
_TOLERANCE = 1e-6
_OTHERS = pl.Struct({"was": pl.String, "survivor": pl.String})


def adaptation(checked: CheckedState, base: Tables | None, missing: str | None = None) -> Check:
    """Salience against the ledger, and accessed topics against the base.

    Args:
        checked: the state.
        base: the tables of the snapshot that the run started from; None without one.
        missing: why there is none to compare with, if the ledger records one.
    """
    notes = [f"accessed topics not checked against the base: {missing}"] if missing else []
    found = [*_unfounded(checked)]
    if base is not None and checked.recorded.base is not None:
        if checked.recorded.base.policy_hash == checked.recorded.policy.digest():
            found.append(
                violating(not_raised(checked, base), "topic_id", "it was accessed and is not more salient for it")
            )
        else:
            notes.append("accessed topics not checked against the base: its policy is another")
    return check("C6", found, notes)


def _unfounded(checked: CheckedState) -> list[pl.DataFrame]:
    topics, fields = checked.levels
    columns = ["salience", "strength", "half_life_days"]
    of_topics = checked.graph.living.join(topics, left_on="id", right_on="topic_id", suffix="_due")
    of_fields = checked.graph.fields.join(fields, on=["topic_id", "name"], suffix="_due")
    unequal = _differs([*columns, "failed_salience", "failed_strength"])
    return [
        violating(of_topics.filter(unequal), "id", "its salience does not follow from evidence and accesses"),
        violating(
            of_fields.filter(_differs(columns)),
            "topic_id",
            "a field's salience does not follow from evidence and accesses",
        ),
    ]


def _differs(columns: list[str]) -> pl.Expr:
    far = [
        (pl.col(name).fill_null(0.0) - pl.col(f"{name}_due").fill_null(0.0)).abs()
        > _TOLERANCE * pl.max_horizontal(1.0, pl.col(f"{name}_due").abs())
        for name in columns
    ]
    return pl.any_horizontal(*far, pl.col("reinforced_at").ne_missing(pl.col("reinforced_at_due")))


def not_raised(checked: CheckedState, base: Tables) -> pl.DataFrame:
    """Topics whose salience accesses since the base did not raise (column topic_id among others)."""
    now = checked.recorded.now
    rows = checked.recorded.fresh_accesses.with_columns(checked.derived.answering(pl.col("topic_id")))
    others = pl.concat([rows.filter("failed")["topic_id"], _changed_otherwise(checked)]).implode()
    used = rows.filter(~pl.col("topic_id").is_in(others)).group_by("topic_id").agg(_used=pl.col("at").max())
    topics = checked.graph.living.select("topic_kind", "reinforced_at", topic_id="id", _now=_level(now))
    before = base.topics.select(_kind="topic_kind", _last="reinforced_at", topic_id="id", _before=_level(now))
    both = used.join(topics, on="topic_id").join(before, on="topic_id")
    same = pl.col("topic_kind").eq_missing(pl.col("_kind")) & (pl.col("reinforced_at") <= now)
    late, change = pl.col("_used") > pl.col("_last"), pl.col("_now") - pl.col("_before")
    raised = pl.when(late).then(change > 0).otherwise(change > -_ROUNDING)
    return both.filter(same & ~raised)


def _level(now: datetime) -> pl.Expr:
    """The logarithm to base 2 of the decayed strength."""
    elapsed = (pl.lit(now) - pl.col("reinforced_at")).dt.total_microseconds() / _DAYS
    return pl.col("strength").log(2) - elapsed / pl.col("half_life_days")


def _changed_otherwise(checked: CheckedState) -> pl.Series:
    """Topics that lost evidence or accesses, or were merged or unmerged, in the last run."""
    rows = checked.recorded.last.filter(pl.col("kind").is_in([MERGED, MOVED, SET_ASIDE, UNMERGED]))
    payload = rows["payload_json"].str.json_decode(_OTHERS).struct
    ids = pl.concat([payload.field("was"), payload.field("survivor"), rows["topic_id"]]).drop_nulls()
    ends = pl.DataFrame({"id": ids}).select(checked.derived.answering(pl.col("id")))["id"]
    return pl.concat([ids, ends]).unique()
