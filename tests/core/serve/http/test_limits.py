"""How often and how long: rates of keys and addresses, deadlines, proxies, an orderly end."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstate_core.run.store import Store
from memstate_core.serve.auth import key_file
from memstate_core.serve.auth.keyring import MIN_UNGUESSABLE
from memstate_core.serve.http.deadline import Deadline
from memstate_core.serve.http.rate_limits import Buckets, Rate, network
from memstate_core.serve.options import Options
from memstate_core.serve.service import Service
from tests.core.serve.auth.test_keys import Clock, made
from tests.core.serve.conftest import served
from tests.core.serve.http.test_connections import connected

pytestmark = pytest.mark.slow

# Buckets


def test_a_bucket_gives_its_burst_and_then_its_rate() -> None:
    clock = Clock()
    buckets, rate = Buckets(clock), Rate(a_second=2, burst=3)
    assert [buckets.take("a", rate) for _ in range(4)] == [0, 0, 0, 0.5]
    clock.now += 0.25
    assert buckets.take("a", rate) == pytest.approx(0.25)
    assert buckets.wait("a", rate) == pytest.approx(0.25)
    clock.now += 0.25
    assert (buckets.wait("a", rate), buckets.take("a", rate)) == (0, 0)
    assert buckets.take("b", rate) == 0
    clock.now += 1e6
    assert [buckets.take("a", rate) > 0 for _ in range(4)] == [False, False, False, True]


@given(st.lists(st.floats(0, 3), max_size=60), st.floats(0.1, 10))
def test_no_more_is_taken_than_rate_and_burst_allow(pauses: list[float], a_second: float) -> None:
    clock, rate, taken = Clock(), Rate.of(a_second), 0
    buckets = Buckets(clock)
    for pause in pauses:
        clock.now += pause
        taken += not buckets.take("a", rate)
    assert taken <= rate.burst + a_second * clock.now + 1e-6


def test_buckets_are_held_in_bounded_memory() -> None:
    buckets, rate = Buckets(Clock(), held=3), Rate(1, 1)
    taken = [buckets.take(name, rate) == 0 for name in ("a", "b", "a", "c", "d", "a", "b")]
    assert taken == [True, True, False, True, True, False, True], "b was forgotten, a was not"


def test_a_caller_has_all_addresses_of_its_network() -> None:
    assert network("2001:db8:1:2:3::4") == network("2001:db8:1:2:5:6:7:8") == "2001:db8:1:2::"
    assert network("192.0.2.7") == "192.0.2.7"
    assert network("::ffff:192.0.2.7") != network("::ffff:192.0.2.8")
    assert network("") == ""


# Rates


def test_each_key_has_a_rate_of_its_own(keyed_store: Store) -> None:
    slow, fast = made("slow", 1, rate=0.5), made("fast", 2)
    for key, _ in (slow, fast):
        key_file.add(keyed_store.home.keys, key)
    with served(keyed_store, Options(record=False, rate_limit=0)) as client:
        client.until_ready()
        response = [client.get("/v1/topics", X_API_Key=slow.token) for _ in range(3)]
        assert [each.status for each in response] == [200, 429, 429]
        assert response[1].document["type"] == "urn:memstate:problem:too-many-requests"
        assert response[1].headers["retry-after"] == "2"
        assert "at most 0.5 a second" in response[1].document["detail"]
        assert {client.get("/v1/topics", X_API_Key=fast.token).status for _ in range(30)} == {200}
        assert client.get("/healthz").status == 200


def test_the_servers_limit_is_for_keys_without_a_rate(keyed_store: Store) -> None:
    with served(keyed_store, Options(record=False, rate_limit=1.5, api_key="of-the-owner")) as client:
        client.until_ready()
        response = [client.get("/v1/topics", X_API_Key="of-the-owner").status for _ in range(5)]
    assert response[:3] == [200, 200, 200]
    assert 429 in response


def test_too_many_wrong_keys_stop_guessing_but_no_good_key(keyed_store: Store) -> None:
    """What a person chose could be guessed; what was made with 256 random bits cannot."""
    key, token = made()
    key_file.add(keyed_store.home.keys, key)
    with served(keyed_store, Options(record=False, api_key="chosen")) as client:
        client.until_ready()
        assert client.get("/v1/topics", X_API_Key="chosen").status == 200
        response = [client.get("/v1/topics", X_API_Key=f"guess {number}") for number in range(25)]
        assert [each.status for each in response[:20]] == [401] * 20
        assert (response[-1].status, response[-1].document["type"]) == (429, "urn:memstate:problem:too-many-requests")
        assert client.get("/v1/topics", X_API_Key="chosen").status == 200, "guesses lock keys that begin like them"
        response = [client.get("/v1/topics", X_API_Key=f"chos guess {number}") for number in range(25)]
        assert response[-1].status == 429
        assert client.get("/v1/topics", X_API_Key="chosen").status == 429
        guesses = [f"{token[:-4]}{number:04}" for number in range(25)]
        assert [client.get("/v1/topics", X_API_Key=guess).status for guess in guesses][-1] == 429
        assert client.get("/v1/topics", X_API_Key=token).status == 200
        assert client.get("/v1/topics").status == 401
        assert client.get("/healthz", X_API_Key="wrong too").status in (200, 429)


def test_guesses_with_other_prefixes_are_limited_by_address(keyed_store: Store) -> None:
    with served(keyed_store, Options(record=False, api_key="chosen")) as client:
        client.until_ready()
        guesses = [client.get("/v1/topics", X_API_Key=f"{number:04} guess").status for number in range(200)]
        assert guesses[:100] == [401] * 100
        assert 429 in guesses
        assert client.get("/v1/topics", X_API_Key="chosen").status == 429


def test_no_guesses_lock_out_a_long_environment_key(keyed_store: Store) -> None:
    chosen = "a" * MIN_UNGUESSABLE
    with served(keyed_store, Options(record=False, api_key=chosen)) as client:
        client.until_ready()
        guesses = [client.get("/v1/topics", X_API_Key=f"{chosen}{number}").status for number in range(25)]
        assert guesses[-1] == 429
        assert client.get("/v1/topics", X_API_Key=chosen).status == 200


# Deadlines


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """A disk that blocks until it is released."""
    event = threading.Event()

    def held(*_: Any) -> dict[str, Any]:
        event.wait(30)
        return {"topics": [], "next_cursor": None}

    monkeypatch.setattr("memstate_core.serve.reading.topics_page", held)
    yield event
    event.set()


def test_a_request_that_takes_too_long_gets_an_error(keyed_store: Store, slow: threading.Event) -> None:
    with served(keyed_store, Options(record=False, request_seconds=0.3)) as client:
        client.until_ready()
        began = time.monotonic()
        response = client.get("/v1/topics")
        assert (response.status, response.document["type"]) == (503, "urn:memstate:problem:timeout")
        assert (response.headers["retry-after"], time.monotonic() - began < 5) == ("1", True)
        assert client.post("/v1/query", {"q": "the yard"}).status == 200
        slow.set()
        assert client.get("/v1/topics").status == 200


def test_what_still_waits_for_a_thread_is_not_begun(keyed_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    event, begun = threading.Event(), []

    def held(_: Service, who: object, limit: int) -> dict[str, Any]:
        begun.append((who, limit))
        event.wait(30)
        return {"runs": []}

    monkeypatch.setattr(Service, "runs", held)
    with served(keyed_store, Options(record=False, request_seconds=0.3, threads=1)) as client:
        client.until_ready()
        assert [client.get("/v1/runs").status for _ in range(3)] == [503] * 3
        event.set()
        assert client.get("/v1/runs").status == 200
    assert len(begun) == 2


def test_an_answer_that_has_begun_may_go_on() -> None:
    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await asyncio.sleep(0.2)
        await send({"type": "http.response.body", "body": b"late"})

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    guarded = Deadline(app, Options(request_seconds=0.05))
    asyncio.run(guarded({"type": "http", "state": {}}, receive, send))
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]


def test_a_caller_who_leaves_takes_the_work_along() -> None:
    ended: list[str] = []

    async def app(*_: Any) -> None:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    async def run() -> None:
        task = asyncio.ensure_future(Deadline(app, Options())({"type": "http", "state": {}}, app, app))  # type: ignore[arg-type]
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0.05)

    asyncio.run(run())
    assert ended == ["cancelled"]


@pytest.mark.parametrize(("proxies", "status"), [((), 429), (("127.0.0.1",), 401)])
def test_forwarded_addresses_are_believed_from_configured_proxies(
    keyed_store: Store, proxies: tuple[str, ...], status: int
) -> None:
    """Otherwise a client that guesses keys could name another address with every guess."""
    with served(keyed_store, Options(record=False, api_key="chosen", trusted_proxies=proxies)) as client:
        guesses = (client.get("/v1/topics", X_API_Key="wrong", X_Forwarded_For=f"192.0.2.{n}") for n in range(25))
        assert [guess.status for guess in guesses][-1] == status


# The end


def test_running_requests_are_answered_at_shutdown(
    keyed_store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "memstate.access")
    begun, response = threading.Event(), []

    def takes_its_time(_: Service, who: object, limit: int) -> dict[str, Any]:
        begun.set()
        time.sleep(1)
        return {"runs": [{"who": str(who), "limit": limit}]}

    monkeypatch.setattr(Service, "runs", takes_its_time)
    with served(keyed_store, Options(record=False)) as client:
        client.until_ready()
        asking = threading.Thread(target=lambda: response.append(client.get("/v1/runs?limit=7")))
        asking.start()
        assert begun.wait(10)
    asking.join()
    assert [(answer.status, answer.document["runs"][0]["limit"]) for answer in response] == [(200, 7)]
    with pytest.raises(OSError, match="refused"):
        connected(client)
