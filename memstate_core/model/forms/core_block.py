"""Core blocks: short texts that belong into every context pack of their scope, such as a persona or house rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Annotated, ClassVar, Final

from msgspec import Meta

from memstate_core.model.forms.form import Fault, Form
from memstate_core.model.parts import FieldType

CONTENT, AUTHORITY, READ_ONLY = "content", "authority", "read_only"
"""The fields of such a topic; its title is the label."""

_MOST_AUTHORITY = 1_000_000


class CoreBlock(Form, kw_only=True, tag="core_block"):
    """A short text that belongs into every context pack of its scope."""

    NOUN: ClassVar[str] = "core block"
    STATED: ClassVar[Mapping[str, FieldType]] = MappingProxyType(
        {CONTENT: "string", AUTHORITY: "int", READ_ONLY: "bool"}
    )
    LIMITS: ClassVar[Mapping[str, int]] = MappingProxyType({"label": 256, CONTENT: 100_000})
    SPARED: ClassVar[bool] = True

    label: Annotated[str, Meta(description="its name, by which later records replace its content")]
    content: Annotated[str, Meta(description="its whole text")]
    authority: Annotated[
        int | None,
        Meta(description="blocks with more of it come first; if absent it stays as it was, at first 0"),
    ] = None
    read_only: Annotated[
        bool | None,
        Meta(description="whether agents should leave it as it is; if absent it stays as it was, at first false"),
    ] = None

    def natural_key(self) -> str:
        """The label."""
        return self.label

    def topic_title(self) -> str:
        """The label."""
        return self.label

    def faults(self) -> Iterator[Fault]:
        """A blank text, or an authority out of bounds."""
        yield from self.blank("label", CONTENT)
        if self.authority is not None and abs(self.authority) > _MOST_AUTHORITY:
            expected = f"a whole number from -{_MOST_AUTHORITY:,} to {_MOST_AUTHORITY:,}"
            yield Fault(AUTHORITY, f"is {self.authority}", expected)


CORE_BLOCK: Final = CoreBlock.topic_kind()
"""The kind of the topics that are core blocks."""
