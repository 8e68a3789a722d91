"""`/metrics`: read by the parser of Prometheus; authorisation; no private data in labels."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from memstate_core.serve.options import Options
from memstate_core.state.current import move_current
from memstate_core.state.snapshots import MANIFEST
from tests.core.serve.conftest import Client, Publish, harbour, served
from tests.core.serve.snapshots.test_swap import wait_for

pytestmark = pytest.mark.slow

Labels = frozenset[tuple[str, str]]
PRIVATE = "where-is-the-treasure"


def scraped(client: Client, **headers: str) -> dict[tuple[str, Labels], float]:
    answer = client.get("/metrics", **headers)
    assert answer.status == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=")
    families = text_string_to_metric_families(answer.content.decode())
    return {(s.name, frozenset(s.labels.items())): s.value for family in families for s in family.samples}


def value(client: Client, name: str, **labels: str) -> float:
    return scraped(client).get((f"memstate_{name}", frozenset(labels.items())), 0.0)


@pytest.fixture
def recording(tmp_path: Path, publish: Publish) -> Iterator[tuple[Client, Path]]:
    store = publish(tmp_path / "home", harbour)
    with served(store, Options(poll_seconds=0.02, flush_seconds=0.05, max_age=3600.0)) as client:
        yield client.until_ready(), store.home.root


def test_requests_are_counted_by_route_method_and_status(recording: tuple[Client, Path]) -> None:
    client, _ = recording
    for _ in range(3):
        assert client.post("/v1/query", {"q": PRIVATE}).status == 200
    assert client.get(f"/v1/topics/{PRIVATE}").status == 404
    assert client.get(f"/{PRIVATE}").status == 404
    assert client("PROPFIND", "/v1/query").status == 405
    assert client.get("/v1/runs", Host="evil.example").status == 403
    assert value(client, "http_requests_total", route="/v1/query", method="POST", status="200") == 3
    assert value(client, "http_request_seconds_count", route="/v1/query") == 4
    assert value(client, "http_requests_total", route="/v1/topics/{topic_id:path}", method="GET", status="404") == 1
    assert value(client, "http_requests_total", route="none", method="GET", status="404") == 1
    assert value(client, "http_requests_total", route="none", method="GET", status="403") == 1
    assert value(client, "http_requests_running") == 1
    response = client.get("/metrics").content.decode()
    assert not [word for word in (PRIVATE, "PROPFIND", "evil", "user:a", "yard") if word in response]


def test_the_state_of_the_server_is_exported(recording: tuple[Client, Path], publish: Publish) -> None:
    client, home = recording
    assert (
        value(client, "ready") == value(client, "snapshot_number", shard="s0") == value(client, "snapshots_open") == 1
    )
    assert 0 <= value(client, "snapshot_age_seconds") < 300
    assert value(client, "snapshot_stale") == 0
    assert value(client, "last_run_age_seconds") > 0
    client.post("/v1/ingest", [{"text": "One."}, {"text": "Two."}])
    assert (value(client, "observations_accepted_total"), value(client, "inbox_files")) == (2, 1)
    found = client.post("/v1/query", {"q": "the ferry yard"}).document["candidates"]
    wait_for(lambda: value(client, "uses_flushed_total") == len(found) > 0)
    assert (value(client, "uses_noted_total"), value(client, "uses_dropped_total")) == (len(found), 0)
    publish(home, harbour, 2)
    wait_for(lambda: value(client, "snapshot_number", shard="s0") == 2)
    assert (value(client, "snapshot_swaps_total"), value(client, "snapshot_swaps_failed_total")) == (2, 0)
    assert ("process_resident_memory_bytes", frozenset()) in scraped(client)


def test_a_failed_swap_is_counted_once_and_reported_by_readiness(
    recording: tuple[Client, Path], publish: Publish
) -> None:
    client, home = recording
    store = publish(home, harbour, 2)
    wait_for(lambda: client.get("/readyz").document["snapshot"] == "s0/2")
    move_current(store.home, "s0", 1)
    wait_for(lambda: client.get("/readyz").document["snapshot"] == "s0/1")
    manifest = store.home.snapshots("s0") / "2" / MANIFEST
    sound = manifest.read_bytes()
    manifest.write_text("{")
    move_current(store.home, "s0", 2)
    wait_for(lambda: value(client, "snapshot_swaps_failed_total") == 1)
    response = client.get("/readyz").document
    assert (response["snapshot"], response["refused_snapshot"]["snapshot"]) == ("s0/1", "s0/2")
    assert "s0/2 is damaged" in response["refused_snapshot"]["detail"]
    manifest.write_bytes(sound)
    wait_for(lambda: client.get("/readyz").document["refused_snapshot"] is None)
    assert value(client, "snapshot_swaps_failed_total") == 1


def test_accesses_beyond_the_limit_are_counted_as_dropped(tmp_path: Path, publish: Publish) -> None:
    store = publish(tmp_path / "home", harbour)
    with served(store, Options(flush_seconds=3600, accesses_limit=1)) as client:
        client.until_ready()
        found = len(client.post("/v1/query", {"q": "the ferry yard"}).document["candidates"])
        assert found > 1
        assert (value(client, "uses_noted_total"), value(client, "uses_dropped_total")) == (found, found - 1)


def test_a_server_without_a_snapshot_is_not_ready(tmp_path: Path, publish: Publish) -> None:
    store = publish(tmp_path / "home", harbour)
    (store.home.snapshots("s0") / "CURRENT").unlink()
    with served(store, Options()) as client:
        assert value(client, "ready") == 0
        assert not [name for name, _ in scraped(client) if name == "memstate_snapshot_age_seconds"]


def test_metrics_need_a_key(tmp_path: Path, publish: Publish) -> None:
    with served(publish(tmp_path / "home", harbour), Options(api_key="k")) as client:
        assert client.get("/metrics").status == 401
        assert value_of_ready(client) in (0, 1)


def value_of_ready(client: Client) -> float:
    return scraped(client, X_API_Key="k")["memstate_ready", frozenset()]
