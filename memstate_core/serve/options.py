"""Server options. Plain values; the command line reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address, ip_network

from memstate_core.ingest.validation.decode import MAX_DEPTH

KEY_VARIABLE = "MEMSTATE_API_KEY"
MOST_WORKERS = 64
"""How many processes one server may have."""


@dataclass(frozen=True)
class Options:
    """Server options.

    Attributes:
        api_key: a key for all scopes and roles, beside the key file; None for none.
        rate_limit: requests per second per key, unless the key has its own rate; 0 for unlimited.
        record: whether an answered query is recorded as an access of its candidates, unless the request says otherwise.
        body_limit: the maximum size of a request body in bytes.
        body_seconds: how long a body may take to arrive.
        request_seconds: how long a request may take to begin its answer.
        keep_alive_seconds: how long a connection is kept open for the next request.
        depth_limit: the maximum nesting depth of a body: that of an observation plus the list around it.
        poll_seconds: how often CURRENT is polled.
        flush_seconds: how often accesses are written to disk; a kill loses at most this much of them.
        rotate_seconds: how often a segment of accesses is completed for the next run to collect.
        accesses_limit: the maximum number of accesses held in memory; beyond that the oldest are dropped.
        threads: how many requests are processed concurrently.
        shutdown_seconds: how long running requests may take at shutdown.
        max_age: seconds after which a snapshot is stale; None for never.
        trusted_proxies: addresses or networks of reverse proxies whose X-Forwarded-For and X-Forwarded-Proto are
            believed; from all others these headers are ignored.
        settle: the process only serves, so objects loaded with the first snapshot are exempt from garbage collection;
            each full collection over the model stopped every thread for a third of a second.
        replica_of: the URL that a replica serves from; None for a server on its own store.
        follow_seconds: how often a replica asks its source for what is published.
        accept_writes: whether a replica takes writes for its store, which has to fetch them.
        cache_mib: how many MiB of fetched objects a replica keeps beside those that it serves.
        open_shards: how many shards a replica keeps open, each from the first request that needs it; None for all.
    """

    api_key: str | None = None
    rate_limit: float = 200.0
    record: bool = True
    body_limit: int = 1 << 20
    body_seconds: float = 30.0
    request_seconds: float = 30.0
    keep_alive_seconds: int = 5
    depth_limit: int = MAX_DEPTH + 1
    poll_seconds: float = 0.5
    flush_seconds: float = 1.0
    rotate_seconds: float = 30.0
    accesses_limit: int = 50_000
    threads: int = 16
    shutdown_seconds: int = 20
    max_age: float | None = None
    trusted_proxies: tuple[str, ...] = ()
    settle: bool = False
    replica_of: str | None = None
    follow_seconds: float = 5.0
    accept_writes: bool = False
    cache_mib: int = 4096
    open_shards: int | None = None


def api_key(environ: Mapping[str, str]) -> str | None:
    """The key set by the environment; None if it is blank."""
    return environ.get(KEY_VARIABLE, "").strip() or None


def trusted_proxy(text: str) -> str:
    """Checks the address or the network of a reverse proxy, and returns it.

    The server compares anything else, such as a host name, with addresses as text, so it would never apply.

    Raises:
        ValueError: it is neither.
    """
    try:
        return str(ip_network(text) if "/" in text else ip_address(text))
    except ValueError as error:
        expected = "an address such as 10.0.0.5, or a network such as 10.0.0.0/8 or fd00::/8"
        raise ValueError(f"{text!r} is no address of a reverse proxy: {error}; expected {expected}") from None


@lru_cache(maxsize=32)
def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


OPEN_PATHS = frozenset({"/healthz", "/readyz", "/health", "/health/graph"})
