"""The section `[embedding]` of `memstate.toml`: the sentence encoder, and what runs it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from memstate_core.policy.loading import Section, form
from memstate_core.policy.sections.extractor import VariableName


class EmbeddingSettings(Section):
    """The sentence encoder."""

    model: Annotated[str, Field(min_length=1)] = "all-MiniLM-L6-v2"
    """Sentence encoder: `all-MiniLM-L6-v2` (packaged), the folder of a sentence-transformers model of any dimension (a
    relative path begins at the home), the name of one in the local cache of the Hugging Face Hub, or `hashing`, which
    compares words and spellings only and loads no model. Nothing is downloaded. After a change the next run embeds
    every topic again."""
    dimension: Annotated[int, Field(ge=0, le=65_536)] = 0
    """Number of dimensions that the encoder's vectors must have; with others no run begins to write. 0 takes as many as
    the encoder has."""
    endpoint: Annotated[
        str,
        Field(pattern=r"^(https?://[^?#@]+)?$"),
        form("a URL such as http://localhost:8080/v1, without credentials or options"),
    ] = ""
    """Base URL of an OpenAI-compatible API that embeds texts, such as `http://localhost:8080/v1`, without credentials;
    `model` names its model then. The texts of turns, topics and questions are sent there. Empty: the encoder runs on
    this machine."""
    api_key_env: VariableName = ""
    """Name of the environment variable that holds the endpoint's API key; empty for a server that needs none."""
    max_chars: Annotated[int, Field(ge=100, le=1_000_000)] = 8000
    """Longest part of a text that is sent to an endpoint, in characters from its beginning."""
    max_requests: Annotated[int, Field(ge=0)] = 10_000
    """Most requests to an endpoint by one process, repetitions included. What was answered is kept, so the next run
    goes on where one stopped."""
    max_tokens: Annotated[int, Field(ge=0)] = 20_000_000
    """Most tokens that an endpoint reads for one process; checked before each request."""
    timeout_seconds: Annotated[float, Field(gt=0, le=3600)] = 60.0
    """Seconds until a request without an answer is given up and, if retries are left, repeated."""
    retries: Annotated[int, Field(ge=0, le=100)] = 3
    """Repetitions of a request after a timeout, a lost connection, a server error or an answer with wrong vectors."""
    rate_limit_retries: Annotated[int, Field(ge=0, le=1000)] = 20
    """Repetitions of a request that the endpoint refused for its rate limit (HTTP 429)."""
    backoff_cap_seconds: Annotated[float, Field(ge=0, le=86_400)] = 120.0
    """Longest wait before a repetition, in seconds. Waits follow `Retry-After`; without it they double from one
    second."""
    query_prefix: Annotated[str, Field(max_length=2000)] = ""
    """Text that the encoder expects before a question, such as `query: ` for models of the E5 family or the
    instruction of a BGE model, its space at the end included. After a change the next run embeds every topic again."""
    passage_prefix: Annotated[str, Field(max_length=2000)] = ""
    """Text that the encoder expects before a text that is searched, such as `passage: `. After a change the next run
    embeds every topic again."""
    batch_size: Annotated[int, Field(ge=1, le=4096)] = 64
    """Number of texts that the encoder takes at a time, or that a request to an endpoint has. Larger batches use more
    memory."""
    runtime: Literal["auto", "openvino-float32", "sentence-transformers"] = "auto"
    """What runs the model. `auto`: OpenVINO, in bfloat16 where the processor has instructions for it and in float32
    elsewhere; 4,096 texts and more run on an NVIDIA GPU where torch finds one. `openvino-float32`: OpenVINO in float32
    on every processor. `sentence-transformers`: torch on the processor, which takes seconds to start. Models that are
    no BERT always run on torch, and so does what OpenVINO gives other vectors for. The vectors of all are those of one
    model: cosine 0.9999 or more to each other."""
