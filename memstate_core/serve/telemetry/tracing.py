"""Spans by the API of OpenTelemetry, which does nothing until somebody sets up its SDK; without it, nothing either.

Attributes are counts, routes, names of snapshots and kinds of errors: never a question, a text, a scope, an id of a
topic, a key, or the message of an error, which may name one of these.
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
except ImportError:  # whoever installs less than the extra `serve`
    trace = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from opentelemetry.trace import SpanKind

__all__ = ["parent_of", "span", "started", "trace"]

Value = str | int | float | bool
Tell = Callable[..., None]
"""Sets attributes of a span: keys are names without the prefix `memstate.`."""


def _nothing(**_: Value) -> None:
    pass


@contextmanager
def span(
    name: str, *, root: bool = False, carrier: Mapping[str, object] | None = None, **attributes: Value
) -> Iterator[Tell]:
    """A span around a block, as a child of the one around it.

    Args:
        name: what is done, such as `memstate.query`.
        root: it begins a trace of its own, such as work of a thread.
        carrier: where a caller may have put the trace to go on with, in the words of W3C.
        attributes: what is known before.

    Yields:
        What sets further attributes.
    """
    if trace is None:
        yield _nothing
        return
    with started(name, Context() if root else parent_of(carrier or {}), trace.SpanKind.INTERNAL) as current:
        tell = _teller(current, "memstate.")
        tell(**attributes)
        yield tell


@contextmanager
def started(name: str, parent: Context | None, kind: SpanKind) -> Iterator[trace.Span]:
    """A span that is the current one, and says of an error no more than its kind."""
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
    """The trace that somebody else began; None, for the one around, where the carrier names none."""
    told = {name: str(carrier[name]) for name in ("traceparent", "tracestate") if name in carrier}
    return TraceContextTextMapPropagator().extract(told) if "traceparent" in told else None


def _teller(current: trace.Span, prefix: str) -> Tell:
    def tell(**attributes: Value) -> None:
        for name, value in attributes.items():
            current.set_attribute(prefix + name, value)

    return tell
