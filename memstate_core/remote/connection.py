"""A connection to an OpenAI-compatible endpoint that classifies failures. Nothing is repeated here.

The only module that imports `openai`, and only when a connection is made. The API key goes from its environment
variable to the client and nowhere else: it is removed from every message that a server returns.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from enum import StrEnum
from importlib import import_module
from typing import Any, TypeAlias, TypeVar

from memstate_core.policy.sections.embedding import EmbeddingSettings
from memstate_core.policy.sections.extractor import ExtractorSettings

_LONGEST_DETAIL = 200
_NO_KEY = "none"
T = TypeVar("T")
Access: TypeAlias = ExtractorSettings | EmbeddingSettings
"""How an endpoint is reached, and how patiently."""
Unavailable = Callable[[str, str], Exception]
"""Makes the error of an installation that cannot connect, of the problem and what to do."""


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


class Connection:
    """One endpoint. Threads may share it."""

    def __init__(
        self,
        base_url: str,
        access: Access,
        expected: str,
        *,
        section: str,
        unavailable: Unavailable,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        """Makes the HTTP client; sends nothing.

        Args:
            base_url: the URL of the API.
            access: the key's variable and the timeout.
            expected: what an answer is, such as "a chat completion".
            section: the section of the settings, for messages.
            unavailable: makes the error that is raised here.
            environ: has the key.

        Raises:
            Exception: as `unavailable` makes it: the package `openai` is missing, or the variable of the key is not
                set.
        """
        self._timeout, self._expected = access.timeout_seconds, expected
        self._key = environ.get(access.api_key_env, "") if access.api_key_env else ""
        if access.api_key_env and not self._key:
            problem = f"the environment variable {access.api_key_env}, which {section}.api_key_env names, is not set"
            raise unavailable(problem, "Set it to the key of the endpoint")
        try:
            self._openai: Any = import_module("openai")
        except ImportError:
            raise unavailable("the package openai is missing", "Run pip install 'memstate[llm]'") from None
        self.client = self._openai.OpenAI(
            base_url=base_url, api_key=self._key or _NO_KEY, timeout=access.timeout_seconds, max_retries=0
        )

    def close(self) -> None:
        """Closes the connections."""
        self.client.close()

    def models(self) -> list[str]:
        """The names of the models that the server lists.

        Raises:
            RequestFailed: there was no answer.
        """
        return [str(model.id) for model in self.sent(lambda: self.client.models.list().data)]

    def sent(self, send: Callable[[], T]) -> T:
        """What a call of the client returns.

        Raises:
            RequestFailed: there was no answer, or another one than expected.
        """
        try:
            return send()
        except self._openai.APIStatusError as error:
            raise self._refused(error) from None
        except self._openai.APITimeoutError:
            raise RequestFailed(Trouble.UNAVAILABLE, f"no answer within {self._timeout:g} s") from None
        except self._openai.APIConnectionError as error:
            raise RequestFailed(Trouble.UNREACHABLE, self._plain(str(error.__cause__ or error))) from None
        except (self._openai.OpenAIError, ValueError, TypeError, AttributeError, IndexError) as error:
            detail = f"the answer is not {self._expected} ({type(error).__name__})"
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


def _trouble(status: int, code: str) -> Trouble:
    if status == 429 and code != "insufficient_quota":
        return Trouble.RATE_LIMITED
    if status >= 500 or status in (408, 409, 425):
        return Trouble.UNAVAILABLE
    return Trouble.NOT_UNDERSTOOD if status in (400, 413, 415, 422) else Trouble.DENIED
