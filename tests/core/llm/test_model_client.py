"""Limits and failures of an endpoint, played by a scripted server; nothing waits in earnest but for a timeout."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from memstate_core.llm.answer_cache import AnswerCache
from memstate_core.llm.endpoint import FORMATS, Endpoint
from memstate_core.llm.model_client import PLANNED, ModelClient, NoAnswer
from memstate_core.llm.schema import PLACEMENTS, TOPICS
from memstate_core.model.errors import ExtractorUnavailable
from memstate_core.policy.sections.extractor import ExtractorSettings
from tests.core.llm.clients import KEY, QUESTION, SCOPE, SleptTime, client_of
from tests.core.llm.scripted import Answer, Request, Response, fails, says, serving

pytestmark = pytest.mark.slow

GOOD = says({"topics": []})


def question(text: str) -> list[dict[str, str]]:
    return [*QUESTION, {"role": "user", "content": text}]


# What is sent


def test_the_model_is_asked_for_the_schema(tmp_path: Path) -> None:
    with serving(GOOD) as script, client_of(script.url, tmp_path, temperature=0.5, max_answer_tokens=77) as client:
        assert client.ask(QUESTION, TOPICS, SCOPE).text == '{"topics": []}'
    [request] = script.requests
    assert (request["model"], request["temperature"], request["max_tokens"]) == ("m", 0.5, 77)
    assert request["messages"] == QUESTION
    assert request["response_format"]["json_schema"]["schema"] == TOPICS.schema
    assert script.keys == ["Bearer none"]


def test_the_key_is_taken_from_its_variable(tmp_path: Path) -> None:
    with serving(GOOD) as script, client_of(script.url, tmp_path, api_key_env="SOME_KEY") as client:
        client.ask(QUESTION, TOPICS, SCOPE)
    assert script.keys == [f"Bearer {KEY}"]


def test_a_variable_that_is_not_set_is_named() -> None:
    with pytest.raises(ExtractorUnavailable, match="NO_SUCH_KEY"):
        Endpoint(ExtractorSettings(base_url="http://x", model="m", api_key_env="NO_SUCH_KEY"), {})


def test_a_missing_package_is_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(ExtractorUnavailable, match=r"pip install 'memstate\[llm\]'"):
        Endpoint(ExtractorSettings(base_url="http://x", model="m"), {})


# Servers that do not understand


def test_a_server_without_schemas_is_asked_more_and_more_simply_and_that_is_remembered(tmp_path: Path) -> None:
    def only_text(request: Request) -> Response:
        return fails(400, "response_format is not supported") if "response_format" in request else GOOD

    with serving(only_text) as script, client_of(script.url, tmp_path) as client:
        client.ask(QUESTION, TOPICS, SCOPE)
        assert len(script.requests) == len(FORMATS)
        client.ask(question("more"), TOPICS, SCOPE)
    formats = [request.get("response_format", {}).get("type") for request in script.requests]
    assert formats == ["json_schema", "json_object", "json_object", None, None]
    assert script.requests[1]["response_format"]["schema"] == TOPICS.schema
    assert "schema" not in script.requests[2]["response_format"]


def test_a_server_that_breaks_over_the_format_counts_as_one_that_does_not_understand(tmp_path: Path) -> None:
    broken = fails(500, "{'loc': ('body', 'response_format', 'type'), 'msg': 'Input should be json_object'}")
    with serving(broken, GOOD) as script, client_of(script.url, tmp_path) as client:
        client.ask(QUESTION, TOPICS, SCOPE)
    assert len(script.requests) == 2


def test_parameters_that_a_server_refuses_are_left_out(tmp_path: Path) -> None:
    def modern(request: Request) -> Response:
        if "max_tokens" in request:
            return fails(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
        return fails(400, "temperature does not support 0.0") if "temperature" in request else GOOD

    with serving(modern) as script, client_of(script.url, tmp_path) as client:
        client.ask(QUESTION, TOPICS, SCOPE)
    last = script.requests[-1]
    assert last["max_completion_tokens"] == 4096
    assert "temperature" not in last
    assert last["response_format"]["type"] == "json_schema"


def test_a_request_that_is_refused_once_the_format_is_known_is_not_sent_again(tmp_path: Path) -> None:
    with (
        serving(GOOD, fails(400, "context length exceeded"), GOOD) as script,
        client_of(script.url, tmp_path) as client,
    ):
        client.ask(QUESTION, TOPICS, SCOPE)
        with pytest.raises(NoAnswer, match=r"rejected the request.*context length"):
            client.ask(question("long"), TOPICS, SCOPE)
        client.ask(question("short"), TOPICS, SCOPE)
    assert len(script.requests) == 3


# Rate limits, errors, time


@pytest.mark.parametrize(
    ("headers", "waits"),
    [
        ({}, [1.0, 2.0, 4.0, 5.0]),
        ({"retry_after": "3"}, [3.0] * 4),
        ({"retry_after": "0.25"}, [0.25] * 4),
        ({"retry_after": "9999"}, [5.0] * 4),
        ({"retry_after": "-1"}, [0.0] * 4),
        ({"retry_after": "soon"}, [1.0, 2.0, 4.0, 5.0]),
        ({"retry_after": "nan"}, [1.0, 2.0, 4.0, 5.0]),
    ],
)
def test_a_rate_limit_is_waited_for(tmp_path: Path, headers: dict[str, str], waits: list[float]) -> None:
    limited, clock = fails(429, **headers), SleptTime()
    with (
        serving(*[limited] * 4, GOOD) as script,
        client_of(script.url, tmp_path, clock, backoff_cap_seconds=5.0) as client,
    ):
        assert client.ask(QUESTION, TOPICS, SCOPE).text
    assert clock.slept == waits
    assert client.budget.requests == 5


def test_a_rate_limit_may_name_a_date(tmp_path: Path) -> None:
    limited, clock = fails(429, retry_after="Thu, 01 Jan 2026 00:00:42 GMT"), SleptTime()
    with serving(limited, limited, GOOD) as script, client_of(script.url, tmp_path, clock) as client:
        client.ask(QUESTION, TOPICS, SCOPE)
    assert clock.slept == [42.0, 0.0]


def test_a_rate_limit_that_does_not_end_ends_the_asking(tmp_path: Path) -> None:
    with serving(fails(429)) as script, client_of(script.url, tmp_path, rate_limit_retries=2) as client:
        for text in ("one", "two"):
            with pytest.raises(NoAnswer, match="rate limited"):
                client.ask(question(text), TOPICS, SCOPE)
    assert len(script.requests) == 3


@pytest.mark.parametrize("failure", [fails(500), fails(503, retry_after="1"), Response(body="<html>"), fails(408)])
def test_a_passing_failure_is_retried(tmp_path: Path, failure: Answer) -> None:
    clock = SleptTime()
    with serving(failure, failure, GOOD) as script, client_of(script.url, tmp_path, clock) as client:
        assert client.ask(QUESTION, TOPICS, SCOPE).text
    assert len(script.requests) == 3
    assert len(clock.slept) == 2


def test_a_server_that_hangs_up_is_asked_again(tmp_path: Path) -> None:
    with serving(Response(hang_up=True), GOOD) as script, client_of(script.url, tmp_path) as client:
        assert client.ask(QUESTION, TOPICS, SCOPE).text


def test_a_server_that_takes_too_long_is_not_waited_for(tmp_path: Path) -> None:
    slow = Response(body={}, after_seconds=0.6)
    with serving(slow, GOOD) as script, client_of(script.url, tmp_path, timeout_seconds=0.15) as client:
        assert client.ask(QUESTION, TOPICS, SCOPE).text
    assert len(script.requests) == 2


def test_three_failures_in_a_row_end_the_asking(tmp_path: Path) -> None:
    with serving(fails(500)) as script, client_of(script.url, tmp_path, retries=1) as client:
        for text in range(5):
            with pytest.raises(NoAnswer, match="unavailable: HTTP 500"):
                client.ask(question(str(text)), TOPICS, SCOPE)
    assert len(script.requests) == 6


def test_an_endpoint_that_is_away_is_not_asked_again(tmp_path: Path) -> None:
    with serving(GOOD) as script:
        url = script.url
    clock = SleptTime()
    with client_of(url, tmp_path, clock, retries=2) as client:
        for text in ("one", "two"):
            with pytest.raises(NoAnswer, match="unreachable"):
                client.ask(question(text), TOPICS, SCOPE)
    assert clock.slept == [1.0, 2.0]
    assert client.budget.requests == 3


@pytest.mark.parametrize("denied", [fails(401), fails(403), fails(404), fails(429, code="insufficient_quota")])
def test_an_endpoint_that_denies_itself_is_asked_once(tmp_path: Path, denied: Response) -> None:
    with serving(denied) as script, client_of(script.url, tmp_path) as client:
        for text in ("one", "two"):
            with pytest.raises(NoAnswer, match="denied"):
                client.ask(question(text), TOPICS, SCOPE)
    assert len(script.requests) == 1


# Budgets


def test_a_budget_of_requests_counts_retries_too(tmp_path: Path) -> None:
    with (
        serving(GOOD, fails(500), fails(500), GOOD) as script,
        client_of(script.url, tmp_path, max_requests=3) as client,
    ):
        client.ask(QUESTION, TOPICS, SCOPE)
        with pytest.raises(NoAnswer, match=r"max_requests \(3\) is used up"):
            client.ask(question("more"), TOPICS, SCOPE)
    assert len(script.requests) == 3


def test_a_budget_of_tokens_ends_the_asking_when_it_is_used_up(tmp_path: Path) -> None:
    with (
        serving(says("{}", tokens=60)) as script,
        client_of(script.url, tmp_path, max_tokens=100) as client,
    ):
        client.ask(question("one"), TOPICS, SCOPE)
        client.ask(question("two"), TOPICS, SCOPE)
        with pytest.raises(NoAnswer, match=r"max_tokens \(100\) is used up"):
            client.ask(question("three"), TOPICS, SCOPE)
    assert client.budget.tokens == 120


def test_tokens_that_a_server_does_not_report_are_estimated(tmp_path: Path) -> None:
    with serving(says("x" * 40, tokens=None)) as script, client_of(script.url, tmp_path) as client:
        client.ask(QUESTION, TOPICS, SCOPE)
    assert client.budget.tokens == 40 // 4 + 1 + 1


# The cache


def test_what_was_asked_once_is_not_asked_again_not_even_of_another_endpoint(tmp_path: Path) -> None:
    with serving(says("first")) as script, client_of(script.url, tmp_path, max_requests=1) as client:
        assert client.ask(QUESTION, TOPICS, SCOPE) == client.ask(QUESTION, TOPICS, SCOPE)
        assert client.cached == 1
    with client_of("http://127.0.0.1:9/v1", tmp_path) as client:
        assert client.ask(QUESTION, TOPICS, SCOPE).text == "first"
        assert client.budget.requests == 0
    with serving(says("second")) as script, client_of(script.url, tmp_path) as client:
        assert client.ask(question("other words"), TOPICS, SCOPE).text == "second"
        assert client.ask(QUESTION, PLACEMENTS, SCOPE).text == "second"


def test_a_failure_is_not_kept(tmp_path: Path) -> None:
    with serving(fails(401), GOOD) as script:
        with client_of(script.url, tmp_path) as client, pytest.raises(NoAnswer):
            client.ask(QUESTION, TOPICS, SCOPE)
        with client_of(script.url, tmp_path) as client:
            assert client.ask(QUESTION, TOPICS, SCOPE).text


def test_without_an_endpoint_the_cache_alone_answers(tmp_path: Path) -> None:
    with serving(GOOD) as script, client_of(script.url, tmp_path) as client:
        client.ask(QUESTION, TOPICS, SCOPE)
    with closing(AnswerCache(tmp_path / "answers.sqlite")) as answers:
        alone = ModelClient(None, answers, ExtractorSettings(base_url="http://x", model="m"), SleptTime().time())
        assert alone.ask(QUESTION, TOPICS, SCOPE).text
        with pytest.raises(NoAnswer, match=PLANNED):
            alone.ask(question("new"), TOPICS, SCOPE)


# Secrets


def test_the_key_stands_neither_in_an_error_nor_in_the_cache(tmp_path: Path) -> None:
    denied = fails(401, f"Incorrect API key provided: {KEY}")
    with serving(denied, GOOD) as script, client_of(script.url, tmp_path, api_key_env="SOME_KEY") as client:
        with pytest.raises(NoAnswer) as refused:
            client.ask(QUESTION, TOPICS, SCOPE)
        assert "Incorrect API key provided: …" in str(refused.value)
    with serving(GOOD) as script, client_of(script.url, tmp_path, api_key_env="SOME_KEY") as client:
        client.ask(QUESTION, TOPICS, SCOPE)
    with closing(sqlite3.connect(tmp_path / "answers.sqlite")) as database:
        assert database.execute("SELECT count(*) FROM answers").fetchone() == (1,)
    assert all(KEY.encode() not in file.read_bytes() for file in tmp_path.iterdir())
