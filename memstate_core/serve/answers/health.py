"""How the memory fares: its runs, whether it is ready, what is served."""

from __future__ import annotations

from typing import Any

from memstate_core.serve.answers.parts import Answer


class RunTold(Answer):
    """A run; `counts`, `checks` and `seconds` are null where it left no report."""

    run_id: str
    now: str
    shard: str
    snapshot: str
    state_hash: str
    counts: dict[str, int] | None
    totals: dict[str, int]
    checks: list[dict[str, Any]] | None
    seconds: dict[str, float] | None
    expected_false_merges: float | None


class RunsAnswer(Answer):
    """The last runs, newest first."""

    runs: list[RunTold]


class LastRun(Answer):
    """A run; `checks_passed` is null where its checks have not spoken, or it left no report."""

    run_id: str
    now: str
    checks_passed: bool | None


class RefusedSnapshot(Answer):
    """What CURRENT names and the server could not open, why, and since when."""

    snapshot: str
    detail: str
    since: str


class Readiness(Answer):
    """That something is served, and whether it is older than it should be; the rest for who sees every scope.

    `last_run` made what is served; `unpublished_run` began after it and is going on, or has failed.
    """

    status: str
    stale: bool
    snapshot: str | None = None
    age_seconds: float | None = None
    max_age_seconds: float | None = None
    last_run: LastRun | None = None
    unpublished_run: LastRun | None = None
    refused_snapshot: RefusedSnapshot | None = None


class Health(Answer):
    """The process answers."""

    status: str


class GraphCounts(Answer):
    """How much is served in the scopes that the caller sees."""

    scopes: int
    topics: int
    fields: int
    edges: int
    evidence: int


class GraphHealth(Answer):
    """A graph is served, by which store, from which file of a snapshot; more for callers who see something."""

    status: str
    backend: str
    path: str
    snapshot: str | None = None
    counts: GraphCounts | None = None
