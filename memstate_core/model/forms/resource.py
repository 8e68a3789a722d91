"""Workspace resources: documents, files, notes and links that an agent works with, by URI, as a tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, ClassVar, Final, Literal

from msgspec import Meta

from memstate_core.model.forms.form import Fault, Form
from memstate_core.model.parts import FieldType, FieldValue

URI, KIND, CONTENT, PARENT = "uri", "kind", "content", "parent_uri"
"""The fields of such a topic; its title is the title, its summary the beginning of the content."""

OTHER: Final = "other"
"""The kind of a resource that never stated one."""

_BEGINNING = 400
_KEPT = "if absent it stays as it was"


class Resource(Form, kw_only=True, tag="resource"):
    """A document, file, note or link, by its URI within the scope."""

    NOUN: ClassVar[str] = "workspace resource"
    STATED: ClassVar[Mapping[str, FieldType]] = MappingProxyType(
        {URI: "string", KIND: "string", CONTENT: "string", PARENT: "string"}
    )
    LIMITS: ClassVar[Mapping[str, int]] = MappingProxyType(
        {URI: 1_000, "title": 2_000, CONTENT: 500_000, PARENT: 1_000}
    )

    uri: Annotated[str, Meta(description="its address within the scope, by which later records replace it")]
    title: Annotated[str, Meta(description="its title")]
    kind: Annotated[
        Literal["doc", "file", "note", "url", "other"] | None,
        Meta(description=f"what it is; {_KEPT}, at first other"),
    ] = None
    content: Annotated[str | None, Meta(description=f"its whole text; {_KEPT}")] = None
    parent_uri: Annotated[
        str | None, Meta(description=f"the URI of the resource that it belongs to; {_KEPT}, empty makes it a root")
    ] = None

    def natural_key(self) -> str:
        """The URI."""
        return self.uri

    def topic_title(self) -> str:
        """The title."""
        return self.title

    def topic_summary(self) -> str | None:
        """The beginning of the content, on one line."""
        return None if self.content is None else " ".join(self.content[:_BEGINNING].split()) or None

    def stated_fields(self) -> Sequence[FieldValue]:
        """The fields; an empty parent clears that field."""
        stated = super().stated_fields()
        for field in stated:
            if field.name == PARENT and not field.value.strip():
                field.value = None
        return stated

    def faults(self) -> Iterator[Fault]:
        """A blank URI or title, or a resource that is its own parent."""
        yield from self.blank(URI, "title")
        if self.parent_uri == self.uri:
            yield Fault(PARENT, "is its own URI", "the URI of another resource, or an empty text for none")
