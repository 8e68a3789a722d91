"""The form `memory` of a record: it writes a core block, and the record is validated as one about that topic.

Invariant: no other record can write a core block, so that neither text that a model reads nor a title makes one.
"""

from __future__ import annotations

from typing import Any

from memstate_core.ingest.reasons import Reason, Rejection
from memstate_core.ingest.validation.timestamps import Clock
from memstate_core.ingest.validation.typed import without_nulls
from memstate_core.ingest.validation.values import FieldRow, field_row
from memstate_core.model.core_block import AUTHORITY, CONTENT, CORE_BLOCK, READ_ONLY, CoreBlock, core_key
from memstate_core.model.observation import FieldType, FieldValue, Observation

_OTHERS = ("topic_id", "topic_key", "topic_kind", "title", "summary", "placement", "fields", "edges")
_TYPES: dict[str, FieldType] = {CONTENT: "string", AUTHORITY: "int", READ_ONLY: "bool"}
_MOST_AUTHORITY = 1_000_000


def tidy_memory(content: dict[str, Any]) -> None:
    """Removes nulls inside the form, which are equivalent to absent keys."""
    if isinstance(form := content.get("memory"), dict):
        content["memory"] = without_nulls(form)


def name_block(row: Observation) -> None:
    """Makes a record with the form one about the topic of its block.

    Raises:
        Rejection: bad_value or missing_content, if the form is incomplete or stands beside keys that describe a
            topic, or if a record without it names a core block.
    """
    if row.memory is None:
        _check_unreserved(row)
        return
    _check_block(row.memory)
    if beside := [name for name in _OTHERS if getattr(row, name)]:
        expected = "one or the other, since the form names its own topic and fields"
        raise Rejection(Reason.BAD_VALUE, f"$.memory stands beside {', '.join(beside)}, expected {expected}")
    row.topic_key, row.topic_kind, row.title = core_key(row.memory.label), CORE_BLOCK, row.memory.label


def block_fields(block: CoreBlock | None, clock: Clock) -> tuple[FieldRow, ...]:
    """The fields that a block states; none without one."""
    given = [FieldValue(name=name, value=getattr(block, name, None), field_type=kind) for name, kind in _TYPES.items()]
    return tuple(field_row(field, {}, "$.memory", clock) for field in given if field.value is not None)


def _check_unreserved(row: Observation) -> None:
    expected = 'the form {"memory": {"type": "core_block", …}}, which alone writes core blocks'
    if row.topic_kind == CORE_BLOCK:
        raise Rejection(Reason.BAD_VALUE, f"$.topic_kind is {CORE_BLOCK}, expected {expected}")
    if row.topic_key is not None and row.topic_key.startswith(core_key("")):
        raise Rejection(Reason.BAD_VALUE, f"$.topic_key begins with {core_key('')}, expected {expected}")


def _check_block(block: CoreBlock) -> None:
    for name in ("label", "content"):
        if not getattr(block, name).strip():
            raise Rejection(Reason.MISSING_CONTENT, f"$.memory.{name} is blank, expected a text")
    if block.authority is not None and abs(block.authority) > _MOST_AUTHORITY:
        expected = f"a whole number from -{_MOST_AUTHORITY:,} to {_MOST_AUTHORITY:,}"
        raise Rejection(Reason.BAD_VALUE, f"$.memory.authority is {block.authority}, expected {expected}")
