"""Settings of one home: `memstate.toml`, then `MEMSTATE_*` variables, validated as one.

A key is looked for as `MEMSTATE_<SECTION>_<KEY>` in the environment, then in the file, then its default
holds. A policy variable known from MemState keeps its name. Unknown keys are errors, since a
misspelt key that is silently ignored is a policy that silently does not hold.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field, ValidationError, model_validator

from memstate_core.policy.extractor import EXTRACTOR_VARIABLES, ExtractorSettings
from memstate_core.policy.loading import Section, TomlFile, as_tuple, explained, literal, read_toml, refusal
from memstate_core.policy.rules import Rule

FILE_NAME = "memstate.toml"
LEGACY_VARIABLES = {
    **{variable: ("extractor", key) for variable, key in EXTRACTOR_VARIABLES.items()},
    "MEMSTATE_FIELD_SALIENCE_MAX": ("policy", "field_salience_max"),
    "MEMSTATE_QUERY_FIELD_SALIENCE_BUMP": ("policy", "query_salience_bump"),
}
"""Variables whose names come from MemState and do not follow the rule above."""


RETIRED = frozenset({"merge_similarity"})
"""Policy keys of earlier versions, which stores still have on record."""

BEFORE = {"half_life_growth_max": 1.0, "max_field_history": 1_000_000}
"""What held before a key existed, for records that do not name it."""

ARRAY = BeforeValidator(as_tuple)
"""Marks a tuple that is written as an array."""

HalfLife = Annotated[float, Field(gt=0, le=36_500)]
"""In days."""

Threshold = Annotated[float, Field(ge=0, le=10)]
"""Of salience."""


class StoreSettings(Section):
    """How the store is cut and kept.

    Maintenance lets others on the machine go first by `niceness`, in the steps of nice(1), so that a server answers.
    """

    shards: Annotated[int, Field(ge=1, le=256)] = 1
    keep_snapshots: Annotated[int, Field(ge=1, le=1000)] = 7
    graph_buffer_mib: Annotated[int, Field(ge=64, le=1_048_576)] = 2048
    lock_wait_seconds: Annotated[float, Field(ge=0, le=3600)] = 30.0
    niceness: Annotated[int, Field(ge=0, le=19)] = 5


class IngestSettings(Section):
    """What is accepted from a dump."""

    max_line_mib: Annotated[int, Field(ge=1, le=1024)] = 16
    max_future_days: Annotated[float, Field(ge=0, le=36_500)] = 31.0
    chunk_rows: Annotated[int, Field(ge=100, le=10_000_000)] = 50_000


class SegmentSettings(Section):
    """How a session's turns become topics. Lengths count turns."""

    window: Annotated[int, Field(ge=1, le=20)] = 3
    min_turns: Annotated[int, Field(ge=1, le=100)] = 4
    max_turns: Annotated[int, Field(ge=2, le=1000)] = 24


class EmbeddingSettings(Section):
    """Which model embeds, and how much at a time."""

    model: Annotated[str, Field(min_length=1)] = "all-MiniLM-L6-v2"
    batch_size: Annotated[int, Field(ge=1, le=4096)] = 64


class ScheduleSettings(Section):
    """When the nightly job runs, as a cron expression in UTC."""

    cron: Annotated[str, Field(pattern=r"^\S+( \S+){4}$")] = "0 2 * * *"


class Override(Section):
    """Other values for the topics of a scope, of a kind, or of a kind within a scope; the last that fits holds."""

    scope: Annotated[str, Field(min_length=1)] | None = None
    topic_kind: Annotated[str, Field(min_length=1)] | None = None
    salience_half_life_days: HalfLife | None = None
    summarise_salience_threshold: Threshold | None = None
    detach_salience_threshold: Threshold | None = None
    forget_salience_threshold: Threshold | None = None

    @model_validator(mode="after")
    def _names_its_topics(self) -> Override:
        if self.scope is None and self.topic_kind is None:
            raise ValueError("an override names a scope, a topic_kind, or both")
        return self


class Policy(Section):
    """What decides about knowledge; hashed into every manifest and kept with every run.

    A stretch of turns continues a topic when they are of one subject with `placement_probability`, and the cosine of
    their vectors is at least `placement_similarity` (`memstate_core.placement.continuation`).

    Pairs of topics that are the same with `merge_probability` are merged; from `review_probability` on, a
    person is asked, about the `review_max_pairs` most telling pairs of a shard at a time.

    Salience starts at `field_salience_initial`, rises by `query_salience_bump` with each use, and halves each
    `salience_half_life_days`, which uses spread over time lengthen up to `half_life_growth_max` times. Fields
    below the thresholds are summarised and detached, topics archived (`memstate_core.forget.ladder`).
    `max_topics_for_forget_scan` topics are written at a time; none is ever skipped. `rules` come before the
    ladder and give other bands to pairs (`memstate_core.policy.rules`).

    `conflict_rule` says which of two values of a field is current when both became true at the same time.
    `newest`: only valid time decides; the tie stays visible as a conflict, and the value observed last is
    shown as current. `confidence`: the value with the higher confidence is current and the conflict counts
    as resolved; equal confidence stays visible, and a claim without one counts as the least confident.
    """

    field_salience_initial: Annotated[float, Field(gt=0, le=10)] = 1.0
    field_salience_max: Annotated[float, Field(gt=0, le=10)] = 10.0
    query_salience_bump: Annotated[float, Field(gt=0, le=10)] = 0.1
    salience_half_life_days: HalfLife = 90.0
    half_life_growth_max: Annotated[float, Field(ge=1, le=1000)] = 8.0
    summarise_salience_threshold: Threshold = 0.2
    detach_salience_threshold: Threshold = 0.1
    forget_salience_threshold: Threshold = 0.05
    max_field_history: Annotated[int, Field(ge=2)] = 500
    summary_keep_revisions: Annotated[int, Field(ge=1)] = 20
    max_topics_for_forget_scan: Annotated[int, Field(ge=1)] = 10_000
    pinned_kinds: Annotated[tuple[str, ...], ARRAY] = ()
    overrides: Annotated[tuple[Override, ...], ARRAY] = ()
    rules: Annotated[tuple[Rule, ...], ARRAY] = ()
    topic_count_soft_limit: Annotated[int, Field(ge=0)] = 500
    max_active_topics: Annotated[int, Field(ge=1)] = 100_000
    placement_similarity: Annotated[float, Field(ge=0, le=1)] = 0.75
    placement_probability: Annotated[float, Field(ge=0.5, le=1)] = 0.9
    merge_probability: Annotated[float, Field(gt=0.5, le=1)] = 0.9
    review_probability: Annotated[float, Field(gt=0, le=1)] = 0.5
    review_max_pairs: Annotated[int, Field(ge=0)] = 1000
    conflict_rule: Literal["newest", "confidence"] = "newest"
    dependency_max_hops: Annotated[int, Field(ge=1, le=64)] = 8
    dependency_max_topics: Annotated[int, Field(ge=1)] = 10_000

    @model_validator(mode="after")
    def _limits_in_order(self) -> Policy:
        if self.topic_count_soft_limit > self.max_active_topics:
            raise ValueError("topic_count_soft_limit must not exceed max_active_topics")
        steps = (self.forget_salience_threshold, self.detach_salience_threshold, self.summarise_salience_threshold)
        if list(steps) != sorted(steps):
            raise ValueError(
                "the thresholds of the ladder must not fall: forget_salience_threshold,"
                " detach_salience_threshold, summarise_salience_threshold"
            )
        if self.review_probability > self.merge_probability:
            raise ValueError("review_probability must not exceed merge_probability")
        return self

    @model_validator(mode="after")
    def _rules_agree(self) -> Policy:
        """Names tell rules apart, and bands are in order with what the rule leaves to the policy."""
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
        """A policy as a ledger or manifest recorded it; keys that earlier versions had are passed over."""
        return cls.model_validate(BEFORE | {name: value for name, value in values.items() if name not in RETIRED})

    def digest(self) -> str:
        """SHA-256 of the policy in canonical JSON."""
        canonical = json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()


class Settings(Section):
    """Everything a user may set."""

    store: StoreSettings = StoreSettings()
    ingest: IngestSettings = IngestSettings()
    segment: SegmentSettings = SegmentSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    schedule: ScheduleSettings = ScheduleSettings()
    extractor: ExtractorSettings = ExtractorSettings()
    policy: Policy = Policy()


def load_settings(home: Path, environ: Mapping[str, str] = os.environ) -> Settings:
    """Reads the settings of a home.

    Raises:
        SettingsError: names the file (with line and column) or variable, the key, the value and what is allowed.
    """
    path = home / FILE_NAME
    file = read_toml(path, Settings.model_fields) if path.exists() else TomlFile(path)
    variables = _variables(environ)
    values = {section: dict(content) for section, content in file.values.items()}
    for variable, (section, key) in variables.items():
        values.setdefault(section, {})[key] = literal(environ[variable])
    try:
        return Settings.model_validate(values, strict=True)
    except ValidationError as error:
        sources = {where: variable for variable, where in variables.items()}
        raise explained(error, Settings, values, file, sources) from None


class _PolicyFile(Section):
    policy: Policy


def load_policy(path: Path) -> Policy:
    """Reads a file that holds a policy and nothing else, for rehearsal; variables do not count.

    Raises:
        SettingsError: the file cannot be read, has no section `[policy]` or another one, or as `load_settings`.
    """
    file = read_toml(path, _PolicyFile.model_fields)
    try:
        return _PolicyFile.model_validate(file.values, strict=True).policy
    except ValidationError as error:
        raise explained(error, _PolicyFile, file.values, file, {}) from None


def _variables(environ: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    named = {
        f"MEMSTATE_{section}_{key}".upper(): (section, key)
        for section, field in Settings.model_fields.items()
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
        for key in field.annotation.model_fields
    }
    return {variable: where for variable, where in (named | LEGACY_VARIABLES).items() if variable in environ}
