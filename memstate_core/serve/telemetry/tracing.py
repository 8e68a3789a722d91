"""OpenTelemetry spans; no-ops until an SDK is configured, and without the package.

Attributes are counts, routes, snapshot names and exception types: never a question, a text, a scope, a topic id, a key,
or an error message, which may contain one of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from memstate_core import __version__

try:
    from opentelemetry import trace
    from opentelemetry.context import Context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ImportError:  # the extra `serve` is not installed
    trace = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from opentelemetry.trace import SpanKind

__all__ = ["parent_of", "span", "started", "trace"]

Value = str | int | float | bool
SetAttributes = Callable[..., None]
"""Sets attributes of a span, named without the prefix `memstate.`."""


def _nothing(**_: Value) -> None:
    pass


@contextmanager
def span(
    name: str, *, root: bool = False, carrier: Mapping[str, object] | None = None, **attributes: Value
) -> Iterator[SetAttributes]:
    """A span around a block, as a child of the current span.

    Args:
        name: the operation, such as `memstate.query`.
        root: start a new trace, such as for the work of a background thread.
        carrier: where a caller may have put the trace to continue (W3C Trace Context).
        attributes: attributes known at the start.

    Yields:
        A function that sets further attributes.
    """
    if trace is None:
        yield _nothing
        return
    with started(name, Context() if root else parent_of(carrier or {}), trace.SpanKind.INTERNAL) as current:
        set_attributes = _setter(current, "memstate.")
        set_attributes(**attributes)
        yield set_attributes


@contextmanager
def started(name: str, parent: Context | None, kind: SpanKind) -> Iterator[trace.Span]:
    """Starts a span as the current one; of an exception it records only the type."""
    tracer = trace.get_tracer("memstate", __version__)
    with tracer.start_as_current_span(
        name, parent, kind, record_exception=False, set_status_on_exception=False
    ) as current:
        try:
            yield current
        except Exception as error:
            current.set_attribute("error.type", type(error).__qualname__)
            current.set_status(trace.StatusCode.ERROR)
            raise


def parent_of(carrier: Mapping[str, object]) -> Context | None:
    """The trace context in a carrier; None, meaning the current context, if it has none."""
    headers = {name: str(carrier[name]) for name in ("traceparent", "tracestate") if name in carrier}
    return TraceContextTextMapPropagator().extract(headers) if "traceparent" in headers else None


def _setter(current: trace.Span, prefix: str) -> SetAttributes:
    def set_attributes(**attributes: Value) -> None:
        for name, value in attributes.items():
            current.set_attribute(prefix + name, value)

    return set_attributes
