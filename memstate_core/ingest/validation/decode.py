"""Decoding of one row to a JSON object, or a refusal with the reason.

The fast path is one call of msgspec; only a row that failed is parsed again, to report what is wrong and where.
Invariant: a decoded row has no NaN, no infinity and no deep nesting, so later stages need not check.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

import msgspec

from memstate_core.ingest.reasons import Reason, Rejection

MAX_DEPTH = 100
"""Most nesting levels of a row; fixed, so that the result does not depend on the caller."""

JSON_NAMES = {
    dict: "an object", list: "an array", str: "a string", bool: "a boolean", int: "a number", float: "a number",
    type(None): "null",
}  # fmt: skip
_decode = msgspec.json.Decoder().decode


def decode_row(raw: bytes) -> dict[str, Any]:
    """The JSON object of a row.

    Raises:
        Rejection: not_utf8, not_a_number, too_deep, broken_json, or wrong_type if it is not an object.
    """
    try:
        content = _decode(raw)
    except (ValueError, RecursionError) as error:
        _explain(raw, error)
    if type(content) is not dict:
        found = JSON_NAMES[type(content)]
        raise Rejection(Reason.WRONG_TYPE, f'found {found}, expected an object, such as {{"text": "…"}}')
    if raw.count(b"[") + raw.count(b"{") > MAX_DEPTH and deeper_than(content, MAX_DEPTH):
        _refuse_depth()
    return content


def _explain(raw: bytes, error: Exception) -> NoReturn:
    if isinstance(error, RecursionError):
        _refuse_depth()
    try:
        raw.decode()
    except UnicodeDecodeError as wrong:
        detail = f"byte {wrong.start} is 0x{raw[wrong.start]:02x} ({wrong.reason}), expected UTF-8"
        raise Rejection(Reason.NOT_UTF8, detail) from None
    if isinstance(error, msgspec.ValidationError):
        detail = "found a number too large for a 64-bit float, expected one between -1.8e308 and 1.8e308"
        raise Rejection(Reason.NOT_A_NUMBER, detail) from None
    detail = _second_opinion(raw) or str(error)
    raise Rejection(Reason.BROKEN_JSON, f"{detail}; expected one JSON object") from None


def _second_opinion(raw: bytes) -> str | None:
    """The message of Python's parser, which recognises NaN and Infinity and gives the position."""
    try:
        json.loads(raw.decode(), parse_constant=_refuse_constant)
    except json.JSONDecodeError as wrong:
        return f"{wrong.msg} at character {wrong.pos}"
    except RecursionError:
        _refuse_depth()
    except ValueError:
        return None
    return "a string holds half of a surrogate pair (\\ud800 to \\udfff), which is not a character"


def _refuse_constant(word: str) -> NoReturn:
    detail = f"found {word}, which JSON does not know, expected a number or null"
    raise Rejection(Reason.NOT_A_NUMBER, detail)


def _refuse_depth() -> NoReturn:
    detail = f"found arrays or objects nested deeper than {MAX_DEPTH} levels, expected at most that"
    raise Rejection(Reason.TOO_DEEP, detail) from None


def deeper_than(content: object, levels: int) -> bool:
    """Whether arrays and objects are nested deeper than a number of levels."""
    containers: list[Any] = [content]
    for _ in range(levels):
        found = (item.values() if isinstance(item, dict) else item for item in containers)
        containers = [inner for items in found for inner in items if type(inner) is dict or type(inner) is list]
        if not containers:
            return False
    return True
