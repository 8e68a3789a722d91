"""The section [extractor]: the variables of MemState, what is not allowed, and no secret in any error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memstate_core.model.errors import SettingsError
from memstate_core.policy.sections.extractor import EXTRACTOR_VARIABLES, ExtractorSettings
from memstate_core.policy.settings import FILE_NAME, Policy, Settings, load_settings

SECRET = "gsk_live_0123456789"


def refused(home: Path, toml: str) -> str:
    (home / FILE_NAME).write_text(toml)
    with pytest.raises(SettingsError) as error:
        load_settings(home, {})
    return f"{error.value} {error.value.facts}"


def test_nothing_is_configured_by_default() -> None:
    assert not Settings().extractor.configured


@pytest.mark.parametrize(
    ("variable", "default", "given"),
    [
        ("MEMSTATE_CHAT_CHUNK_THRESHOLD_CHARS", 10_000, 5000),
        ("MEMSTATE_CHAT_MAX_TOOL_ROUNDS", 32, 3),
        ("MEMSTATE_CHAT_CHUNK_PER_SEGMENT_TOOL_ROUNDS", 72, 8),
        ("MEMSTATE_CHAT_INTENT_TURNS", 8, 0),
        ("MEMSTATE_STUDY_PHASE_DELAY_SECONDS", 8.0, 0.5),
        ("MEMSTATE_GROQ_RATE_LIMIT_MAX_RETRIES", 20, 1),
        ("MEMSTATE_GROQ_RATE_LIMIT_BACKOFF_CAP_SECONDS", 120.0, 60.0),
    ],
)
def test_variables_of_memstate_keep_name_default_and_meaning(
    tmp_path: Path, variable: str, default: float, given: float
) -> None:
    key = EXTRACTOR_VARIABLES[variable]
    assert getattr(ExtractorSettings(), key) == default
    assert getattr(load_settings(tmp_path, {variable: str(given)}).extractor, key) == given


@pytest.mark.parametrize("rounds", [7, 257])
def test_rounds_of_a_chunk_are_8_to_256(tmp_path: Path, rounds: int) -> None:
    with pytest.raises(SettingsError, match="MEMSTATE_CHAT_CHUNK_PER_SEGMENT_TOOL_ROUNDS"):
        load_settings(tmp_path, {"MEMSTATE_CHAT_CHUNK_PER_SEGMENT_TOOL_ROUNDS": str(rounds)})


@pytest.mark.parametrize("half", ['base_url = "http://localhost:11434/v1"', 'model = "llama"'])
def test_endpoint_and_model_go_together(tmp_path: Path, half: str) -> None:
    assert "base_url and model are set together" in refused(tmp_path, f"[extractor]\n{half}")


@pytest.mark.parametrize(
    "line",
    [
        f'api_key = "{SECRET}"',
        f'apikey = "{SECRET}"',
        f'api_key_env = "{SECRET}"',
        f'base_url = "https://me:{SECRET}@host/v1"',
        f'base_url = "https://host/v1?key={SECRET}"',
        f'base_url = "{SECRET}"',
    ],
)
def test_a_key_in_the_file_is_refused_and_not_repeated(tmp_path: Path, line: str) -> None:
    message = refused(tmp_path, f"[extractor]\nmodel = 'm'\n{line}")
    assert "extractor." in message
    assert "line 3" in message
    assert SECRET not in message


def test_the_hash_of_the_policy_does_not_depend_on_who_is_asked(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text('[extractor]\nbase_url = "http://localhost:1/v1"\nmodel = "m"')
    settings = load_settings(tmp_path, {})
    assert settings.extractor.configured
    assert settings.policy.digest() == Policy().digest()


def test_known_values_of_others_are_still_named(tmp_path: Path) -> None:
    facts: Any = refused(tmp_path, "[extractor]\ntimeout_seconds = -4")
    assert "-4" in facts
