"""Rules of a policy: an event, a condition on topics, and an action.

A rule applies to a topic if its event concerns the topic and its condition is true. Of the ladder rules (summarise,
detach, archive, pin) the first in file order that applies governs the topic. Merge rules give pairs other merge
bands: the first that applies to both topics wins.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import polars as pl
from pydantic import Field, ValidationInfo, field_validator, model_validator

from memstate_core.model.frames import Schema
from memstate_core.policy.conditions import parse_condition
from memstate_core.policy.loading import Section, is_recorded, refusal
from memstate_core.policy.vocabularies import VOCABULARIES

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
    "held": pl.Boolean,
}
"""Columns that conditions may refer to. `scope_type` is the part of the scope before the colon. `age_days` counts
from the topic's creation, `idle_days` from its last event. `evidence` and `fields` count the topic's own, `active` the
active topics of its scope. `depended_on`: an active topic extends it. `redundant`: a newer topic supersedes it.
`held`: a person restored it, and it had no event since."""

EVENT_COLUMNS = {"ingest_complete": "has_new_evidence", "query_complete": "accessed", "memory_pressure": "pressure"}
"""The boolean column that marks the topics that an event concerns; `nightly` concerns all."""

Bands = tuple[float, float]
"""The probabilities from which a pair is merged, and from which it is suggested for review."""


class Rule(Section):
    """One rule. Bands are for `do = "merge"` only; one that is left out is the policy's."""

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
    def _can_be_read(cls, when: str, info: ValidationInfo) -> str:
        parse_condition(when, RULE_COLUMNS, {} if is_recorded(info) else VOCABULARIES)
        return when

    @model_validator(mode="after")
    def _bands_go_with_merges(self) -> Rule:
        given = [key for key in ("merge_probability", "review_probability") if getattr(self, key) is not None]
        if self.do == "merge" and not given:
            raise refusal("a merge rule sets merge_probability, review_probability, or both", "do")
        if self.do != "merge" and given:
            raise refusal(f'only a rule with do = "merge" has bands, and this one has "{self.do}"', given[0])
        return self

    def bands(self, default: Bands) -> Bands:
        """The rule's bands; the default fills what it leaves out."""
        merge, review = self.merge_probability, self.review_probability
        return default[0] if merge is None else merge, default[1] if review is None else review

    def holds(self) -> pl.Expr:
        """Whether the rule's condition is true; never null."""
        return parse_condition(self.when, RULE_COLUMNS)

    def fits(self) -> pl.Expr:
        """Whether the rule applies to a topic; never null."""
        event = EVENT_COLUMNS.get(self.on)
        return self.holds() if event is None else pl.col(event).fill_null(False) & self.holds()


def governing(topics: pl.DataFrame, rules: Sequence[Rule]) -> pl.DataFrame:
    """The ladder rule that governs each topic.

    Args:
        topics: those of RULE_COLUMNS and EVENT_COLUMNS that the rules refer to.
        rules: the rules of a policy; merge rules are ignored.

    Returns:
        The columns of topics, `rule` (the rule's name) and `action`; both null where no rule applies.

    Raises:
        ValueError: a column that a rule refers to is missing.
    """
    ladder = [rule for rule in rules if rule.do != "merge"]
    _require(topics, ladder)
    fits = [(rule, pl.when(rule.fits())) for rule in ladder]
    none = pl.lit(None, dtype=pl.String)
    name = pl.coalesce(*(fit.then(pl.lit(rule.name)) for rule, fit in fits), none)
    action = pl.coalesce(*(fit.then(pl.lit(rule.do)) for rule, fit in fits), none)
    return topics.with_columns(rule=name, action=action)


def applicable_merge_rules(topics: pl.DataFrame, rules: Sequence[Rule]) -> pl.DataFrame:
    """The merge rules that apply to each topic (`memstate_core.policy.merge_bands` derives bands of pairs).

    Args:
        topics: column id, and those that the rules refer to.
        rules: the rules of a policy; only merge rules count.

    Returns:
        Columns id, `merge_rule` (the position in `rules` of the first that applies, or null) and `merge_rules`
        (the positions of all that apply, ascending; of a pair, the first that both topics have wins).

    Raises:
        ValueError: a column that a rule refers to is missing.
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
