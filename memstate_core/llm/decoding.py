"""From the text of an answer to the objects in it, tolerant of what small models put around them.

Code fences, words before and after, thoughts in tags and a list without its object are all read. Of an answer
that breaks off, the objects that are whole are kept; the last, torn one never is. Neither is an object nested
deeper than any record may be.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from memstate_core.ingest.validation.decode import MAX_DEPTH, deeper_than

_THOUGHTS = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)
_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[\s,]*")


class Decoded(NamedTuple):
    """The objects of an answer, and whether the answer was whole; a malformed one is not, and has none."""

    objects: list[Any]
    whole: bool


def decode(text: str, items: str) -> Decoded:
    """Reads an answer.

    Args:
        text: what the model wrote.
        items: the key of the list that is asked for.
    """
    text = _THOUGHTS.sub("", text)
    for start in _starts(text, items):
        found = _listed(_value(text, start), items)
        if found is not None:
            return Decoded(_shallow(found), True)
    return Decoded(_shallow(_salvaged(text, items)), False)


def _starts(text: str, items: str) -> list[int]:
    """Where an answer may begin: at an object with the list, else at the first brace or bracket."""
    places = (re.search(rf'\{{\s*"{items}"', text), re.search(r"[{\[]", text))
    return [place.start() for place in places if place]


def _value(text: str, start: int) -> Any:
    try:
        return _DECODER.raw_decode(text, start)[0]
    except (ValueError, RecursionError):
        return None


def _listed(value: Any, items: str) -> list[Any] | None:
    if isinstance(value, dict):
        value = value.get(items)
    return value if isinstance(value, list) else None


def _shallow(found: list[Any]) -> list[Any]:
    return [one for one in found if not deeper_than(one, MAX_DEPTH)]


def _salvaged(text: str, items: str) -> list[Any]:
    """The whole objects of a list that was never closed."""
    opening = re.search(rf'"{items}"\s*:\s*\[', text)
    position = opening.end() if opening else len(text)
    found: list[Any] = []
    while True:
        position = _SPACE.match(text, position).end()  # type: ignore[union-attr]
        try:
            item, position = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            return found
        found.append(item)
