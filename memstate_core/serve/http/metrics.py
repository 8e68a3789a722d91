"""Prometheus metrics: requests, and the state of the server at each scrape.

Each application has its own registry. Labels hold route templates, methods, status codes and shard names; never a
scope, an id, a question or a key, which are private and of unbounded cardinality.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memstate_core import __version__
from memstate_core.serve.service import Service
from memstate_core.serve.snapshots.readiness import age_of, is_stale
from memstate_core.serve.telemetry.counters import Count
from memstate_core.state.fetch_note import read_fetch_note
from memstate_core.state.home import Home

MEDIA_TYPE = CONTENT_TYPE_LATEST
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Latency buckets in seconds: a query takes milliseconds, the first one of a large scope over a second."""

_FAILED, _CLOSED = 500, 499
"""Status codes of requests without a response: an unhandled exception, or the client disconnected (as in nginx)."""

_METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
_COUNTS = {
    Count.OBSERVATIONS_ACCEPTED: "Observations that are durable in the inbox.",
    Count.ACCESSES_RECORDED: "Accesses of topics that were recorded.",
    Count.ACCESSES_DROPPED: "Accesses that were dropped because they could not be written.",
    Count.ACCESSES_FLUSHED: "Accesses that are on disk.",
    Count.SWAPS: "Snapshots swapped in, including the first.",
    Count.SWAPS_FAILED: "Snapshots named by CURRENT that could not be opened; each cause is counted once.",
}


class Metrics:
    """The metrics of one application."""

    def __init__(self, service: Service) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "memstate_http_requests",
            "Requests by route, method and status; the route is 'none' if no route matched.",
            ["route", "method", "status"],
            registry=self.registry,
        )
        self.seconds = Histogram(
            "memstate_http_request_seconds",
            "Request latency, to the last byte.",
            ["route"],
            buckets=BUCKETS,
            registry=self.registry,
        )
        self.running = Gauge(
            "memstate_http_requests_running",
            "Requests in progress.",
            registry=self.registry,
            multiprocess_mode="livesum",
        )
        if service.shared is not None:  # the values of all workers, those of dead ones included
            self.registry = CollectorRegistry()
            MultiProcessCollector(self.registry, str(service.shared.folder))  # type: ignore[no-untyped-call]
        else:
            ProcessCollector(registry=self.registry)
        self.registry.register(_State(service))

    def text(self) -> bytes:
        """All metrics in the Prometheus text format; with several workers those of all, without those of a process."""
        return generate_latest(self.registry)


class Measured:
    """ASGI middleware that counts and times requests."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes the request on and measures it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = _CLOSED
        began = time.perf_counter()

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        with self._metrics.running.track_inprogress():
            try:
                await self._app(scope, receive, sending)
            except Exception:
                status = status if status != _CLOSED else _FAILED
                raise
            finally:
                self._record(scope, status, time.perf_counter() - began)

    def _record(self, scope: Scope, status: int, seconds: float) -> None:
        route = route_of(scope)
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self._metrics.requests.labels(route, method, status).inc()
        self._metrics.seconds.labels(route).observe(seconds)


def route_of(scope: Scope) -> str:
    """The template of the route that matched a request; 'none' if none did."""
    return str(getattr(scope.get("route"), "path", "none"))


class _State(Collector):
    """The state and the counters of the server, read at each scrape."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def collect(self) -> Iterator[Metric]:
        """Yields the metric families."""
        yield from self._snapshot()
        for count, number in self._service.counters.read().items():
            yield CounterMetricFamily(f"memstate_{count}", _COUNTS[count], value=number)
        serving, home = self._service.serving, self._service.store.home
        yield GaugeMetricFamily("memstate_snapshots_open", "Snapshots that are open.", value=serving.open_snapshots)
        queued = sum(not path.name.startswith(".") and path.is_file() for path in home.inbox.glob("*"))
        yield GaugeMetricFamily("memstate_inbox_files", "Files queued in the inbox for the next run.", value=queued)
        yield from _fetch(home)
        build = GaugeMetricFamily("memstate_build_info", "The running version.", labels=["version"])
        build.add_metric([__version__], 1)
        yield build

    def _snapshot(self) -> Iterator[Metric]:
        serving = self._service.serving
        generation = serving.current
        yield GaugeMetricFamily("memstate_ready", "Whether questions are answered.", value=serving.is_ready)
        if generation is None:
            return
        now = datetime.now(UTC)
        numbers = GaugeMetricFamily("memstate_snapshot_number", "The served snapshot.", labels=["shard"])
        for reader in generation.readers:
            numbers.add_metric([reader.snapshot.manifest.shard], reader.snapshot.manifest.number)
        age = age_of(generation, now)
        stale = is_stale(age, self._service.options.max_age)
        run = (now - generation.newest.now).total_seconds()
        yield numbers
        yield GaugeMetricFamily("memstate_snapshot_age_seconds", "Since the served snapshot was written.", value=age)
        yield GaugeMetricFamily("memstate_snapshot_stale", "Whether it is older than --max-age.", value=stale)
        yield GaugeMetricFamily("memstate_last_run_age_seconds", "Since the logical time of its run.", value=run)


def _fetch(home: Home) -> Iterator[Metric]:
    """What was found in the inbox at the URL when the store last looked there; nothing if it never did."""
    note = read_fetch_note(home)
    if note is not None:
        waiting, failed = "Objects that waited at the URL after the last fetch.", "Whether the last fetch failed."
        yield GaugeMetricFamily("memstate_remote_inbox_objects", waiting, value=note.waiting)
        yield GaugeMetricFamily("memstate_fetch_failed", failed, value=note.problem is not None)
    if note is not None and note.at is not None:
        age = (datetime.now(UTC) - note.at).total_seconds()
        yield GaugeMetricFamily("memstate_fetch_age_seconds", "Since the last fetch that worked.", value=age)
