"""The section `[extractor]` of `memstate.toml`: the optional language model that reads turns.

An endpoint's API key is never a setting: `api_key_env` names the environment variable that holds it, so that
no file, plan, report or error message can contain it.
"""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from memstate_core.policy.loading import Section, form

EXTRACTOR_VARIABLES = {
    "MEMSTATE_CHAT_CHUNK_THRESHOLD_CHARS": "chunk_threshold_chars",
    "MEMSTATE_CHAT_MAX_TOOL_ROUNDS": "max_rounds",
    "MEMSTATE_CHAT_CHUNK_PER_SEGMENT_TOOL_ROUNDS": "max_rounds_per_chunk",
    "MEMSTATE_CHAT_INTENT_TURNS": "intent_turns",
    "MEMSTATE_STUDY_PHASE_DELAY_SECONDS": "phase_delay_seconds",
    "MEMSTATE_GROQ_RATE_LIMIT_MAX_RETRIES": "rate_limit_retries",
    "MEMSTATE_GROQ_RATE_LIMIT_BACKOFF_CAP_SECONDS": "backoff_cap_seconds",
}
"""Variables that keep the names they have in MemState, and the key of `[extractor]` that each sets."""

VariableName = Annotated[
    str,
    Field(pattern=r"^([A-Z][A-Z0-9_]*)?$"),
    form("the name of an environment variable in capital letters, such as OPENAI_API_KEY"),
]
"""The name of the variable that holds a secret; empty for none."""


class ExtractorSettings(Section):
    """The OpenAI-compatible endpoint of a language model, how sessions are sent to it, and the limits of a run.

    Without `base_url` and `model` no language model is used and the other keys have no effect.
    """

    base_url: Annotated[str, Field(pattern=r"^(https?://.+)?$"), form("a URL such as http://localhost:8080/v1")] = ""
    """Base URL of an OpenAI-compatible API, such as `http://localhost:8080/v1`, without credentials. Empty: no
    language model is used."""
    model: str = ""
    """Name of the model at the endpoint."""
    api_key_env: VariableName = ""
    """Name of the environment variable that holds the API key; empty for a server that needs none."""
    timeout_seconds: Annotated[float, Field(gt=0, le=3600)] = 120.0
    """Seconds until a request without an answer is given up and, if retries are left, repeated."""
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    """Sampling temperature; at 0 answers vary least."""
    max_answer_tokens: Annotated[int, Field(ge=16, le=1_000_000)] = 4096
    """Longest answer to one request, in tokens. A longer answer breaks off, and the rest is asked for."""
    max_requests: Annotated[int, Field(ge=0)] = 1000
    """Most requests of one run of a shard, retries included; the remaining turns are placed without the model."""
    max_tokens: Annotated[int, Field(ge=0)] = 2_000_000
    """Most tokens of one run of a shard, requests and answers together; checked before each request."""
    concurrency: Annotated[int, Field(ge=1, le=64)] = 1
    """Number of sessions that are read at the same time. It changes the time taken and no result."""
    retries: Annotated[int, Field(ge=0, le=100)] = 3
    """Repetitions of a request after a timeout, a lost connection or a server error."""
    known_topics: Annotated[int, Field(ge=0, le=100)] = 12
    """Number of existing topics, nearest first, that the model is shown with a session so that it may continue them."""
    chunk_threshold_chars: Annotated[int, Field(ge=200, le=10_000_000)] = 10_000
    """Length of a session, in characters, from which it is read in chunks of about this length and its topics are
    matched with existing ones in a second phase."""
    max_rounds: Annotated[int, Field(ge=1, le=1000)] = 32
    """Most requests for a short session, and for the second phase of a long one; requests for repair and for the
    rest of an answer count."""
    max_rounds_per_chunk: Annotated[int, Field(ge=8, le=256)] = 72
    """Most requests for one chunk of a long session; requests for repair and for the rest of an answer count."""
    intent_turns: Annotated[int, Field(ge=0, le=1000)] = 8
    """Number of turns before a chunk that the model is shown for context."""
    phase_delay_seconds: Annotated[float, Field(ge=0, le=3600)] = 8.0
    """Seconds between the two phases of long sessions, in which the endpoint's rate limit can recover."""
    rate_limit_retries: Annotated[int, Field(ge=0, le=1000)] = 20
    """Repetitions of a request that the endpoint refused for its rate limit (HTTP 429)."""
    backoff_cap_seconds: Annotated[float, Field(ge=0, le=86_400)] = 120.0
    """Longest wait before a repetition, in seconds. Waits follow `Retry-After`; without it they double from one
    second."""

    @property
    def configured(self) -> bool:
        """Whether a language model is configured."""
        return bool(self.base_url and self.model)

    @field_validator("base_url")
    @classmethod
    def _without_secrets(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
            raise ValueError("a URL without credentials, query or fragment; api_key_env names the key's variable")
        return url

    @model_validator(mode="after")
    def _endpoint_is_whole(self) -> ExtractorSettings:
        if bool(self.base_url) != bool(self.model):
            raise ValueError("base_url and model are set together: the endpoint, and the name of its model")
        return self
