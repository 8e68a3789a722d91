"""The section `[policy]`: everything that decides about knowledge.

The docstring of each key states its unit and effect; the settings reference is generated from them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from memstate_core.model.forms.registry import SPARED_KINDS
from memstate_core.model.forms.session_state import SessionState
from memstate_core.policy.loading import ARRAY, RECORDED, Section, is_recorded, refusal
from memstate_core.policy.rules import Rule
from memstate_core.policy.vocabularies import scope_problem

RETIRED = frozenset({"merge_similarity"})
"""Keys of earlier versions that recorded policies may still have."""

BEFORE = {
    "continuation_renews": "nothing",
    "half_life_growth_max": 1.0,
    "max_field_history": 1_000_000,
    "session_complete_after_days": 36_500.0,
}
"""Values of keys that recorded policies of earlier versions do not have yet."""

_NOT_IN_DIGEST = ("continuation_renews", "session_complete_after_days")
"""Keys that a digest leaves out at their value of `BEFORE`, so that digests of earlier versions stay valid."""

HalfLife = Annotated[float, Field(gt=0, le=36_500)]
"""In days."""

Threshold = Annotated[float, Field(ge=0, le=10)]
"""Of salience."""


class Override(Section):
    """Other values for the topics of a scope, of a kind, or of a kind within a scope; the last that applies wins."""

    scope: Annotated[str, Field(min_length=1)] | None = None
    """Scope to which the values apply, as `type:id`; every scope if absent."""
    topic_kind: Annotated[str, Field(min_length=1)] | None = None
    """Kind of topic to which the values apply; every kind if absent."""
    salience_half_life_days: HalfLife | None = None
    """Days, in place of the policy's `salience_half_life_days`."""
    summarise_salience_threshold: Threshold | None = None
    """Salience, in place of the policy's `summarise_salience_threshold`."""
    detach_salience_threshold: Threshold | None = None
    """Salience, in place of the policy's `detach_salience_threshold`."""
    forget_salience_threshold: Threshold | None = None
    """Salience, in place of the policy's `forget_salience_threshold`."""

    @field_validator("scope")
    @classmethod
    def _is_scope(cls, scope: str | None, info: ValidationInfo) -> str | None:
        if scope is not None and not is_recorded(info) and (problem := scope_problem(scope)):
            raise ValueError(problem)
        return scope

    @model_validator(mode="after")
    def _names_its_topics(self) -> Override:
        if self.scope is None and self.topic_kind is None:
            raise ValueError("an override names a scope, a topic_kind, or both")
        return self


class Policy(Section):
    """Salience, forgetting, placement, merging and review; hashed into every manifest and recorded with every run.

    A segment of turns continues a topic if both `placement_probability` and `placement_similarity` are reached
    (`memstate_core.placement.continuation`). Salience halves each half-life, and what falls below the thresholds of
    the ladder is summarised, detached and archived (`memstate_core.forget.ladder`). `rules` take precedence over the
    ladder and give pairs of topics other merge bands (`memstate_core.policy.rules`).
    """

    field_salience_initial: Annotated[float, Field(gt=0, le=10)] = 1.0
    """Salience that each piece of evidence adds to the field it states."""
    field_salience_max: Annotated[float, Field(gt=0, le=10)] = 10.0
    """Upper limit of a field's salience."""
    query_salience_bump: Annotated[float, Field(gt=0, le=10)] = 0.1
    """Salience that each access adds to the topics and fields it returned."""
    salience_half_life_days: HalfLife = 90.0
    """Days in which the salience of an unused field halves. Shorter half-lives forget faster."""
    half_life_growth_max: Annotated[float, Field(ge=1, le=1000)] = 8.0
    """Factor by which accesses spread over time may lengthen the half-life, and failed accesses may shorten it; at 1
    it is constant."""
    summarise_salience_threshold: Threshold = 0.2
    """Salience below which a field's old revisions are replaced by a summary (first step of the ladder)."""
    detach_salience_threshold: Threshold = 0.1
    """Salience below which fields and association edges of scopes under pressure leave default answers (second
    step). Topics that a newer one supersedes are archived below it."""
    forget_salience_threshold: Threshold = 0.05
    """Salience below which topics of scopes under pressure are archived (third step)."""
    max_field_history: Annotated[int, Field(ge=2)] = 500
    """Number of revisions that a field keeps in full; from then on older ones are summarised whatever its salience."""
    summary_keep_revisions: Annotated[int, Field(ge=1)] = 20
    """Number of newest revisions that stay when a field's history is summarised."""
    max_topics_for_forget_scan: Annotated[int, Field(ge=1)] = 10_000
    """Number of topics or fields that forgetting writes to the graph in one statement; all topics are examined."""
    pinned_kinds: Annotated[tuple[str, ...], ARRAY] = ()
    """Kinds of topics that are never summarised, detached or archived; core blocks never are."""
    session_complete_after_days: Annotated[float, Field(gt=0, le=36_500)] = 30.0
    """Days after which a session state without a record or an access is complete: it is archived, which a later record
    or `undo` reverses."""
    overrides: Annotated[tuple[Override, ...], ARRAY] = ()
    """Half-lives and thresholds for topics of a scope, of a kind, or of a kind within a scope; the last that applies
    wins."""
    rules: Annotated[tuple[Rule, ...], ARRAY] = ()
    """Rules of event, condition and action, which take precedence over the ladder and give pairs of topics other
    merge bands; the first that applies wins."""
    topic_count_soft_limit: Annotated[int, Field(ge=0)] = 500
    """Number of active topics from which a scope is under pressure. Below it nothing is detached or archived for its
    salience."""
    max_active_topics: Annotated[int, Field(ge=1)] = 100_000
    """Bound on the active topics of a scope (condition C5). Above it topics are archived whatever their salience."""
    placement_similarity: Annotated[float, Field(ge=0, le=1)] = 0.75
    """Least cosine similarity at which a segment of turns may continue a topic."""
    placement_probability: Annotated[float, Field(ge=0.5, le=1)] = 0.9
    """Probability from which a segment of turns continues a topic; below it the segment becomes a topic of its own."""
    continuation_renews: Literal["nothing", "summary", "title_and_summary"] = "summary"
    """What a segment that continues a topic says anew of it; what it replaces stays in the topic's history."""
    merge_probability: Annotated[float, Field(gt=0.5, le=1)] = 0.9
    """Probability from which two topics are merged automatically. It bounds the share of false merges."""
    review_probability: Annotated[float, Field(gt=0, le=1)] = 0.2
    """Probability from which a pair of topics that is not merged is suggested for review."""
    review_max_pairs: Annotated[int, Field(ge=0)] = 1000
    """Number of suggestions that a scope keeps open at a time; the likeliest pairs come first."""
    conflict_rule: Literal["newest", "confidence"] = "newest"
    """Which of two values of a field is current if both became true at the same time. `newest`: the value observed
    last, and the conflict stays visible. `confidence`: the value of higher confidence (none counts as the lowest),
    which resolves the conflict unless both are equal."""
    dependency_max_hops: Annotated[int, Field(ge=1, le=64)] = 8
    """Number of extension edges that the dependency review follows from a changed topic, and archiving from a topic
    that stays."""
    dependency_max_topics: Annotated[int, Field(ge=1)] = 10_000
    """Number of dependent topics of a scope that one run queues for review at most, nearest first."""

    @model_validator(mode="after")
    def _limits_in_order(self) -> Policy:
        self._in_order("topic_count_soft_limit", "max_active_topics")
        self._in_order("forget_salience_threshold", "detach_salience_threshold")
        if self.summarise_salience_threshold:  # 0 switches it off
            self._in_order("detach_salience_threshold", "summarise_salience_threshold")
        self._in_order("review_probability", "merge_probability")
        return self

    def _in_order(self, lower: str, upper: str) -> None:
        """Refuses two keys of which the first is above the second, at the one that was given."""
        most, least = getattr(self, upper), getattr(self, lower)
        if least <= most:
            return
        found = [
            f"{value}{'' if key in self.model_fields_set else ' (the default)'}"
            for key, value in ((lower, least), (upper, most))
        ]
        problem = f"{lower} must not exceed {upper}: found {found[0]} and {found[1]}; set {lower} to {most} or less"
        raise refusal(problem, near=next((key for key in (upper, lower) if key in self.model_fields_set), None))

    @model_validator(mode="after")
    def _rules_agree(self) -> Policy:
        """Rule names are unique, and each rule's bands are in order after the policy's values fill its gaps."""
        names = [rule.name for rule in self.rules]
        for position, rule in enumerate(self.rules):
            if rule.name in names[:position]:
                raise refusal("another rule before it has this name", "rules", position, "name")
            merge, review = rule.bands((self.merge_probability, self.review_probability))
            if review > merge:
                given = "merge_probability" if rule.review_probability is None else "review_probability"
                problem = f"review_probability ({review}) must not exceed merge_probability ({merge})"
                raise refusal(problem, "rules", position, given)
        return self

    @classmethod
    def recorded(cls, values: Mapping[str, Any]) -> Policy:
        """A policy as a ledger or manifest recorded it; retired keys are ignored, later ones get their old value."""
        known = {name: value for name, value in values.items() if name not in RETIRED}
        return cls.model_validate(BEFORE | known, context=RECORDED)

    @property
    def ladder_rules(self) -> tuple[Rule, ...]:
        """The rules that govern topics: those of `rules` without merges, then one that completes silent sessions."""
        silent = f"topic_kind == '{SessionState.topic_kind()}' and idle_days >= {self.session_complete_after_days:g}"
        completes = Rule(name="session_complete_after_days", on="nightly", when=f"{silent} and not held", do="archive")
        return (*(rule for rule in self.rules if rule.do != "merge"), completes)

    @property
    def spared_kinds(self) -> tuple[str, ...]:
        """Kinds of topics that are never summarised, detached or archived."""
        return (*self.pinned_kinds, *SPARED_KINDS)

    def digest(self) -> str:
        """SHA-256 of the policy in canonical JSON."""
        values = self.model_dump(mode="json")
        said = {name: value for name, value in values.items() if name not in _NOT_IN_DIGEST or value != BEFORE[name]}
        canonical = json.dumps(said, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()
