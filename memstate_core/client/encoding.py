"""Requests as bytes; what JSON and UTF-8 cannot say is refused before anything is sent.

The server would read null for a number that is not finite, and so clear the field that it was meant for.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

import msgspec

from memstate_core.model.errors import RequestInvalid

P = ParamSpec("P")
T = TypeVar("T")
_BYTES = (bytes, bytearray, memoryview)
"""What msgspec writes as base64, which nobody would read as the text that it was."""


def encoded(body: Any) -> bytes:
    """A body as JSON.

    Raises:
        RequestInvalid: it holds a number that is not finite, text that is not Unicode, or what JSON has no form for.
    """
    try:
        content = msgspec.json.encode(body)
        plain = msgspec.to_builtins(body, str_keys=True, builtin_types=_BYTES)
        json.dumps(plain, allow_nan=False, ensure_ascii=True)
    except UnicodeEncodeError as error:
        raise _not_unicode(error) from error
    except ValueError:
        raise _not_finite(plain) from None
    except (TypeError, msgspec.MsgspecError) as error:
        raise RequestInvalid(f"the request cannot be sent as JSON: {error}. Nothing was sent.") from error
    return content


def checked(build: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What a function makes of some arguments; text in them that is not Unicode is refused.

    Raises:
        RequestInvalid: an argument holds half of a surrogate pair.
    """
    try:
        return build(*args, **kwargs)
    except UnicodeEncodeError as error:
        raise _not_unicode(error) from error


def _not_unicode(error: UnicodeEncodeError) -> RequestInvalid:
    found, before = error.object[error.start], error.object[max(0, error.start - 20) : error.start]
    return RequestInvalid(
        f"found half of a surrogate pair, U+{ord(found):04X}, after {before!r}; expected text that UTF-8 can encode. "
        "Nothing was sent; replace it, for example with text.encode(errors='replace').decode()."
    )


def _not_finite(body: Any) -> RequestInvalid:
    where, number = next(_infinite(body, ""), ("the body", "a number"))
    return RequestInvalid(
        f"found {number} at {where}, expected a finite number: JSON has no form for it, and null would clear the "
        "field. Nothing was sent; leave the value out, or send it as text."
    )


def _infinite(value: Any, where: str) -> Iterator[tuple[str, float]]:
    if isinstance(value, float) and not math.isfinite(value):
        yield where, value
    elif isinstance(value, dict):
        for name, part in value.items():
            yield from _infinite(part, f"{where}.{name}".lstrip("."))
    elif isinstance(value, list | tuple):
        for place, part in enumerate(value):
            yield from _infinite(part, f"{where}[{place}]")
