"""Sends one request to an OpenAI-compatible endpoint and classifies its failures. Nothing is repeated here.

The only module that imports `openai`, and only when an endpoint is made. The API key goes from its environment
variable to the client and nowhere else: it is removed from every message that a server returns.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from importlib import import_module
from typing import Any, TypeVar

from msgspec import Struct, structs

from memstate_core.llm.answer_cache import Reply
from memstate_core.llm.budget import estimated_tokens
from memstate_core.llm.prompts import Message
from memstate_core.llm.schema import Shape
from memstate_core.model.errors import ExtractorUnavailable
from memstate_core.policy.extractor import ExtractorSettings

FORMATS = ("json_schema", "json_object_of_schema", "json_object", "text")
"""Ways to constrain an answer, the strictest first; llama.cpp's servers support the second."""

_LONGEST_DETAIL = 200
_NO_KEY = "none"
T = TypeVar("T")


class Trouble(StrEnum):
    """Why a request was not answered."""

    RATE_LIMITED = "rate limited"
    UNREACHABLE = "unreachable"
    UNAVAILABLE = "unavailable"
    NOT_UNDERSTOOD = "not understood"
    DENIED = "denied"


class RequestFailed(Exception):
    """A request that was not answered.

    Attributes:
        trouble: the kind of failure.
        detail: the message of the server or the connection, shortened and without secrets.
        status: the HTTP status, if there was an answer.
        retry_after: the header `Retry-After`, if there was one.
    """

    def __init__(
        self, trouble: Trouble, detail: str, status: int | None = None, retry_after: str | None = None
    ) -> None:
        super().__init__(f"{trouble}: {detail}")
        self.trouble, self.detail, self.status, self.retry_after = trouble, detail, status, retry_after


class Dialect(Struct, frozen=True):
    """The variant of the API that a server supports: answer format and parameters."""

    format: str = FORMATS[0]
    length: str = "max_tokens"
    temperature: bool = True

    def next(self, complaint: str) -> Dialect | None:
        """The next variant for a server that rejected the request with this message; None if all were tried."""
        if "max_completion_tokens" in complaint and self.length == "max_tokens":
            return structs.replace(self, length="max_completion_tokens")
        if "temperature" in complaint and self.temperature:
            return structs.replace(self, temperature=False)
        lower = FORMATS[FORMATS.index(self.format) + 1 :]
        return structs.replace(self, format=lower[0]) if lower else None


class Endpoint:
    """One model at one endpoint. Threads may share it."""

    def __init__(self, settings: ExtractorSettings, environ: Mapping[str, str] = os.environ) -> None:
        """Makes the HTTP client; sends nothing.

        Raises:
            ExtractorUnavailable: the package `openai` is missing, or the variable of the key is not set.
        """
        self._settings = settings
        self._key = _key(settings, environ)
        try:
            self._openai: Any = import_module("openai")
        except ImportError:
            raise ExtractorUnavailable("the package openai is missing", "Run pip install 'memstate[llm]'") from None
        self._client = self._openai.OpenAI(
            base_url=settings.base_url,
            api_key=self._key or _NO_KEY,
            timeout=settings.timeout_seconds,
            max_retries=0,
        )

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()

    def models(self) -> list[str]:
        """The names of the models that the server lists.

        Raises:
            RequestFailed: there was no answer.
        """
        return [str(model.id) for model in self._sent(lambda: self._client.models.list().data)]

    def complete(self, messages: Sequence[Message], shape: Shape, dialect: Dialect) -> Reply:
        """Sends a request once.

        Raises:
            RequestFailed: there was no answer.
        """
        settings = self._settings
        options: dict[str, Any] = {dialect.length: settings.max_answer_tokens}
        if dialect.temperature:
            options["temperature"] = settings.temperature
        if dialect.format != "text":
            options["response_format"] = _format(shape, dialect)
        create = self._client.chat.completions.create
        return self._sent(lambda: _reply(create(model=settings.model, messages=list(messages), **options), messages))

    def _sent(self, send: Callable[[], T]) -> T:
        try:
            return send()
        except self._openai.APIStatusError as error:
            raise self._refused(error) from None
        except self._openai.APITimeoutError:
            detail = f"no answer within {self._settings.timeout_seconds:g} s"
            raise RequestFailed(Trouble.UNAVAILABLE, detail) from None
        except self._openai.APIConnectionError as error:
            raise RequestFailed(Trouble.UNREACHABLE, self._plain(str(error.__cause__ or error))) from None
        except (self._openai.OpenAIError, ValueError, TypeError, AttributeError, IndexError) as error:
            detail = f"the answer is not a chat completion ({type(error).__name__})"
            raise RequestFailed(Trouble.UNAVAILABLE, detail) from None

    def _refused(self, error: Any) -> RequestFailed:
        status, code = int(error.status_code), str(getattr(error, "code", None))
        detail = self._plain(f"HTTP {status}: {error.message}")
        blamed = "response_format" in error.message
        trouble = Trouble.NOT_UNDERSTOOD if blamed else _trouble(status, code)
        return RequestFailed(trouble, detail, status, error.response.headers.get("retry-after"))

    def _plain(self, text: str) -> str:
        if self._key:
            text = text.replace(self._key, "…")
        return " ".join(text.split())[:_LONGEST_DETAIL]


def _key(settings: ExtractorSettings, environ: Mapping[str, str]) -> str:
    if not settings.api_key_env:
        return ""
    key = environ.get(settings.api_key_env, "")
    if not key:
        problem = f"the environment variable {settings.api_key_env}, which extractor.api_key_env names, is not set"
        raise ExtractorUnavailable(problem, "Set it to the key of the endpoint")
    return key


def _trouble(status: int, code: str) -> Trouble:
    if status == 429 and code != "insufficient_quota":
        return Trouble.RATE_LIMITED
    if status >= 500 or status in (408, 409, 425):
        return Trouble.UNAVAILABLE
    return Trouble.NOT_UNDERSTOOD if status in (400, 413, 415, 422) else Trouble.DENIED


def _format(shape: Shape, dialect: Dialect) -> dict[str, Any]:
    if dialect.format.startswith("json_object"):
        return {"type": "json_object"} | ({"schema": shape.schema} if dialect.format != "json_object" else {})
    return {"type": "json_schema", "json_schema": {"name": shape.name, "strict": True, "schema": shape.schema}}


def _reply(completion: Any, messages: Sequence[Message]) -> Reply:
    choice = completion.choices[0]
    text = str(choice.message.content or "").encode("utf-8", "replace").decode()
    reported = getattr(completion.usage, "total_tokens", None)
    tokens = reported if reported else estimated_tokens(text, *(message["content"] for message in messages))
    return Reply(text, choice.finish_reason == "length", int(tokens))
