"""Verification records: whether a memory item still holds, by check and item; history kept, the latest counts.

The records of a scope are fields of one topic, so that they crowd no topics out, and each refers to the topic of its
target. The night writes them like any other writer, hence a rebuild looks at no file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, ClassVar, Final, Literal

from msgspec import Meta

from memstate_core.model.forms.form import Fault, Form
from memstate_core.model.forms.item import ITEM_LIMIT, item_faults, named_item
from memstate_core.model.parts import FieldType, FieldValue

MESSAGE_LIMIT: Final = 10_000
Status = Literal["failed", "passed", "stale", "unknown", "warning"]


class Verification(Form, kw_only=True, tag="verification"):
    """Whether a memory item still holds, as somebody or the night found."""

    NOUN: ClassVar[str] = "verification record"
    STATED: ClassVar[Mapping[str, FieldType]] = MappingProxyType({})
    LIMITS: ClassVar[Mapping[str, int]] = MappingProxyType(
        {"target": ITEM_LIMIT, "target_kind": 256, "check": 64, "message": MESSAGE_LIMIT}
    )
    TIMES: ClassVar[Mapping[str, bool]] = MappingProxyType({"checked_at": False})
    SPARED: ClassVar[bool] = True

    target: Annotated[str, Meta(description="the item that was verified, such as `observation:crm/42`")]
    status: Annotated[Status, Meta(description="what was found")]
    message: Annotated[str | None, Meta(description="why, in a sentence")] = None
    check: Annotated[
        str | None,
        Meta(description="what was checked; the latest record of each check of an item counts; if absent `given`"),
    ] = None
    checked_at: Annotated[str | None, Meta(description="ISO 8601 time of the check; if absent `observed_at`")] = None
    target_kind: Annotated[str | None, Meta(description="kind of the topic, where `target` is a title")] = None

    def natural_key(self) -> str:
        """All records of a scope share a topic."""
        return "records"

    def topic_title(self) -> str:
        """What the topic is called."""
        return "Verification records"

    def fields_in(self, scope: str) -> Sequence[FieldValue]:
        """The record as the value of a field of its own."""
        item = named_item(self.target, self.target_kind)
        check = self.check or GIVEN
        value = {"check": check, "target": self.target, "status": self.status, "message": self.message or ""}
        return [
            FieldValue(
                name=record_name(check, self.target), value=value, field_type="json", valid_from=self.checked_at,
                ref_topic_id=item.topic_id(scope),
            )
        ]  # fmt: skip

    def faults(self) -> Iterator[Fault]:
        """A target that is no item."""
        yield from item_faults("target", self.target, kind=("target_kind", self.target_kind))


GIVEN: Final = "given"
"""The check of a record that names none."""

VERIFICATION: Final = Verification.topic_kind()
"""The kind of the topics with the records of a scope."""


def record_name(check: str, target: str) -> str:
    """The name of the field with the records of a check of an item."""
    return f"{check} {target}"
