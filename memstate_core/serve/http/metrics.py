"""What Prometheus is told: requests as they pass, and the state of the server at each scrape.

Each application has a registry of its own. A label holds a route as it is written in the code, a method, a
status or the name of a shard; never a scope, an id, a question or a key, which are private and without number.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memstate_core import __version__
from memstate_core.serve.service import Service
from memstate_core.serve.snapshots.readiness import age_of, is_stale
from memstate_core.serve.telemetry.counters import Count

MEDIA_TYPE = CONTENT_TYPE_LATEST
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Bounds of latencies in seconds: a query takes some milliseconds, the first of a large scope more than one second."""

_FAILED, _CLOSED = 500, 499
"""The statuses of what got no answer: an error that nobody told, a caller who left before (as nginx counts them)."""

_METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
_COUNTS = {
    Count.OBSERVATIONS_ACCEPTED: "Observations that are safe in the inbox.",
    Count.USES_NOTED: "Uses of topics that were noted.",
    Count.USES_DROPPED: "Uses that were given up because the disk did not take them.",
    Count.USES_FLUSHED: "Uses that are on disk.",
    Count.SWAPS: "Times that a snapshot was swapped in, the first one too.",
    Count.SWAPS_FAILED: "Times that what CURRENT names could not be opened; each cause is counted once.",
}


class Metrics:
    """The metrics of one application."""

    def __init__(self, service: Service) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "memstate_http_requests",
            "Requests by route, method and status; what no route took has the route 'none'.",
            ["route", "method", "status"],
            registry=self.registry,
        )
        self.seconds = Histogram(
            "memstate_http_request_seconds",
            "How long requests took, to the last byte.",
            ["route"],
            buckets=BUCKETS,
            registry=self.registry,
        )
        self.running = Gauge("memstate_http_requests_running", "Requests that run now.", registry=self.registry)
        self.registry.register(_State(service))
        ProcessCollector(registry=self.registry)

    def text(self) -> bytes:
        """Everything, in the text format of Prometheus."""
        return generate_latest(self.registry)


class Measured:
    """An application around another one, which counts its requests and takes their time."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes everything on."""
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
                self._note(scope, status, time.perf_counter() - began)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = route_of(scope)
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self._metrics.requests.labels(route, method, status).inc()
        self._metrics.seconds.labels(route).observe(seconds)


def route_of(scope: Scope) -> str:
    """The route that took a request, as it is written in the code; 'none' for what none took."""
    return str(getattr(scope.get("route"), "path", "none"))


class _State(Collector):
    """What the server serves and has counted, read at each scrape."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def collect(self) -> Iterator[Metric]:
        """One family of metrics after the other."""
        yield from self._snapshot()
        for count, number in self._service.tally.read().items():
            yield CounterMetricFamily(f"memstate_{count}", _COUNTS[count], value=number)
        serving, home = self._service.serving, self._service.store.home
        yield GaugeMetricFamily("memstate_snapshots_open", "Snapshots that are open.", value=serving.open_snapshots)
        waiting = sum(not path.name.startswith(".") and path.is_file() for path in home.inbox.glob("*"))
        yield GaugeMetricFamily("memstate_inbox_files", "Files in the inbox that wait for the next run.", value=waiting)
        build = GaugeMetricFamily("memstate_build_info", "The version that runs.", labels=["version"])
        build.add_metric([__version__], 1)
        yield build

    def _snapshot(self) -> Iterator[Metric]:
        generation = self._service.serving.current
        ready = GaugeMetricFamily("memstate_ready", "Whether a snapshot is served.", value=generation is not None)
        yield ready
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
