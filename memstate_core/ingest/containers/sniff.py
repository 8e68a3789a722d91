"""Format sniffing: the first JSON objects of a file, parsed from its first bytes alone.

The object in which the bytes end is closed at the cut, so that the keys of a conversation of many megabytes are found
in its first kilobytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import msgspec

from memstate_core.ingest.containers.json_array import array_rows
from memstate_core.ingest.raw_rows import BrokenContainer

HEAD_BYTES = 1 << 16
BOM = b"\xef\xbb\xbf"
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|["\[\]{},]', re.DOTALL)
_CLOSING = {b"{": b"}", b"[": b"]"}


def head_objects(head: bytes) -> list[dict[str, Any]]:
    """The objects that a file begins with: elements of an array, or one a line.

    Args:
        head: the first bytes of the file, up to HEAD_BYTES of them.
    """
    text = head.removeprefix(BOM).lstrip()
    if text.startswith(b"["):
        items = list(_elements(text))
    elif begins_pretty(text):
        items = [_decoded(closed(text))]
    else:
        *lines, last = text.split(b"\n")
        items = [*map(_decoded, lines), _decoded(closed(last))]
    return [item for item in items if isinstance(item, dict)]


def begins_pretty(text: bytes) -> bool:
    """Whether the text is one JSON object over many lines."""
    return text.partition(b"\n")[0].rstrip() == b"{" and b"\n" in text


def closed(text: bytes) -> bytes:
    """Truncated JSON without its incomplete last part, and with the missing closing brackets."""
    open_brackets: list[bytes] = []
    end = 0
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token == b'"':
            break
        if token in _CLOSING:
            open_brackets.append(token)
        elif token in (b"}", b"]"):
            if not open_brackets:
                break
            open_brackets.pop()
        elif token != b",":
            continue
        end = match.start() if token == b"," else match.end()
        if not open_brackets:
            break
    return text[:end] + b"".join(_CLOSING[bracket] for bracket in reversed(open_brackets))


def _elements(text: bytes) -> Iterator[Any]:
    """The complete elements of an array, or the truncated first one."""
    ended = 0
    try:
        for row in array_rows((text,), HEAD_BYTES):
            ended += 1
            yield _decoded(row.raw)
    except BrokenContainer:
        found = _decoded(closed(text)) if not ended else None
        yield from found if isinstance(found, list) else ()


def _decoded(text: bytes) -> Any:
    """The decoded text, leniently where it has invalid characters; None if it cannot be decoded."""
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):
        with suppress(ValueError, RecursionError):
            return json.loads(text.decode("utf-8", "replace"), strict=False)
    return None
