"""Sends one request for a chat completion to an OpenAI-compatible endpoint. Nothing is repeated here."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, structs

from memstate_core.llm.answer_cache import Reply
from memstate_core.llm.prompts import Message
from memstate_core.llm.schema import Shape
from memstate_core.model.errors import ExtractorUnavailable
from memstate_core.policy.sections.extractor import ExtractorSettings
from memstate_core.remote.budget import estimated_tokens
from memstate_core.remote.connection import Connection

FORMATS = ("json_schema", "json_object_of_schema", "json_object", "text")
"""Ways to constrain an answer, the strictest first; llama.cpp's servers support the second."""


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


class Endpoint(Connection):
    """One model at one endpoint. Threads may share it."""

    def __init__(self, settings: ExtractorSettings, environ: Mapping[str, str] = os.environ) -> None:
        """Makes the HTTP client; sends nothing.

        Raises:
            ExtractorUnavailable: the package `openai` is missing, or the variable of the key is not set.
        """
        self._settings = settings
        super().__init__(
            settings.base_url,
            settings,
            "a chat completion",
            section="extractor",
            unavailable=ExtractorUnavailable,
            environ=environ,
        )

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
        create = self.client.chat.completions.create
        return self.sent(lambda: _reply(create(model=settings.model, messages=list(messages), **options), messages))


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
