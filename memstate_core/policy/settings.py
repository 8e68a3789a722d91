"""Settings of one home: `MEMSTATE_*` variables over `memstate.toml` over defaults, validated together.

The variable of a key is `MEMSTATE_<SECTION>_<KEY>`; variables known from MemState keep their names. Unknown keys
are errors, since a misspelt key that is ignored is a policy that is not applied.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from memstate_core.policy.loading import Section, TomlFile, explained, literal, read_toml
from memstate_core.policy.policy import Override, Policy
from memstate_core.policy.sections.embedding import EmbeddingSettings
from memstate_core.policy.sections.extractor import ExtractorSettings
from memstate_core.policy.sections.gates import GateSettings
from memstate_core.policy.sections.ingest import IngestSettings
from memstate_core.policy.sections.notify import NotifySettings
from memstate_core.policy.sections.publish import PublishSettings
from memstate_core.policy.sections.recall import RecallSettings
from memstate_core.policy.sections.retention import RetentionSettings
from memstate_core.policy.sections.schedule import ScheduleSettings
from memstate_core.policy.sections.segment import SegmentSettings
from memstate_core.policy.sections.store import StoreSettings
from memstate_core.policy.sections.ui import UiSettings
from memstate_core.policy.sections.verification import VerificationSettings
from memstate_core.policy.variables import LEGACY_VARIABLES, require_known, setting_variables

__all__ = [
    "FILE_NAME",
    "LEGACY_VARIABLES",
    "EmbeddingSettings",
    "GateSettings",
    "IngestSettings",
    "NotifySettings",
    "Override",
    "Policy",
    "RecallSettings",
    "RetentionSettings",
    "ScheduleSettings",
    "SegmentSettings",
    "Settings",
    "StoreSettings",
    "UiSettings",
    "VerificationSettings",
    "load_policy",
    "load_settings",
]

FILE_NAME = "memstate.toml"


class Settings(Section):
    """Every setting, by section."""

    store: StoreSettings = StoreSettings()
    """Shards, retention, memory and priority."""
    ingest: IngestSettings = IngestSettings()
    """Limits on imported rows."""
    segment: SegmentSettings = SegmentSettings()
    """How sessions are cut into segments."""
    embedding: EmbeddingSettings = EmbeddingSettings()
    """The sentence encoder."""
    schedule: ScheduleSettings = ScheduleSettings()
    """When the nightly job runs."""
    extractor: ExtractorSettings = ExtractorSettings()
    """The optional language model that reads turns."""
    gates: GateSettings = GateSettings()
    """What a night may change before it needs consent."""
    recall: RecallSettings = RecallSettings()
    """Questions that each night is asked before it is published."""
    verification: VerificationSettings = VerificationSettings()
    """What a night may look at to verify what memories noted."""
    notify: NotifySettings = NotifySettings()
    """Who is notified of nights that fail, warn or recover."""
    publish: PublishSettings = PublishSettings()
    """Where snapshots go for replicas on other machines."""
    retention: RetentionSettings = RetentionSettings()
    """How long reports, records of runs and dumps that were read are kept."""
    ui: UiSettings = UiSettings()
    """What the pages of Dagster name and link to."""
    policy: Policy = Policy()
    """Salience, forgetting, placement, merging and review."""


def load_settings(home: Path, environ: Mapping[str, str] = os.environ) -> Settings:
    """Reads the settings of a home.

    Raises:
        SettingsError: names the file (with line and column) or variable, the key, the value and what is allowed.
    """
    path = home / FILE_NAME
    file = read_toml(path, Settings.model_fields) if path.exists() else TomlFile(path)
    known = setting_variables(Settings)
    variables = {variable: where for variable, where in known.items() if variable in environ}
    values = {section: dict(content) for section, content in file.values.items()}
    for variable, (section, key) in variables.items():
        values.setdefault(section, {})[key] = literal(environ[variable])
    try:
        settings = Settings.model_validate(values, strict=True)
    except ValidationError as error:
        sources = {where: variable for variable, where in variables.items()}
        raise explained(error, Settings, values, file, sources) from None
    require_known(environ, known, settings)
    return settings


class _PolicyFile(Section):
    policy: Policy


def load_policy(path: Path) -> Policy:
    """Reads a file that holds a policy and nothing else, for simulation; variables are ignored.

    Raises:
        SettingsError: the file cannot be read, has no section `[policy]` or another one, or a value is wrong.
    """
    file = read_toml(path, _PolicyFile.model_fields)
    try:
        return _PolicyFile.model_validate(file.values, strict=True).policy
    except ValidationError as error:
        raise explained(error, _PolicyFile, file.values, file, {}) from None
