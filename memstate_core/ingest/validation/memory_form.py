"""The forms of `memory` in a record: each writes a topic of its own kind, and the record is validated as one about it.

Invariant: no other record can write such a topic, so that neither text that a model reads nor a title makes one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memstate_core.ingest.reasons import Reason, Rejection
from memstate_core.ingest.validation.timestamps import Clock
from memstate_core.ingest.validation.typed import without_nulls
from memstate_core.ingest.validation.values import EdgeRow, FieldRow, edge_row, field_row
from memstate_core.model.forms.form import Form
from memstate_core.model.forms.item import REFERENCE
from memstate_core.model.forms.registry import FORMS
from memstate_core.model.observation import Observation
from memstate_core.model.parts import EdgeTo, FieldValue

_OTHERS = ("topic_id", "topic_key", "topic_kind", "title", "summary", "placement", "fields", "edges")
_WHERE = "$.memory"
_BY_KIND: Mapping[str | None, type[Form]] = {form.topic_kind(): form for form in FORMS}
_BY_KEY = {form.key_of(""): form for form in FORMS}
_KEYS = tuple(_BY_KEY)
"""What the topic keys of forms begin with."""


def tidy_objects(content: dict[str, Any]) -> None:
    """Removes nulls inside the form and the details, which are equivalent to absent keys, and empty details."""
    for key in ("memory", "details"):
        if isinstance(given := content.get(key), dict):
            content[key] = without_nulls(given)
    if content.get("details") == {}:
        del content["details"]


def name_topic(row: Observation, content: dict[str, Any], clock: Clock, scope: str) -> None:
    """Makes a record with a form one about the topic of the form, and replaces the form's times by canonical ones.

    Raises:
        Rejection: bad_value, missing_content, bad_time or future_time, if the form is wrong or stands beside keys that
            describe a topic, or if a record without it names a topic that only forms write.
    """
    form = row.memory
    if form is None:
        _check_unreserved(row)
        return
    for name, open_end in form.times().items():
        if (time := clock.respell(name, content["memory"], _WHERE, open_end)) is not None:
            setattr(form, name, time)
    _check_form(form)
    if beside := [name for name in _OTHERS if getattr(row, name)]:
        expected = "one or the other, since the form names its own topic and fields"
        raise Rejection(Reason.BAD_VALUE, f"{_WHERE} stands beside {', '.join(beside)}, expected {expected}")
    row.topic_id, row.topic_key, row.topic_kind, row.title = form.home(scope)
    row.summary, row.session_id, row.text = form.topic_summary(), _session(form, row), row.text or form.said()


def form_fields(form: Form | None, clock: Clock, scope: str) -> tuple[FieldRow, ...]:
    """The fields that a form states in a scope; none without one."""
    given = () if form is None else form.fields_in(scope)
    return tuple(field_row(each, _times(each), _WHERE, clock) for each in given)


def form_edges(form: Form | None, clock: Clock, scope: str) -> tuple[EdgeRow, ...]:
    """The edges that a form states in a scope; none without one."""
    given = () if form is None else form.edges_in(scope)
    return tuple(edge_row(each, _times(each), _WHERE, clock) for each in given)


def _times(part: FieldValue | EdgeTo) -> dict[str, Any]:
    given = {name: getattr(part, name, None) for name in ("valid_from", "valid_until")}
    return {name: time for name, time in given.items() if time is not None}


def _session(form: Form, row: Observation) -> str | None:
    """The session of the record, which is the form's where it has one, so that erasing a session finds it."""
    own = form.own_session()
    if own is not None and row.session_id not in (None, own):
        expected = f"the same session as $.session_id ({row.session_id!r}), or no $.session_id"
        raise Rejection(Reason.BAD_VALUE, f"{_WHERE}.session_id is {own!r}, expected {expected}")
    return row.session_id if own is None else own


def _check_unreserved(row: Observation) -> None:
    _check_references(row)
    if (form := _BY_KIND.get(row.topic_kind)) is not None:
        raise Rejection(Reason.BAD_VALUE, f"$.topic_kind is {row.topic_kind}, expected {_alone_writes(form)}")
    if row.topic_key is not None and row.topic_key.startswith(_KEYS):
        prefix = next(prefix for prefix in _KEYS if row.topic_key.startswith(prefix))
        raise Rejection(
            Reason.BAD_VALUE, f"$.topic_key begins with {prefix}, expected {_alone_writes(_BY_KEY[prefix])}"
        )


def _alone_writes(form: type[Form]) -> str:
    return f'the form {{"memory": {{"type": "{form.form()}", …}}}}, which alone writes a {form.NOUN}'


def _check_references(row: Observation) -> None:
    """Refuses ids that only forms make: they lead to the topic of an observation."""
    _check_reference(row.topic_id, "topic_id")
    for at, field in enumerate(row.fields):
        _check_reference(field.ref_topic_id, "fields[{}].ref_topic_id", at)
    for at, edge in enumerate(row.edges):
        _check_reference(edge.to_topic_id, "edges[{}].to_topic_id", at)


def _check_reference(topic_id: object, name: str, at: int = 0) -> None:
    if isinstance(topic_id, str) and topic_id.startswith(REFERENCE):
        raise Rejection(Reason.BAD_VALUE, f"$.{name.format(at)} begins with {REFERENCE}, expected the id of a topic")


def _check_form(form: Form) -> None:
    for fault in form.faults():
        reason = Reason.MISSING_CONTENT if fault.missing else Reason.BAD_VALUE
        raise Rejection(reason, f"{_WHERE}.{fault.name} {fault.found}, expected {fault.expected}")
