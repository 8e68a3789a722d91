"""Authentication: API keys, rate limits, lockout."""

from __future__ import annotations

import math
import re
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
from memstate_core.serve.workers.shared import Shared

WRONG_KEYS = Rate(a_second=0.5, burst=20.0)
"""How often an address may present wrong keys that begin alike."""

WRONG_KEYS_IN_ALL = Rate(a_second=1.0, burst=100.0)
"""How often it may present wrong keys of any kind, so that other prefixes give no further guesses."""

_OWN_PREFIX, _OTHER_PREFIX = len("ms_000000000000"), 4
"""How much of a presented key identifies its bucket of wrong keys: the public part of our own keys, and the first
characters of others, which a person may have chosen."""

_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]+))(?::\d{1,5})?").fullmatch


class Authentication(Guard):
    """Sets the caller as `principal` in the request's state.

    If there are keys, callers need one; if there are none, the Host header has to name this machine.
    """

    def __init__(self, app: ASGIApp, options: Options, keyring: Keyring, shared: Shared | None = None) -> None:
        super().__init__(app, options)
        self._keyring = keyring
        tables = [None if shared is None else shared.buckets(name) for name in ("asked", "failed", "failed-in-all")]
        self._asked, self._failed, self._failed_in_all = (Buckets(time.monotonic, table=table) for table in tables)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes on requests of known callers within their rate."""
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
        presented = _presented(headers)
        if not presented and is_open:
            return ANONYMOUS
        holder = self._holder(presented, network(client[0] if client else ""))
        if holder is not None:
            self._count(holder)
            return holder.principal
        if is_open:
            return ANONYMOUS
        expected = "expected a valid one in X-API-Key, or as a bearer token in Authorization"
        found = "the key is not valid" if presented else "the request has no key"
        raise Problem(401, "unauthorized", f"{found}: {expected}", {"WWW-Authenticate": "Bearer"})

    def _holder(self, presented: list[str], address: str) -> Holder | None:
        """The holder of one of the presented keys.

        Wrong keys are limited by address and prefix, and by address. Beyond either limit a short environment's key is
        refused for that address, too; keys that nobody can guess are always accepted.
        """
        now = datetime.now(UTC)
        for token in presented:
            limits = (
                (self._failed, f"{address} {_prefix(token)}", WRONG_KEYS, "wrong keys like this from this address"),
                (self._failed_in_all, address, WRONG_KEYS_IN_ALL, "wrong keys from this address"),
            )
            waits = [buckets.wait(name, rate) for buckets, name, rate, _ in limits]
            holder = self._keyring.holder(token, now, guessable=not any(waits))
            if holder is not None:
                return holder
            for (buckets, name, rate, what), wait in zip(limits, waits, strict=True):
                if buckets.take(name, rate):
                    raise _too_many(what, rate, wait)
        return None

    def _count(self, holder: Holder) -> None:
        limit = self.options.rate_limit if holder.rate is None else holder.rate
        if limit:
            rate = Rate.of(limit)
            if wait := self._asked.take(holder.bucket, rate):
                raise _too_many("requests by this key", rate, wait)


def _prefix(token: str) -> str:
    return token[: _OWN_PREFIX if token.startswith("ms_") else _OTHER_PREFIX]


def _presented(headers: Headers) -> list[str]:
    """The keys in a request, decoded as UTF-8: headers carry bytes."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    given = [headers.get("x-api-key", ""), token.strip() if scheme.lower() == "bearer" else ""]
    return [one.encode("latin-1", "replace").decode("utf-8", "surrogateescape") for one in given if one]


def _too_many(what: str, rate: Rate, wait: float) -> Problem:
    detail = f"too many {what}: expected at most {rate.a_second:g} a second, and {rate.burst:g} at once after a pause"
    return Problem(429, "too-many-requests", detail, {"Retry-After": str(max(1, math.ceil(wait)))})


def _is_local(headers: Headers) -> bool:
    """Whether the Host header names this machine; another name may have been made to point here (DNS rebinding)."""
    found = _HOST(headers.get("host", ""))
    return found is not None and is_loopback(found[1] or found[2])


def _foreign_host(headers: Headers) -> Problem:
    found = headers.get("host", "")[:100]
    detail = f"found Host {found!r}, expected localhost or a loopback address: this server has no keys"
    return Problem(403, "foreign-host", detail)
