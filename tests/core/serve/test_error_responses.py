"""Exceptions as problem documents: what callers learn, and what they need not know."""

from __future__ import annotations

from memstate_core.model.errors import StoreNotFound
from memstate_core.serve.error_responses import problem_for


def test_a_server_without_an_open_snapshot_may_have_just_started_or_have_none() -> None:
    problem = problem_for(StoreNotFound("/srv/memory"))
    assert problem is not None
    assert (problem.status, problem.kind, problem.headers) == (503, "store-not-found", {"Retry-After": "1"})
    assert "just started" in problem.detail
    assert "`memstate maintain`" in problem.detail
    assert "/srv/memory" not in problem.detail
