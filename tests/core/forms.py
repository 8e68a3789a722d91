"""Observations with a form of `memory`, as validation makes them of a dump: one strategy for each form of the registry.

The values come from the types of a form's keys, so that a further form is drawn as soon as it is registered. What
a form refuses is not drawn.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import combinations
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from hypothesis import strategies as st

from memstate_core.ingest.reasons import Rejection
from memstate_core.ingest.validation.timestamps import Clock
from memstate_core.ingest.validation.validate import RECORD, Rules, validate
from memstate_core.ingest.validation.values import EdgeRow, FieldRow
from memstate_core.model.forms.core_block import CORE_BLOCK
from memstate_core.model.forms.form import Form, Key
from memstate_core.model.forms.registry import FORMS
from memstate_core.model.ledger_tables import EDGE_TO, FIELD_VALUE
from tests.core.reference import Observation

_CLOCK = Clock(datetime(2026, 3, 1, tzinfo=UTC), "a later clock")
_WORDS = ("acme", "Plan B")
"""Labels, sessions and addresses; also the keys and a title of other observations, which must not meet them."""
_ITEMS = (
    "topic:t-1", "key:acme", "title:Plan B", "title:Acme renewal", "block:acme", "session:acme", "resource:Plan B",
    "observation:o0", "observation:o1", "observation:o2", "observation:nobody",
)  # fmt: skip
_NAMED = ("source", "target", "subject", "object_item")
"""Keys that name an item."""
_KINDS = ("deal", "Deal ", CORE_BLOCK)
"""Kinds beside a title; validation refuses the last one."""
_TIMES = tuple(f"2026-01-0{number}T00:00:00Z" for number in range(1, 8))
_PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    str: st.sampled_from(_WORDS),
    int: st.integers(0, 2),
    float: st.sampled_from((0.5, 0.9)),
    bool: st.booleans(),
    Any: st.sampled_from(("Aya", 1, True, ["Aya"])),
}
_TAKEN = ("topic_id", "topic_key", "topic_kind", "title", "summary", "session_id")


def memories() -> st.SearchStrategy[dict[str, Any]]:
    """What `memory` of an observation holds, of any form."""
    return st.one_of([_of(form) for form in FORMS])


def formed(memory: dict[str, Any], scope: str, observed_at: datetime, name: str) -> Observation:
    """What validation takes out of a record with this form."""
    kind, _, owner = scope.partition(":")
    row = {"scope": {"type": kind, "id": owner}, "observation_id": name, "memory": memory}
    raw = json.dumps(row | {"observed_at": observed_at.isoformat()}).encode()
    record = dict(zip(RECORD, validate(raw, Rules(scope, _CLOCK)), strict=True))
    taken = {key: record[key] for key in _TAKEN}
    return taken | {"fields": list(map(_field, record["fields"])), "edges": list(map(_edge, record["edges"]))}


def sample(form: type[Form], mark: str) -> dict[str, Any]:
    """What `memory` of an observation holds without its type: every key that validation takes, texts with a mark."""
    keys = [key for key in form.keys() if key.name != "sources" and not key.name.endswith("_kind")]  # noqa: SIM118
    values = {key.name: _sampled(form, key, mark) for key in keys}
    found = _repaired({"type": form.form()} | values, [key.name for key in keys if not key.required])
    assert found, f"no sample of {form.form()} is accepted"
    return {name: value for name, value in found.items() if name != "type"}


def others(form: type[Form], given: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Another value for each key of a sample, which validation takes in its place."""
    second = sample(form, "second ")
    for key in form.keys():  # noqa: SIM118
        if key.name in given:
            words = [word for part in (key.type, *get_args(key.type)) for word in get_args(part)]
            values = [second[key.name], _TIMES[1], *words, 2, 0.9, False]
            yield key.name, next(v for v in values if v != given[key.name] and _accepts(form, given, key.name, v))


def _accepts(form: type[Form], given: dict[str, Any], name: str, value: Any) -> bool:
    return type(value) is type(given[name]) and _accepted({"type": form.form()} | given | {name: value})


def _sampled(form: type[Form], key: Key, mark: str) -> Any:
    if key.name in _NAMED:
        return f"key:{mark}{key.name}"
    if key.name in form.TIMES or key.name.startswith("valid_"):
        return _TIMES[0]
    kind = next((part for part in get_args(key.type) if part is not NoneType), None)
    kind = kind if get_origin(key.type) in (Union, UnionType) else key.type
    if get_origin(kind) is Literal:
        return get_args(kind)[0]
    text = f"{mark}{key.name}"
    return [text] if get_origin(kind) is list else {int: 1, float: 0.5, bool: True}.get(kind, text)


def _of(form: type[Form]) -> st.SearchStrategy[dict[str, Any]]:
    keys = [key for key in form.keys() if key.name != "sources"]  # noqa: SIM118, no mapping
    required = {key.name: _values(form, key) for key in keys if key.required}
    optional = {key.name: _values(form, key) for key in keys if not key.required}
    drawn = st.fixed_dictionaries({"type": st.just(form.form())} | required, optional=optional)
    return drawn.map(lambda memory: _repaired(memory, [name for name in optional if name in memory])).filter(bool)


def _repaired(memory: dict[str, Any], optional: list[str]) -> dict[str, Any]:
    """The form without as few optional keys as validation wants; empty if that does not help."""
    for count in range(len(optional) + 1):
        for absent in combinations(optional, count):
            kept = {name: value for name, value in memory.items() if name not in absent}
            if _accepted(kept):
                return kept
    return {}


def _accepted(memory: dict[str, Any]) -> bool:
    try:
        formed(memory, "user:aya", _CLOCK.latest - timedelta(days=1), "o")
    except Rejection:
        return False
    return True


def _values(form: type[Form], key: Key) -> st.SearchStrategy[Any]:
    if key.name in _NAMED:
        return st.sampled_from(_ITEMS)
    if key.name.endswith("_kind"):
        return st.sampled_from(_KINDS)
    if key.name in form.TIMES or key.name.startswith("valid_"):
        return st.sampled_from(_TIMES)
    return _of_type(key.type)


def _of_type(kind: Any) -> st.SearchStrategy[Any]:
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return st.one_of([_of_type(part) for part in parts if part is not NoneType])
    if origin is Literal:
        return st.sampled_from(parts)
    if origin is list:
        return st.lists(_of_type(parts[0]), max_size=2)
    return _PLAIN[kind]


def _field(row: FieldRow) -> dict[str, Any]:
    return _timed(dict(zip((each.name for each in FIELD_VALUE.fields), row, strict=True)))


def _edge(row: EdgeRow) -> dict[str, Any]:
    return _timed(dict(zip((each.name for each in EDGE_TO.fields), row, strict=True)))


def _timed(row: dict[str, Any]) -> dict[str, Any]:
    times = {name: row[name] for name in ("valid_from", "valid_until") if row.get(name) is not None}
    return row | {name: datetime.fromisoformat(text) for name, text in times.items()}
