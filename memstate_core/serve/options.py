"""How a server is run. Values only; where they come from is the command line's business."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address

from memstate_core.ingest.validation.decode import MAX_DEPTH

KEY_VARIABLE = "MEMSTATE_API_KEY"


@dataclass(frozen=True)
class Options:
    """How a server is run.

    Attributes:
        api_key: a key for everything, beside those of the home; None for none.
        rate_limit: requests a second that a key may make, where it has no rate of its own; 0 for any number.
        record: whether an answered query counts as a use of its candidates, unless it says otherwise.
        body_limit: bytes that the body of a request may have.
        body_seconds: how long a body may take to arrive.
        request_seconds: how long a request may take to begin its answer.
        keep_alive_seconds: how long a connection is kept open for the next request.
        depth_limit: nesting levels that a body may have: those of an observation, and the list around it.
        poll_seconds: how often CURRENT is looked at.
        flush_seconds: how often uses are brought to disk; what a kill can lose of them.
        rotate_seconds: how often a segment of uses is completed for the next run to collect.
        uses_limit: uses held in memory at most; beyond that the oldest are dropped.
        threads: how many requests are worked on at the same time.
        shutdown_seconds: how long running requests may take when the server ends.
        max_age: seconds from which on a snapshot counts as stale; None for never.
        settle: the process only serves, so what is loaded with the first snapshot is left out of garbage collection;
            each full walk over the model stopped every thread for a third of a second.
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
    uses_limit: int = 50_000
    threads: int = 16
    shutdown_seconds: int = 20
    max_age: float | None = None
    settle: bool = False


def api_key(environ: Mapping[str, str]) -> str | None:
    """The key that the environment sets; a blank one is none."""
    return environ.get(KEY_VARIABLE, "").strip() or None


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


OPEN_PATHS = frozenset({"/healthz", "/readyz", "/health", "/health/graph"})
