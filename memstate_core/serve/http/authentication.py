"""Who comes in: the key that a request shows, how often its caller may ask, and whose wrong keys are too many."""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from memstate_core.serve.auth.keyring import Holder, Keyring
from memstate_core.serve.auth.principal import ANONYMOUS, OWNER, Principal
from memstate_core.serve.http.middleware import Guard
from memstate_core.serve.http.rate_limits import Buckets, Rate, network
from memstate_core.serve.options import OPEN_PATHS, Options, is_loopback
from memstate_core.serve.problems import Problem

WRONG_KEYS = Rate(a_second=0.5, burst=20.0)
"""How often one address may show a wrong key."""


class Authentication(Guard):
    """Finds out who asks, and puts them into the request's state as `principal`.

    Where there are keys, callers show one; where there are none, they have to mean this machine.
    """

    def __init__(self, app: ASGIApp, options: Options, keyring: Keyring) -> None:
        super().__init__(app, options)
        self._keyring = keyring
        self._asked, self._failed = Buckets(time.monotonic), Buckets(time.monotonic)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Lets pass who may, as often as they may."""
        headers, is_open = Headers(scope=scope), scope["path"] in OPEN_PATHS
        scope["state"]["principal"] = self._caller(headers, scope.get("client"), is_open)
        await self.app(scope, receive, send)

    def _caller(self, headers: Headers, client: tuple[str, int] | None, is_open: bool) -> Principal:
        if not self._keyring.is_needed():
            if _is_local(headers):
                return OWNER
            if is_open:
                return ANONYMOUS
            raise _foreign_host(headers)
        shown = _shown(headers)
        if not shown and is_open:
            return ANONYMOUS
        holder = self._holder(shown, network(client[0] if client else ""))
        if holder is not None:
            self._count(holder)
            return holder.principal
        if is_open:
            return ANONYMOUS
        expected = "expected one that the server knows as X-API-Key, or as a bearer token in Authorization"
        found = "the key is not a good one" if shown else "the request shows no key"
        raise Problem(401, "unauthorized", f"{found}: {expected}", {"WWW-Authenticate": "Bearer"})

    def _holder(self, shown: list[str], address: str) -> Holder | None:
        """Who shows these keys. An address of too many wrong ones cannot go on to guess what somebody chose."""
        wait = self._failed.wait(address, WRONG_KEYS)
        now = datetime.now(UTC)
        found = [self._keyring.holder(token, now, guessable=not wait) for token in shown]
        holder = next((each for each in found if each is not None), None)
        if holder is None and shown and self._failed.take(address, WRONG_KEYS):
            raise _too_many("wrong keys from this address", WRONG_KEYS, wait)
        return holder

    def _count(self, holder: Holder) -> None:
        limit = self.options.rate_limit if holder.rate is None else holder.rate
        if limit:
            rate = Rate.of(limit)
            if wait := self._asked.take(holder.bucket, rate):
                raise _too_many("requests by this key", rate, wait)


def _shown(headers: Headers) -> list[str]:
    """What a request shows as keys, as it was meant: headers carry bytes."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    given = [headers.get("x-api-key", ""), token.strip() if scheme.lower() == "bearer" else ""]
    return [one.encode("latin-1", "replace").decode("utf-8", "surrogateescape") for one in given if one]


def _too_many(what: str, rate: Rate, wait: float) -> Problem:
    detail = f"too many {what}: expected at most {rate.a_second:g} a second, and {rate.burst:g} at once after a pause"
    return Problem(429, "too-many-requests", detail, {"Retry-After": str(max(1, math.ceil(wait)))})


def _is_local(headers: Headers) -> bool:
    """Whether a request means this machine; a foreign page may have made its own name point here (DNS rebinding)."""
    host = headers.get("host", "")
    return is_loopback(host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0])


def _foreign_host(headers: Headers) -> Problem:
    found = headers.get("host", "")[:100]
    detail = f"found Host {found!r}, expected localhost or a loopback address: this server asks for no key"
    return Problem(403, "foreign-host", detail)
