"""The sync and the async client. The methods of both are built from the functions in `memstate_core.client.calls`."""

from __future__ import annotations

import os
import warnings
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

import anyio
import httpx2
from tenacity import AsyncRetrying, Retrying

from memstate_core.client import calls
from memstate_core.client.calls import Call, ScopeGiven
from memstate_core.client.encoding import checked, encoded
from memstate_core.client.exchange import Retry, decoded
from memstate_core.client.failures import unreachable
from memstate_core.model.answers import (
    Answer,
    Fact,
    FactsPage,
    ListedResource,
    ListedTopic,
    ResourcesPage,
    TopicsPage,
)

DEFAULT_URL = "http://127.0.0.1:8420"
KEY_VARIABLE = "MEMSTATE_API_KEY"
T = TypeVar("T", bound=Answer)
P = ParamSpec("P")
Client = TypeVar("Client", httpx2.Client, httpx2.AsyncClient)


def _method(build: Callable[P, Call[T]]) -> Callable[Concatenate[MemoryClient, P], T]:
    @wraps(build)
    def method(self: MemoryClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.send(checked(build, *args, **kwargs))

    return method


def _async_method(build: Callable[P, Call[T]]) -> Callable[Concatenate[AsyncMemoryClient, P], Coroutine[Any, Any, T]]:
    @wraps(build)
    async def method(self: AsyncMemoryClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.send(checked(build, *args, **kwargs))

    return method


class _Configured(Generic[Client]):
    """The configuration of both clients, and the requests that they send.

    Args:
        base_url: where the server listens.
        api_key: the API key; by default MEMSTATE_API_KEY, or none if that is not set.
        timeout: seconds allowed for each of connecting, sending and waiting for the answer.
        retry: when and how often failed calls are sent again.
    """

    _transport: type[Client]
    """The httpx2 client that sends the requests."""

    def __init__(
        self,
        base_url: str = DEFAULT_URL,
        *,
        api_key: str | None = None,
        timeout: float = 30.0,
        retry: Retry | None = None,
    ) -> None:
        self._url = httpx2.URL(base_url.rstrip("/"))
        self._server = str(self._url.copy_with(userinfo=b""))
        self._retry = retry or Retry()
        key = os.environ.get(KEY_VARIABLE, "").strip() if api_key is None else api_key
        headers = {"Accept": "application/json"} | ({"X-API-Key": key} if key else {})
        self._client: Client = self._transport(base_url=self._url, headers=headers, timeout=timeout)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._server!r})"

    def _request(self, call: Call[Any]) -> httpx2.Request:
        content = None if call.body is None else encoded(call.body)
        headers = None if content is None else {"Content-Type": "application/json"}
        build = self._client.build_request
        return checked(build, call.method, call.path, params=call.params, content=content, headers=headers)


class MemoryClient(_Configured[httpx2.Client]):
    """A blocking, thread-safe client. Use it as a context manager, or call `close`."""

    _transport = httpx2.Client

    query = _method(calls.query)
    context = _method(calls.context)
    topic = _method(calls.topic)
    history = _method(calls.history)
    topics_page = _method(calls.topics_page)
    facts_page = _method(calls.facts_page)
    resources_page = _method(calls.resources_page)
    ingest = _method(calls.ingest)
    feedback = _method(calls.feedback)
    runs = _method(calls.runs)
    health = _method(calls.health)
    ready = _method(calls.ready)

    def topics(
        self, scope: ScopeGiven | Sequence[ScopeGiven] | None = None, *, page_size: int | None = None
    ) -> Iterator[ListedTopic]:
        """All served topics, ordered by scope and id; pages are fetched lazily.

        Warns (`UserWarning`) of damaged shards, whose topics are missing.
        """
        cursor: str | None = None
        while True:
            page = self.topics_page(scope, cursor=cursor, limit=page_size)
            yield from page.topics
            cursor = page.next_cursor
            if cursor is None:
                _warn_of_missing(page)
                return

    def resources(self, *, page_size: int | None = None, **which: Any) -> Iterator[ListedResource]:
        """All resources by scope and URI; pages are fetched lazily. Arguments as for `resources_page`.

        Warns (`UserWarning`) of damaged shards, whose resources are missing.
        """
        cursor: str | None = None
        while True:
            page = self.resources_page(cursor=cursor, limit=page_size, **which)
            yield from page.resources
            cursor = page.next_cursor
            if cursor is None:
                _warn_of_missing(page)
                return

    def facts(
        self, subject: str | None = None, predicate: str | None = None, *, page_size: int | None = None, **how: Any
    ) -> Iterator[Fact]:
        """All facts, by scope, subject and predicate; pages are fetched lazily. Arguments as for `facts_page`.

        Warns (`UserWarning`) of damaged shards, whose facts are missing.
        """
        cursor: str | None = None
        while True:
            page = self.facts_page(subject, predicate, cursor=cursor, limit=page_size, **how)
            yield from page.facts
            cursor = page.next_cursor
            if cursor is None:
                _warn_of_missing(page)
                return

    def send(self, call: Call[T]) -> T:
        """Sends a call, and again if it failed and may be repeated.

        Raises:
            ApiError: the call failed; the subclass says why.
        """
        answer: T = Retrying(**self._retry.policy(call))(self._attempt, call, self._request(call))
        return answer

    def _attempt(self, call: Call[T], request: httpx2.Request) -> T:
        try:
            response = self._client.send(request)
        except httpx2.TransportError as error:
            raise unreachable(error, self._server) from error
        return decoded(response, call, self._server)

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()

    def __enter__(self) -> MemoryClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncMemoryClient(_Configured[httpx2.AsyncClient]):
    """A client whose methods are awaited. Use it as an async context manager, or call `aclose`."""

    _transport = httpx2.AsyncClient

    query = _async_method(calls.query)
    context = _async_method(calls.context)
    topic = _async_method(calls.topic)
    history = _async_method(calls.history)
    topics_page = _async_method(calls.topics_page)
    facts_page = _async_method(calls.facts_page)
    resources_page = _async_method(calls.resources_page)
    ingest = _async_method(calls.ingest)
    feedback = _async_method(calls.feedback)
    runs = _async_method(calls.runs)
    health = _async_method(calls.health)
    ready = _async_method(calls.ready)

    async def topics(
        self, scope: ScopeGiven | Sequence[ScopeGiven] | None = None, *, page_size: int | None = None
    ) -> AsyncIterator[ListedTopic]:
        """All served topics, ordered by scope and id; pages are fetched lazily.

        Warns (`UserWarning`) of damaged shards, whose topics are missing.
        """
        cursor: str | None = None
        while True:
            page = await self.topics_page(scope, cursor=cursor, limit=page_size)
            for topic in page.topics:
                yield topic
            cursor = page.next_cursor
            if cursor is None:
                _warn_of_missing(page)
                return

    async def resources(self, *, page_size: int | None = None, **which: Any) -> AsyncIterator[ListedResource]:
        """All resources by scope and URI; pages are fetched lazily. Arguments as for `resources_page`.

        Warns (`UserWarning`) of damaged shards, whose resources are missing.
        """
        cursor: str | None = None
        while True:
            page = await self.resources_page(cursor=cursor, limit=page_size, **which)
            for resource in page.resources:
                yield resource
            cursor = page.next_cursor
            if cursor is None:
                _warn_of_missing(page)
                return

    async def facts(
        self, subject: str | None = None, predicate: str | None = None, *, page_size: int | None = None, **how: Any
    ) -> AsyncIterator[Fact]:
        """All facts, by scope, subject and predicate; pages are fetched lazily. Arguments as for `facts_page`.

        Warns (`UserWarning`) of damaged shards, whose facts are missing.
        """
        cursor: str | None = None
        while True:
            page = await self.facts_page(subject, predicate, cursor=cursor, limit=page_size, **how)
            for fact in page.facts:
                yield fact
            cursor = page.next_cursor
            if cursor is None:
                _warn_of_missing(page)
                return

    async def send(self, call: Call[T]) -> T:
        """Sends a call, and again if it failed and may be repeated.

        Raises:
            ApiError: the call failed; the subclass says why.
        """
        retrying = AsyncRetrying(sleep=anyio.sleep, **self._retry.policy(call))
        return await retrying(self._attempt, call, self._request(call))

    async def _attempt(self, call: Call[T], request: httpx2.Request) -> T:
        try:
            response = await self._client.send(request)
        except httpx2.TransportError as error:
            raise unreachable(error, self._server) from error
        return decoded(response, call, self._server)

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._client.aclose()

    async def __aenter__(self) -> AsyncMemoryClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _warn_of_missing(page: TopicsPage | FactsPage | ResourcesPage) -> None:
    for missing in page.missing_shards or ():
        warnings.warn(f"nothing of shard {missing.shard} is listed: {missing.message}", stacklevel=3)
