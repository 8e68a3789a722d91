"""Spans, as the real SDK collects them in memory: what they are, whose trace they continue, that they say no secret."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import anyio
import httpx2
import pytest
from mcp import Client as Tools
from mcp.client.streamable_http import streamable_http_client
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from memstate_core.serve.options import Options
from memstate_core.serve.telemetry.tracing import span
from tests.core.serve.conftest import Client, Publish, harbour, served
from tests.core.serve.snapshots.test_swap import wait_for

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PRIVATE = "where-is-the-treasure"


EXPORTER = InMemorySpanExporter()


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory, publish: Publish) -> Iterator[Client]:
    """A server in a process in which somebody has set up the SDK, as is done once and for all."""
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(EXPORTER))
    trace.set_tracer_provider(provider)
    with served(publish(tmp_path_factory.mktemp("traced") / "home", harbour), Options(api_key="k")) as client:
        client.until_ready()
        spans("memstate.snapshot.swap")
        yield client


@pytest.fixture(autouse=True)
def client(traced: Client) -> Client:
    EXPORTER.clear()
    return traced


def spans(name: str) -> dict[str, ReadableSpan]:
    """The spans since the last clear, by name, once the one of this name has ended."""
    wait_for(lambda: any(each.name == name for each in EXPORTER.get_finished_spans()))
    return {each.name: each for each in EXPORTER.get_finished_spans()}


def parent(each: ReadableSpan) -> str | None:
    return None if each.parent is None else trace.format_span_id(each.parent.span_id)


def own(each: ReadableSpan) -> str:
    assert each.context is not None
    return trace.format_span_id(each.context.span_id)


def test_a_query_is_a_tree_of_spans_in_the_trace_of_its_caller(client: Client) -> None:
    asked = {"q": PRIVATE, "scope": "user:a", "top_k": 3}
    assert client.post("/v1/query", asked, X_API_Key="k", Traceparent=f"00-{TRACE}-{PARENT}-01").status == 200
    found = spans("POST /v1/query")
    request, query = found["POST /v1/query"], found["memstate.query"]
    assert request.context is not None
    assert (trace.format_trace_id(request.context.trace_id), parent(request)) == (TRACE, PARENT)
    assert request.kind is trace.SpanKind.SERVER
    assert dict(request.attributes or {}) == {
        "http.request.method": "POST", "http.route": "/v1/query", "http.response.status_code": 200
    }  # fmt: skip
    assert parent(query) == own(request)
    assert dict(query.attributes or {}) == {
        "memstate.top_k": 3, "memstate.evidence_k": 10, "memstate.candidates": 2, "memstate.snapshot": "s0/1"
    }  # fmt: skip
    parts = [found[f"memstate.query.{part}"] for part in ("embed", "rank", "describe")]
    assert {parent(part) for part in parts} == {own(query)}
    assert [part.start_time for part in parts] == sorted(part.start_time or 0 for part in parts)


def test_ingest_is_a_span_and_none_holds_private_data(client: Client) -> None:
    said = {"text": PRIVATE, "scope": {"type": "user", "id": PRIVATE}}
    assert client.post("/v1/ingest", [said, said], X_API_Key="k").status == 202
    assert client.post("/v1/query", {"q": PRIVATE, "scope": f"user:{PRIVATE}"}, X_API_Key="k").status == 200
    assert client.post("/v1/ingest", {"title": PRIVATE, "fields": [{"name": 3}]}, X_API_Key="k").status == 422
    assert client.get(f"/v1/topics/{PRIVATE}", X_API_Key="k").status == 404
    assert client.post("/v1/query", {"q": "x", "topic_ids": [PRIVATE]}, X_API_Key="k").status == 404
    assert client.get("/v1/runs", X_API_Key=PRIVATE).status == 401
    wait_for(lambda: len([s for s in EXPORTER.get_finished_spans() if s.kind is trace.SpanKind.SERVER]) == 6)
    response = EXPORTER.get_finished_spans()
    assert [dict(s.attributes or {}) for s in response if s.name == "memstate.ingest"] == [
        {"memstate.observations": 2},
        {"memstate.observations": 1, "error.type": "ObservationsRefused"},
    ]
    failed = [s for s in response if s.name == "memstate.query" and s.status.status_code is trace.StatusCode.ERROR]
    assert [(s.attributes or {})["error.type"] for s in failed] == ["TopicNotFound"]
    assert not [s for s in response if PRIVATE in s.to_json() or s.events]


def test_a_tool_continues_the_trace_of_its_caller_and_holds_no_private_data(client: Client) -> None:
    """The client of the protocol puts the trace into the message; what it calls the message is its own business."""

    async def ask() -> None:
        http = httpx2.AsyncClient(headers={"X-API-Key": "k"}, timeout=60)
        async with http, Tools(streamable_http_client(f"{client.url}/mcp", http_client=http)) as tools:
            await tools.call_tool("memory_query", {"query": PRIVATE})
            await tools.call_tool("memory_topic", {"topic_id": PRIVATE})
            await tools.call_tool(PRIVATE, {})

    with trace.get_tracer("caller").start_as_current_span("caller"):
        anyio.run(ask)
    wait_for(lambda: sum(each.name == "memstate.tool" for each in EXPORTER.get_finished_spans()) == 3)
    response = EXPORTER.get_finished_spans()
    mine = [each for each in response if each.name.startswith("memstate") or each.kind is trace.SpanKind.SERVER]
    [caller] = [each for each in response if each.name == "caller"]
    tools = [each for each in mine if each.name == "memstate.tool"]
    assert [(each.attributes or {})["memstate.tool"] for each in tools] == ["memory_query", "memory_topic", "none"]
    assert caller.context is not None
    assert {each.context.trace_id for each in tools if each.context} == {caller.context.trace_id}
    [query] = [each for each in mine if each.name == "memstate.query"]
    assert parent(query) == own(tools[0])
    assert not [each for each in mine if PRIVATE in each.to_json() or each.events]


def test_a_swap_is_a_trace_of_its_own(tmp_path: Path, publish: Publish) -> None:
    with served(publish(tmp_path / "home", harbour), Options()) as client:
        client.until_ready()
        swap = spans("memstate.snapshot.swap")["memstate.snapshot.swap"]
    assert (parent(swap), dict(swap.attributes or {})) == (None, {"memstate.snapshot": "s0/1"})


def test_probes_and_metrics_leave_no_spans(client: Client) -> None:
    for path in ("/healthz", "/readyz", "/metrics"):
        assert client.get(path, X_API_Key="k").status == 200
    assert EXPORTER.get_finished_spans() == ()


WITHOUT = """
import sys, time
{hide}
from memstate_core.serve.telemetry.tracing import span, trace
assert (trace is None) == {none}
for _ in range(1000):
    with span("warm", top_k=1) as annotate:
        annotate(candidates=2)
began = time.process_time()
for _ in range(1000):
    with span("x", top_k=1) as annotate:
        annotate(candidates=2)
print(time.process_time() - began)
"""


@pytest.mark.parametrize("is_hidden", [False, True])
def test_without_the_sdk_or_the_package_a_span_costs_next_to_nothing(is_hidden: bool) -> None:
    """A thousand take less than 0.1 s of the processor: less than a hundredth of what a query takes, all five of it."""
    hide = 'sys.modules["opentelemetry"] = None' if is_hidden else ""
    script = WITHOUT.format(hide=hide, none=is_hidden)
    response = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert float(response.stdout) < 0.1


@pytest.mark.slow
def test_a_server_without_the_package_answers(tmp_path: Path, publish: Publish) -> None:
    store = publish(tmp_path / "home", harbour)
    script = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "from memstate_core.serve.auth.principal import OWNER\nfrom memstate_core.serve.service import Service\n"
        "from memstate_core.serve.options import Options\nfrom memstate_core.run.store import open_store\n"
        "from memstate_core.retrieve.query import Question\nimport pathlib, time\n"
        f"service = Service(open_store(pathlib.Path({str(store.home.root)!r})), Options())\n"
        "service.serving.refresh()\n"
        "print(service.query(OWNER, Question('the yard'))['snapshot'])"
    )
    response = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert response.stdout.strip() == "s0/1", response.stderr


def test_attributes_can_be_set_later() -> None:
    began = time.monotonic()
    with span("memstate.test", first=1) as annotate:
        annotate(second=2.0, third="x")
    assert time.monotonic() - began < 5
    assert dict(spans("memstate.test")["memstate.test"].attributes or {}) == {
        "memstate.first": 1, "memstate.second": 2.0, "memstate.third": "x"
    }  # fmt: skip
