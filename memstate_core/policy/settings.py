"""Settings of one home: `memstate.toml`, then `MEMSTATE_*` variables, validated as one.

A key is looked for as `MEMSTATE_<SECTION>_<KEY>` in the environment, then in the file, then its default
holds. A policy variable known from MemState keeps its name. Unknown keys are errors, since a
misspelt key that is silently ignored is a policy that silently does not hold.
"""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from memstate_core.model.errors import SettingsError

FILE_NAME = "memstate.toml"
LEGACY_VARIABLES = {"MEMSTATE_FIELD_SALIENCE_MAX": ("policy", "field_salience_max")}
"""Variables whose names come from MemState and do not follow the rule above."""


RETIRED = frozenset({"merge_similarity"})
"""Policy keys of earlier versions, which stores still have on record."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class StoreSettings(_Section):
    """How the store is cut and kept."""

    shards: Annotated[int, Field(ge=1, le=256)] = 1
    keep_snapshots: Annotated[int, Field(ge=1, le=1000)] = 7
    graph_buffer_mib: Annotated[int, Field(ge=64, le=1_048_576)] = 2048
    lock_wait_seconds: Annotated[float, Field(ge=0, le=3600)] = 30.0


class IngestSettings(_Section):
    """What is accepted from a dump."""

    max_line_mib: Annotated[int, Field(ge=1, le=1024)] = 16
    max_future_days: Annotated[float, Field(ge=0, le=36_500)] = 31.0
    chunk_rows: Annotated[int, Field(ge=100, le=10_000_000)] = 50_000


class SegmentSettings(_Section):
    """How a session's turns become topics. Lengths count turns."""

    window: Annotated[int, Field(ge=1, le=20)] = 3
    min_turns: Annotated[int, Field(ge=1, le=100)] = 4
    max_turns: Annotated[int, Field(ge=2, le=1000)] = 24


class EmbeddingSettings(_Section):
    """Which model embeds, and how much at a time."""

    model: Annotated[str, Field(min_length=1)] = "all-MiniLM-L6-v2"
    batch_size: Annotated[int, Field(ge=1, le=4096)] = 64


class ScheduleSettings(_Section):
    """When the nightly job runs, as a cron expression in UTC."""

    cron: Annotated[str, Field(pattern=r"^\S+( \S+){4}$")] = "0 2 * * *"


class Policy(_Section):
    """What decides about knowledge; hashed into every manifest and kept with every run.

    Pairs of topics that are the same with `merge_probability` are merged; from `review_probability` on, a
    person is asked, about the `review_max_pairs` most telling pairs of a shard at a time.

    `conflict_rule` says which of two values of a field is current when both became true at the same time.
    `newest`: only valid time decides; the tie stays visible as a conflict, and the value observed last is
    shown as current. `confidence`: the value with the higher confidence is current and the conflict counts
    as resolved; equal confidence stays visible, and a claim without one counts as the least confident.
    """

    field_salience_initial: Annotated[float, Field(gt=0, le=10)] = 1.0
    field_salience_max: Annotated[float, Field(gt=0, le=10)] = 10.0
    salience_half_life_days: Annotated[float, Field(gt=0, le=36_500)] = 90.0
    forget_salience_threshold: Annotated[float, Field(ge=0, le=10)] = 0.05
    topic_count_soft_limit: Annotated[int, Field(ge=0)] = 500
    max_active_topics: Annotated[int, Field(ge=1)] = 100_000
    placement_similarity: Annotated[float, Field(ge=0, le=1)] = 0.75
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
        if self.review_probability > self.merge_probability:
            raise ValueError("review_probability must not exceed merge_probability")
        return self

    @classmethod
    def recorded(cls, values: Mapping[str, Any]) -> Policy:
        """A policy as a ledger or manifest recorded it; keys that earlier versions had are passed over."""
        return cls.model_validate({name: value for name, value in values.items() if name not in RETIRED})

    def digest(self) -> str:
        """SHA-256 of the policy in canonical JSON."""
        canonical = json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()


class Settings(_Section):
    """Everything a user may set."""

    store: StoreSettings = StoreSettings()
    ingest: IngestSettings = IngestSettings()
    segment: SegmentSettings = SegmentSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    schedule: ScheduleSettings = ScheduleSettings()
    policy: Policy = Policy()


def load_settings(home: Path, environ: Mapping[str, str] = os.environ) -> Settings:
    """Reads the settings of a home.

    Raises:
        SettingsError: names the file or variable, the key, the value and what is allowed.
    """
    path = home / FILE_NAME
    values = _read_file(path)
    sources = dict.fromkeys(((s, k) for s in values for k in values[s]), str(path))
    for variable, (section, key) in _variables(environ).items():
        values.setdefault(section, {})[key] = _literal(environ[variable])
        sources[section, key] = f"environment variable {variable}"
    try:
        return Settings.model_validate(values, strict=True)
    except ValidationError as error:
        raise _explain(error, values, sources, str(path)) from None


def _read_file(path: Path) -> dict[str, dict[str, Any]]:
    if not path.exists():
        return {}
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(str(path), "the file", "…", f"expected TOML: {error}") from None
    for section, content in values.items():
        if not isinstance(content, dict):
            sections = ", ".join(f"[{name}]" for name in Settings.model_fields)
            raise SettingsError(str(path), section, content, f"expected a section of {sections}")
    return values


def _literal(text: str) -> Any:
    """A variable's text as the TOML value that it spells, or as text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _variables(environ: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    named = {
        f"MEMSTATE_{section}_{key}".upper(): (section, key)
        for section, field in Settings.model_fields.items()
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
        for key in field.annotation.model_fields
    }
    return {variable: where for variable, where in (named | LEGACY_VARIABLES).items() if variable in environ}


def _explain(
    error: ValidationError, values: dict[str, Any], sources: dict[tuple[str, str], str], path: str
) -> SettingsError:
    first = error.errors()[0]
    where = tuple(str(part) for part in first["loc"])
    key = ".".join(where) or "the policies together"
    value: Any = values
    for part in where:
        value = value.get(part) if isinstance(value, dict) else value
    allowed = first["msg"]
    if first["type"] == "extra_forbidden":
        section = Settings.model_fields.get(where[0])
        kind = section.annotation if section and len(where) > 1 else Settings
        known = ", ".join(kind.model_fields) if isinstance(kind, type) and issubclass(kind, BaseModel) else ""
        allowed = f"unknown key; known here: {known}"
    if len(where) > 1:
        return SettingsError(sources.get((where[0], where[1]), path), key, value, allowed)
    involved = [source for (section, _), source in sources.items() if section == where[0] and source != path]
    return SettingsError(", ".join(involved) or path, key, value, allowed)
