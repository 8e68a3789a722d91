"""Decodes the objects in a model's answer, tolerant of what small models write around them.

Code fences, text before and after, thoughts in tags, and a list without its object are accepted. Of an answer that
is truncated or broken, the complete objects before that point are kept and the incomplete one is not, nor are objects
nested deeper than a record may be.

`pydantic_core.from_json(allow_partial=True)` was compared (`tests/core/llm/test_decoding.py`): it keeps the
incomplete object without saying so, and keeps fewer or none where the answer is broken rather than truncated.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from memstate_core.ingest.validation.decode import MAX_DEPTH, deeper_than

_THOUGHTS = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)
_DECODER = json.JSONDecoder()
_ITEM = re.compile(r"[^\s,]")


class Decoded(NamedTuple):
    """The objects of an answer, and whether the answer was complete; a malformed one is not, and has none."""

    objects: list[Any]
    whole: bool


def decode(text: str, items: str) -> Decoded:
    """Decodes an answer.

    Args:
        text: the answer.
        items: the key of the requested list.
    """
    text = _THOUGHTS.sub("", text)
    for start in _starts(text, items):
        found = _listed(_value(text, start), items)
        if found is not None:
            return Decoded(_shallow(found), True)
    return Decoded(_shallow(_salvaged(text, items)), False)


def _starts(text: str, items: str) -> list[int]:
    """Offsets at which the JSON may begin: an object with the list, else the first brace or bracket."""
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
    """The complete objects of a list that is not closed."""
    opening = re.search(rf'"{items}"\s*:\s*\[', text)
    position = opening.end() if opening else len(text)
    found: list[Any] = []
    while item := _ITEM.search(text, position):
        try:
            value, position = _DECODER.raw_decode(text, item.start())
        except (ValueError, RecursionError):
            break
        found.append(value)
    return found
