"""The state of the server: its runs, its readiness and what it serves."""

from __future__ import annotations

from typing import Any

from memstate_core.model.answers.base import Answer, NullIfOlder, Sometimes
from memstate_core.model.answers.parts import MissingShard


class RunRecord(Answer, frozen=True):
    """A run; `counts`, `checks` and `seconds` are null if it left no report.

    `counts` are what the run changed then. `in_effect` is false for one that a later rollback undid, and null if the
    ledger cannot be read. A rollback has the time (`now`) and the state of the snapshot that it serves again.
    """

    run_id: str
    now: str
    shard: str
    snapshot: str
    state_hash: str
    counts: dict[str, int] | None
    totals: dict[str, int]
    checks: list[dict[str, Any]] | None = None
    seconds: dict[str, float] | None = None
    expected_false_merges: float | None = None
    in_effect: bool | None = None


class RunsAnswer(Answer, frozen=True):
    """The latest runs, newest first."""

    runs: list[RunRecord]


class LastRun(Answer, frozen=True):
    """A run; `checks_passed` is null if its checks have no result yet, or if it left no report."""

    run_id: str
    now: str
    checks_passed: bool | None = None


class RefusedSnapshot(Answer, frozen=True):
    """The snapshot that CURRENT names and that the server could not open, why, and since when."""

    snapshot: str
    detail: str
    since: str


class SourceProblem(Answer, frozen=True):
    """A shard that a replica could not fetch when it asked last, why, and since when."""

    shard: str
    detail: str
    since: str


class ReplicaWrites(Answer, frozen=True):
    """Whether a replica takes writes for its store, and why the last one could not be stored, since when."""

    accepted: bool
    problem: str | None = None
    since: str | None = None


class FetchState(Answer, frozen=True):
    """The last look of a store into the inbox at its URL: when it worked, what still lay there, why it failed."""

    at: str | None
    waiting: int
    problem: str | None = None


class CheckoutState(Answer, frozen=True):
    """Which state of a store at a URL this home has: the number of the last one that it fetched or sent, 0 for none.

    `unsent` is true while a command here writes, and after one that ended without sending what it did. Of the shards in
    `absent` the snapshots are at the URL alone.
    """

    url: str
    state: int
    at: str | None
    unsent: bool
    absent: NullIfOlder[list[str]] = None


class ReplicaState(Answer, frozen=True):
    """How far a replica follows its source; without problems it has what was published at `asked_at`."""

    source: str
    problems: list[SourceProblem]
    asked_at: str | None = None
    writes: NullIfOlder[ReplicaWrites] = None


class ShardReadiness(Answer, frozen=True):
    """What is served of a shard.

    `state` is `open`; `not_open` where the next request that needs the shard opens it; `empty` if it has no snapshot;
    or `failed` if nothing can be served of it. `problem` says why, or why a newer snapshot cannot be served.
    """

    state: str
    snapshot: str | None = None
    age_seconds: float | None = None
    problem: str | None = None


class Readiness(Answer, frozen=True):
    """Whether a snapshot is served and whether it is stale; callers who see every scope get the other keys too.

    `last_run` produced the served snapshot; `unpublished_run` began after it and is still running, or has failed.
    Replicas alone have `replica`, stores that fetch what replicas accepted have `fetch`, and checkouts of a store at a
    URL have `checkout`. With `shard`, only that one is in `shards`.
    """

    status: str
    stale: bool = False
    snapshot: Sometimes[str] = None
    age_seconds: Sometimes[float] = None
    max_age_seconds: Sometimes[float] = None
    last_run: Sometimes[LastRun] = None
    unpublished_run: Sometimes[LastRun] = None
    refused_snapshot: Sometimes[RefusedSnapshot] = None
    missing_shards: Sometimes[list[MissingShard]] = None
    shards: Sometimes[dict[str, ShardReadiness]] = None
    replica: Sometimes[ReplicaState] = None
    fetch: Sometimes[FetchState] = None
    checkout: Sometimes[CheckoutState] = None


class Health(Answer, frozen=True):
    """The process answers."""

    status: str


class GraphCounts(Answer, frozen=True):
    """How much is served in the scopes that the caller may read."""

    scopes: int
    topics: int
    fields: int
    edges: int
    evidence: int


class GraphHealth(Answer, frozen=True):
    """A graph is served; the other keys are sent to callers who may read at least one scope."""

    status: str
    backend: str
    path: str
    snapshot: Sometimes[str] = None
    counts: Sometimes[GraphCounts] = None
