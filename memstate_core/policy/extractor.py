"""Settings of the extractor with a language model, `[extractor]` in `memstate.toml`.

The key of an endpoint is never a setting: `api_key_env` names the environment variable that holds it, so that
no file, plan, report or error message can carry it.
"""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from memstate_core.policy.loading import Section

EXTRACTOR_VARIABLES = {
    "MEMSTATE_CHAT_CHUNK_THRESHOLD_CHARS": "chunk_threshold_chars",
    "MEMSTATE_CHAT_MAX_TOOL_ROUNDS": "max_rounds",
    "MEMSTATE_CHAT_CHUNK_PER_SEGMENT_TOOL_ROUNDS": "max_rounds_per_chunk",
    "MEMSTATE_CHAT_INTENT_TURNS": "intent_turns",
    "MEMSTATE_STUDY_PHASE_DELAY_SECONDS": "phase_delay_seconds",
    "MEMSTATE_GROQ_RATE_LIMIT_MAX_RETRIES": "rate_limit_retries",
    "MEMSTATE_GROQ_RATE_LIMIT_BACKOFF_CAP_SECONDS": "backoff_cap_seconds",
}
"""Variables whose names come from MemState, and the key of `[extractor]` that each sets."""

ENVIRONMENT_NAME = r"^([A-Z][A-Z0-9_]*)?$"


class ExtractorSettings(Section):
    """Which OpenAI-compatible endpoint understands turns, how it is asked, and when to stop asking.

    Without `base_url` and `model` no language model is used and nothing else here matters.

    A session of fewer than `chunk_threshold_chars` characters is one conversation with the model of at most
    `max_rounds` requests. From that length on it is cut into chunks of about that length, of at most
    `max_rounds_per_chunk` requests each; a chunk is shown the `intent_turns` turns before it. Requests for
    repair and for the rest of an answer count as rounds. `phase_delay_seconds` pass between the phases of a long
    session if the endpoint was asked in the first.

    `max_requests` and `max_tokens` bound one run of a shard; retries are requests. A 429 is retried
    `rate_limit_retries` times, timeouts, lost connections and server errors `retries` times, with waits that
    double from one second up to `backoff_cap_seconds`.
    """

    base_url: Annotated[str, Field(pattern=r"^(https?://.+)?$")] = ""
    model: str = ""
    api_key_env: Annotated[str, Field(pattern=ENVIRONMENT_NAME)] = ""
    timeout_seconds: Annotated[float, Field(gt=0, le=3600)] = 120.0
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    max_answer_tokens: Annotated[int, Field(ge=16, le=1_000_000)] = 4096
    max_requests: Annotated[int, Field(ge=0)] = 1000
    max_tokens: Annotated[int, Field(ge=0)] = 2_000_000
    concurrency: Annotated[int, Field(ge=1, le=64)] = 1
    retries: Annotated[int, Field(ge=0, le=100)] = 3
    known_topics: Annotated[int, Field(ge=0, le=100)] = 12
    chunk_threshold_chars: Annotated[int, Field(ge=200, le=10_000_000)] = 10_000
    max_rounds: Annotated[int, Field(ge=1, le=1000)] = 32
    max_rounds_per_chunk: Annotated[int, Field(ge=8, le=256)] = 72
    intent_turns: Annotated[int, Field(ge=0, le=1000)] = 8
    phase_delay_seconds: Annotated[float, Field(ge=0, le=3600)] = 8.0
    rate_limit_retries: Annotated[int, Field(ge=0, le=1000)] = 20
    backoff_cap_seconds: Annotated[float, Field(ge=0, le=86_400)] = 120.0

    @property
    def configured(self) -> bool:
        """Whether there is an endpoint to ask."""
        return bool(self.base_url and self.model)

    @field_validator("base_url")
    @classmethod
    def _without_secrets(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
            raise ValueError("a URL without user, password, query or fragment; api_key_env names the variable of a key")
        return url

    @model_validator(mode="after")
    def _endpoint_is_whole(self) -> ExtractorSettings:
        if bool(self.base_url) != bool(self.model):
            raise ValueError("base_url and model go together: the endpoint, and the model that it is asked for")
        return self
