"""Rules of a policy: on an event, for topics of which a condition holds, an action.

Of the rules of the ladder (summarise, detach, archive, pin) the first in the order of the file that fits a
topic governs it. Merge rules give other bands to pairs: the first that fits both topics holds. A rule fits
where its event concerns the topic and its condition holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import polars as pl
from pydantic import Field, field_validator, model_validator

from memstate_core.model.frames import Schema
from memstate_core.policy.conditions import parse_condition
from memstate_core.policy.loading import Section, refusal

RULE_COLUMNS: Schema = {
    "scope": pl.String,
    "scope_type": pl.String,
    "topic_kind": pl.String,
    "title": pl.String,
    "state": pl.String,
    "salience": pl.Float64,
    "failed_salience": pl.Float64,
    "age_days": pl.Float64,
    "idle_days": pl.Float64,
    "half_life_days": pl.Float64,
    "evidence": pl.Int64,
    "fields": pl.Int64,
    "active": pl.Int64,
    "depended_on": pl.Boolean,
    "redundant": pl.Boolean,
}
"""Columns that conditions may name: the part of the scope before the colon is `scope_type`; `age_days` counts
from the topic's creation and `idle_days` from its last event; `evidence` and `fields` count the topic's, `active`
the active topics of its scope; `depended_on` says that an active topic extends it, `redundant` that a newer one
supersedes it."""

EVENT_COLUMNS = {"ingest_complete": "told", "query_complete": "used", "memory_pressure": "pressure"}
"""The boolean column that says which topics an event concerns; `nightly` concerns all."""

Bands = tuple[float, float]
"""The probabilities from which pairs are merged and from which a person is asked."""


class Rule(Section):
    """One rule; the bands go with `do = "merge"`, and one that is left out is the policy's."""

    name: Annotated[str, Field(min_length=1)]
    """Name of the rule in reports and explanations; unique within a policy."""
    on: Literal["ingest_complete", "nightly", "memory_pressure", "query_complete"]
    """Event that selects topics: `nightly` (all), `ingest_complete` (with new evidence in this run), `query_complete`
    (accessed since the last run) or `memory_pressure` (in a scope under pressure)."""
    when: str
    """Condition on the topic's columns, such as `topic_kind == 'deal' and salience < 0.2`."""
    do: Literal["summarise", "detach", "archive", "pin", "merge"]
    """Action: `summarise`, `detach`, `archive`, `pin` (keep as it is), or `merge` (other bands for pairs of which both
    topics satisfy the condition)."""
    merge_probability: Annotated[float, Field(gt=0.5, le=1)] | None = None
    """With `do = "merge"`: probability, in place of the policy's `merge_probability`."""
    review_probability: Annotated[float, Field(gt=0, le=1)] | None = None
    """With `do = "merge"`: probability, in place of the policy's `review_probability`."""

    @field_validator("when")
    @classmethod
    def _can_be_read(cls, when: str) -> str:
        parse_condition(when, RULE_COLUMNS)
        return when

    @model_validator(mode="after")
    def _bands_go_with_merges(self) -> Rule:
        given = [key for key in ("merge_probability", "review_probability") if getattr(self, key) is not None]
        if self.do == "merge" and not given:
            raise refusal("a merge rule gives merge_probability, review_probability, or both", "do")
        if self.do != "merge" and given:
            raise refusal(f'only a rule with do = "merge" has bands, and this one has "{self.do}"', given[0])
        return self

    def bands(self, default: Bands) -> Bands:
        """The rule's own bands, and the default's where it has none."""
        merge, review = self.merge_probability, self.review_probability
        return default[0] if merge is None else merge, default[1] if review is None else review

    def holds(self) -> pl.Expr:
        """Whether the rule's condition holds, never null."""
        return parse_condition(self.when, RULE_COLUMNS)

    def fits(self) -> pl.Expr:
        """Whether the rule's event concerns a topic and its condition holds, never null."""
        event = EVENT_COLUMNS.get(self.on)
        return self.holds() if event is None else pl.col(event).fill_null(False) & self.holds()


def governing(topics: pl.DataFrame, rules: Sequence[Rule]) -> pl.DataFrame:
    """The rule of the ladder that governs each topic.

    Args:
        topics: columns RULE_COLUMNS and those of EVENT_COLUMNS, as far as the rules need them.
        rules: the rules of a policy; those that merge are passed over.

    Returns:
        The columns of topics with `rule` (its name) and `action`, both null where no rule governs.

    Raises:
        ValueError: a column that a rule needs is missing.
    """
    ladder = [rule for rule in rules if rule.do != "merge"]
    _require(topics, ladder)
    fits = [(rule, pl.when(rule.fits())) for rule in ladder]
    none = pl.lit(None, dtype=pl.String)
    name = pl.coalesce(*(fit.then(pl.lit(rule.name)) for rule, fit in fits), none)
    action = pl.coalesce(*(fit.then(pl.lit(rule.do)) for rule, fit in fits), none)
    return topics.with_columns(rule=name, action=action)


def applicable_merge_rules(topics: pl.DataFrame, rules: Sequence[Rule]) -> pl.DataFrame:
    """The merge rules that fit each topic (`memstate_core.policy.merge_bands` makes bands of pairs from them).

    Args:
        topics: column id, and those that the rules need as for `governing`.
        rules: the rules of a policy; only those that merge are looked at.

    Returns:
        Columns id, `merge_rule` (the position in `rules` of the first that fits, or null) and `merge_rules`
        (the positions of all that fit, rising; a pair is under the first that both its topics have).

    Raises:
        ValueError: a column that a rule needs is missing.
    """
    merging = [(position, rule) for position, rule in enumerate(rules) if rule.do == "merge"]
    _require(topics, [rule for _, rule in merging])
    fits = [pl.when(rule.fits()).then(pl.lit(position, dtype=pl.Int64)) for position, rule in merging]
    none = pl.lit(None, dtype=pl.Int64)
    fitting = topics.select("id", merge_rules=pl.concat_list(*fits, none).list.drop_nulls())
    return fitting.select("id", pl.col("merge_rules").list.first().alias("merge_rule"), "merge_rules")


def _require(topics: pl.DataFrame, rules: Sequence[Rule]) -> None:
    for rule in rules:
        missing = sorted(set(rule.fits().meta.root_names()) - set(topics.columns))
        if missing:
            raise ValueError(
                f"rule {rule.name!r} needs columns that the frame of topics lacks: {', '.join(missing)};"
                f" it has {', '.join(topics.columns)}"
            )
