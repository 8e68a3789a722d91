"""Conversion of a JSON object to a typed observation.

Empty content is removed on the way, so that a null, an empty list and an absent key are equivalent. Two nulls have a
meaning and stay: that of a value, and that of a reference to be cleared.
"""

from __future__ import annotations

import re
from typing import Any, Literal, NoReturn, get_args, get_origin

import msgspec

from memstate_core.ingest.reasons import Reason, Rejection
from memstate_core.model.forms.registry import FORMS
from memstate_core.model.observation import Kind, Observation, Placement, Provenance, ScopeType
from memstate_core.model.parts import FieldType

_WORDS: dict[str, tuple[str, ...]] = {
    "kind": get_args(Kind),
    "provenance": get_args(Provenance),
    "placement": get_args(Placement),
    "field_type": get_args(FieldType),
    "type": get_args(ScopeType),
}
_UNKNOWN_WORD = re.compile(r"Invalid enum value (?P<word>.*) - at `(?P<path>\S*?(?P<key>\w+))`", re.DOTALL)

_SHOWN = 100
_UNKNOWN_FORM = re.compile(r"Invalid value (?P<word>.*) - at `\$\.memory\.type`", re.DOTALL)


def without_nulls(item: dict[str, Any], keep: tuple[str, ...] = ()) -> dict[str, Any]:
    """The object without the keys whose value is null, except some."""
    if None not in item.values():
        return item
    return {key: value for key, value in item.items() if value is not None or key in keep}


def tidy_parts(content: dict[str, Any], key: str) -> None:
    """Removes an empty list, and nulls inside its objects where they are equivalent to an absent key."""
    parts = content[key]
    if parts == []:
        del content[key]
    elif isinstance(parts, list):
        content[key] = [
            without_nulls(part, ("value", "ref_topic_id")) if isinstance(part, dict) else part for part in parts
        ]


def observation_of(content: dict[str, Any]) -> Observation:
    """The object as an observation; unknown keys are ignored.

    Raises:
        Rejection: wrong_type, unknown_word or unknown_placement, with the path.
    """
    try:
        return msgspec.convert(content, Observation)
    except msgspec.ValidationError as error:
        _explain(str(error), content)


def _explain(message: str, content: dict[str, Any]) -> NoReturn:
    if form := _UNKNOWN_FORM.fullmatch(message):
        names = ", ".join(each.form() for each in FORMS)
        raise Rejection(
            Reason.UNKNOWN_WORD, f"$.memory.type is {form['word'][:100]}, expected one of {names}"
        ) from None
    word = _UNKNOWN_WORD.fullmatch(message)
    if word is None:
        raise Rejection(Reason.WRONG_TYPE, message[:1].lower() + message[1:] + _as_object(content)) from None
    reason = Reason.UNKNOWN_PLACEMENT if word["key"] == "placement" else Reason.UNKNOWN_WORD
    given = content["memory"]["type"] if word["path"].startswith("$.memory.") else None
    allowed = ", ".join(_WORDS[word["key"]] if given is None else _words_of_form(given, word["key"]))
    raise Rejection(reason, f"{word['path']} is {word['word'][:100]}, expected one of {allowed}") from None


def _as_object(content: dict[str, Any]) -> str:
    """How a scope that is written `TYPE:ID`, as in questions and at the command line, is written in an observation."""
    if not isinstance(text := content.get("scope"), str):
        return ""
    kind, _, name = text.partition(":")
    known = kind in _WORDS["type"] and name.strip()
    example = {"type": kind, "id": name[:_SHOWN]} if known else {"type": "user", "id": "aya"}
    return f'; write "scope": {msgspec.json.encode(example).decode()}'


def _words_of_form(form: str, key: str) -> list[str]:
    """The words that a key of a form may have."""
    kinds = [given.type for each in FORMS if each.form() == form for given in each.keys() if given.name == key]  # noqa: SIM118, no mapping
    choices = [choice for kind in kinds for choice in (kind, *get_args(kind)) if get_origin(choice) is Literal]
    return [word for choice in choices for word in get_args(choice)]
