"""How the memory fares: its runs, whether it is ready, what is served."""

from __future__ import annotations

from typing import Any

from memstate_core.client.answers.parts import Answer


class RunTold(Answer, frozen=True):
    """A run; `counts`, `checks` and `seconds` are None where it left no report."""

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


class RunsAnswer(Answer, frozen=True):
    """The last runs, newest first."""

    runs: list[RunTold]


class LastRun(Answer, frozen=True):
    """A run; `checks_passed` is None where its checks have not spoken, or it left no report."""

    run_id: str
    now: str
    checks_passed: bool | None = None


class RefusedSnapshot(Answer, frozen=True):
    """What CURRENT names and the server could not open, why, and since when."""

    snapshot: str
    detail: str
    since: str


class Readiness(Answer, frozen=True):
    """That something is served, and whether it is older than it should be; the rest for who sees every scope.

    `last_run` made what is served; `unpublished_run` began after it and is going on, or has failed.
    """

    status: str
    stale: bool = False
    snapshot: str | None = None
    age_seconds: float | None = None
    max_age_seconds: float | None = None
    last_run: LastRun | None = None
    unpublished_run: LastRun | None = None
    refused_snapshot: RefusedSnapshot | None = None


class Health(Answer, frozen=True):
    """The process answers."""

    status: str
