"""How calls are carried out: what is sent again and what is not, how long clients wait, what errors say."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import anyio
import httpx2
import pytest

from memstate_core.client import AsyncMemoryClient, MemoryClient, Retry, calls
from memstate_core.client.failures import failure_of
from memstate_core.model.errors import (
    AccessDenied,
    ApiError,
    NotFound,
    RateLimited,
    RequestInvalid,
    ServerFailed,
    ServerUnreachable,
)
from tests.core.client.conftest import Stage

pytestmark = pytest.mark.slow

FAST = Retry(attempts=3, first=0.001)
QUESTION = {"query": "q", "candidates": [], "evidence": [], "summary_text": "", "snapshot": "s0/1"}
NOTED = {"topic_id": "t", "fields": None, "failed": False, "at": "2026-01-01T00:00:00Z"}
BROKEN: tuple[int, dict[str, str], Any] = (0, {}, None)
Ask = Callable[..., Any]


def by_waiting(stage: Stage, method: str, *args: Any, **settings: Any) -> Any:
    with MemoryClient(stage.url, **{"retry": FAST, **settings}) as client:
        return getattr(client, method)(*args)


def by_awaiting(stage: Stage, method: str, *args: Any, **settings: Any) -> Any:
    async def run() -> Any:
        async with AsyncMemoryClient(stage.url, **{"retry": FAST, **settings}) as client:
            return await getattr(client, method)(*args)

    return anyio.run(run)


@pytest.fixture(params=[by_waiting, by_awaiting])
def ask(request: pytest.FixtureRequest) -> Ask:
    found: Ask = request.param
    return found


def problem(status: int, word: str, headers: dict[str, str] | None = None, **more: Any) -> Any:
    document = {"type": f"urn:memstate:problem:{word}", "title": "T", "status": status, "detail": f"{word} happened"}
    return status, headers or {}, document | more


@pytest.mark.parametrize("failure", [problem(503, "storage"), problem(429, "too-many-requests"), BROKEN])
def test_a_question_is_asked_again(stage: Stage, ask: Ask, failure: Any) -> None:
    stage.script = [failure, failure, (200, {}, QUESTION)]
    assert ask(stage, "query", "q").snapshot == "s0/1"
    assert len(stage.requests) == 3


def test_what_was_handed_over_is_sent_again_in_the_same_bytes(stage: Stage, ask: Ask) -> None:
    reply = {"accepted": 1, "observation_ids": ["o"], "topic_ids": [None], "file": "f"}
    stage.script = [BROKEN, (202, {}, reply)]
    assert ask(stage, "ingest", {"text": "x"}).observation_ids == ["o"]
    assert [body for *_, body in stage.requests] == [b'{"text":"x"}'] * 2


@pytest.mark.parametrize("failure", [problem(503, "storage"), BROKEN])
def test_feedback_that_may_have_been_taken_is_not_sent_again(stage: Stage, ask: Ask, failure: Any) -> None:
    stage.script = [failure, (202, {}, NOTED)]
    with pytest.raises((ServerFailed, ServerUnreachable)):
        ask(stage, "feedback", "t")
    assert len(stage.requests) == 1


def test_feedback_that_was_turned_away_is_sent_again(stage: Stage, ask: Ask) -> None:
    stage.script = [problem(429, "too-many-requests"), (202, {}, NOTED)]
    assert ask(stage, "feedback", "t").topic_id == "t"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, RequestInvalid),
        (401, AccessDenied),
        (403, AccessDenied),
        (404, NotFound),
        (409, RequestInvalid),
        (422, RequestInvalid),
        (500, ServerFailed),
    ],
)
def test_what_would_fail_again_is_not_sent_again(stage: Stage, ask: Ask, status: int, kind: type[ApiError]) -> None:
    stage.script = [problem(status, "odd-thing", request_id="r-1", topic_id="t", kind="x")]
    with pytest.raises(ApiError) as caught:
        ask(stage, "query", "q")
    error = caught.value
    assert (type(error), error.message, error.status, error.kind) == (kind, "odd-thing happened", status, "odd-thing")
    assert (error.request_id, error.facts["topic_id"], len(stage.requests)) == ("r-1", "t", 1)


def test_the_last_failure_is_raised(stage: Stage, ask: Ask) -> None:
    stage.script = [problem(503, "storage"), problem(503, "store-not-found"), problem(429, "too-many-requests")]
    with pytest.raises(RateLimited) as caught:
        ask(stage, "query", "q")
    assert (caught.value.kind, len(stage.requests)) == ("too-many-requests", 3)


def test_retry_after_is_respected(stage: Stage, ask: Ask) -> None:
    stage.script = [problem(429, "too-many-requests", {"Retry-After": "1"}), (200, {}, QUESTION)]
    began = time.monotonic()
    ask(stage, "query", "q")
    assert 1 <= time.monotonic() - began < 5


SOON = {"Date": "Sun, 01 Mar 2026 10:00:00 GMT", "Retry-After": "Sun, 01 Mar 2026 10:00:01 GMT"}


def test_retry_after_may_be_a_date_by_the_clock_of_the_server(stage: Stage, ask: Ask) -> None:
    """The server's clock is months off; the pause is the difference of its own two dates."""
    stage.script = [problem(503, "storage", SOON), (200, {}, QUESTION)]
    began = time.monotonic()
    ask(stage, "query", "q")
    assert 1 <= time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("120", 120.0),
        ("Sun, 01 Mar 2026 10:02:00 GMT", 120.0),
        ("Sunday, 01-Mar-26 10:02:00 GMT", 120.0),
        ("Sun, 01 Mar 2026 09:00:00 GMT", 0.0),
        ("soon", None),
        ("-1", None),
        ("٣", None),
        ("Sun, 99 Mar 2026 10:00:00 GMT", None),
    ],
)
def test_both_forms_of_retry_after_are_read(given: str, expected: float | None) -> None:
    headers = {"Date": "Sun, 01 Mar 2026 10:00:00 GMT", "Retry-After": given}
    response = httpx2.Response(429, headers={name: value.encode() for name, value in headers.items()})
    assert failure_of(response).retry_after == expected


def test_too_long_a_retry_after_is_left_to_the_caller(stage: Stage, ask: Ask) -> None:
    stage.script = [problem(429, "too-many-requests", {"Retry-After": "3600"})]
    with pytest.raises(RateLimited) as caught:
        ask(stage, "query", "q")
    assert (caught.value.retry_after, len(stage.requests)) == (3600.0, 1)


def test_backoff_doubles_up_to_a_cap_with_jitter() -> None:
    whole = Retry(attempts=9, first=0.5, longest=4.0, chance=lambda: 0.0)
    error = ServerFailed("x", 503)
    assert [whole.pause(attempt, error) for attempt in range(1, 9)] == [0.5, 1.0, 2.0, 4.0, 4.0, 4.0, 4.0, 4.0]
    assert Retry(first=1.0, chance=lambda: 1.0).pause(1, error) == 0.5
    assert whole.pause(1, RateLimited("x", 429, retry_after=3.0)) == 3.0
    assert whole.may_repeat(calls.health(), RateLimited("x", 429, retry_after=4.0)) is False
    assert whole.may_repeat(calls.runs(), RateLimited("x", 429, retry_after=4.0)) is True
    assert whole.may_repeat(calls.runs(), RateLimited("x", 429, retry_after=4.5)) is False


def test_whether_it_is_ready_is_asked_once(stage: Stage, ask: Ask) -> None:
    stage.script = [problem(503, "store-not-found")]
    with pytest.raises(ServerFailed, match="store-not-found happened"):
        ask(stage, "ready")
    assert len(stage.requests) == 1


def test_an_unreachable_server_is_an_error_with_advice(ask: Ask) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    stage = type("Gone", (), {"url": f"http://user:word@127.0.0.1:{port}"})
    with pytest.raises(ServerUnreachable) as caught:
        ask(stage, "query", "q", api_key="secret")
    assert f"http://127.0.0.1:{port} did not answer (ConnectError" in caught.value.message
    assert "memstate serve" in caught.value.message
    assert not [word for word in ("secret", "word@") if word in f"{caught.value!r} {caught.value.facts}"]


def test_a_late_answer_is_not_asked_for_again(ask: Ask) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        stage = type("Silent", (), {"url": f"http://127.0.0.1:{silent.getsockname()[1]}"})
        began = time.monotonic()
        with pytest.raises(ServerUnreachable, match="ReadTimeout"):
            ask(stage, "query", "q", timeout=0.3)
        assert time.monotonic() - began < 5
        silent.settimeout(0.1)
        silent.accept()[0].close()
        with pytest.raises(TimeoutError):
            silent.accept()


@pytest.mark.parametrize("content", [b"<html>", b"[]", b'{"query": 3}'])
def test_an_answer_of_another_service_is_an_error(stage: Stage, ask: Ask, content: bytes) -> None:
    stage.script = [(200, {}, content)]
    with pytest.raises(ServerFailed, match=r"sent no valid memstate answer to /v1/query .* Check the base URL"):
        ask(stage, "query", "q")


def test_a_failure_without_a_problem_document_has_its_status(stage: Stage, ask: Ask) -> None:
    stage.script = [(502, {"X-Request-Id": "r-9"}, b"<html>Bad Gateway</html>")]
    with pytest.raises(ServerFailed, match="status 502 and no problem document") as caught:
        ask(stage, "query", "q")
    assert (caught.value.kind, caught.value.request_id) == (None, "r-9")


def test_keys_that_a_newer_server_adds_are_passed_over(stage: Stage, ask: Ask) -> None:
    stage.script = [(200, {}, QUESTION | {"mood": "good"})]
    assert ask(stage, "query", "q").query == "q"


def test_the_key_is_given_or_taken_from_the_environment(
    stage: Stage, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMSTATE_API_KEY", "from-environment")
    ask(stage, "health")
    ask(stage, "health", api_key="given")
    ask(stage, "health", api_key="")
    assert [headers.get("x-api-key", headers.get("X-API-Key")) for _, _, headers, _ in stage.requests] == [
        "from-environment", "given", None
    ]  # fmt: skip
    assert "given" not in repr(MemoryClient(api_key="given"))


def test_it_loads_nothing_of_the_pipeline() -> None:
    heavy = ["torch", "kuzu", "polars", "fastapi", "starlette", "mcp", "dagster", "sentence_transformers", "numpy"]
    script = f"import sys\nimport memstate_core.client\nsys.exit(str([m for m in {heavy} if m in sys.modules] or ''))"
    reply = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert reply.stderr.strip() == ""
