"""What a form is: how `memory` in an observation becomes a statement about a topic of its own kind.

A form names its topic by a natural key within the scope, and states ordinary fields and edges of it, so that histories,
citations, undo and erasure are those of topics. Nothing else can write such a topic, nor does any night place turns in
it, merge it or suggest duplicates of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, NamedTuple, get_args, get_origin

from msgspec import Meta, Struct
from msgspec.structs import fields as struct_fields

from memstate_core.model.parts import EdgeTo, FieldType, FieldValue

RESERVED = "memory:"
"""How the kinds of such topics begin."""


@dataclass(frozen=True)
class Fault:
    """Why a form is refused.

    Attributes:
        name: the key of the form that is wrong.
        found: what is there, as in `is blank`.
        expected: what belongs there.
        missing: whether content is missing, and not wrong.
    """

    name: str
    found: str
    expected: str
    missing: bool = False


class Home(NamedTuple):
    """The topic that a form says something about, as a record names one."""

    topic_id: str | None = None
    topic_key: str | None = None
    topic_kind: str | None = None
    title: str | None = None


class Key(NamedTuple):
    """A key of a form, for those who describe or offer it."""

    name: str
    type: Any
    required: bool
    description: str


class Form(Struct, kw_only=True, tag_field="type"):
    """The base of all forms. Each says in `Annotated[…, Meta(description=…)]` what its keys mean.

    Attributes:
        NOUN: what it writes, in words.
        STATED: its keys that become fields of the same name, with their types; a key that is absent states nothing.
        LIMITS: the most characters of each text or elements of each list; `name[]` for each text of a list.
        TIMES: its keys that hold times, and whether these may lie in the future.
        SPARED: whether its topics are never summarised, detached or archived.
    """

    NOUN: ClassVar[str]
    STATED: ClassVar[Mapping[str, FieldType]]
    LIMITS: ClassVar[Mapping[str, int]]
    TIMES: ClassVar[Mapping[str, bool]] = MappingProxyType({})
    SPARED: ClassVar[bool] = False

    @classmethod
    def form(cls) -> str:
        """The `type` by which a record names the form."""
        return str(cls.__struct_config__.tag)

    @classmethod
    def topic_kind(cls) -> str:
        """The kind of its topics."""
        return f"{RESERVED}{cls.form()}"

    @classmethod
    def key_of(cls, natural_key: str) -> str:
        """The topic key that belongs to a natural key."""
        return f"{cls.topic_kind()}:{natural_key}"

    @classmethod
    def keys(cls) -> list[Key]:
        """Its keys with their types and meanings, `type` aside."""
        found = []
        for field in struct_fields(cls):
            kind, meta = get_args(field.type) if get_origin(field.type) is Annotated else (field.type, Meta())
            found.append(Key(field.name, kind, field.required, meta.description or ""))
        return found

    def times(self) -> Mapping[str, bool]:
        """`TIMES`, where they depend on what the form holds."""
        return self.TIMES

    def home(self, scope: str) -> Home:  # noqa: ARG002
        """The topic that the record is about: one of the form's own kind, unless it says something about another."""
        return Home(None, self.key_of(self.natural_key()), self.topic_kind(), self.topic_title())

    def natural_key(self) -> str:
        """By what its topic is found within the scope."""
        raise NotImplementedError

    def topic_title(self) -> str | None:
        """The title of its topic; None keeps the title."""
        return None

    def topic_summary(self) -> str | None:
        """The summary of its topic; None keeps the summary."""
        return None

    def said(self) -> str | None:
        """What it says in words, as the text of a record that has none; None where its fields say it."""
        return None

    def own_session(self) -> str | None:
        """The session that the record belongs to, where the form decides it."""
        return None

    def stated_fields(self) -> Sequence[FieldValue]:
        """The fields that it states."""
        given = ((name, getattr(self, name), kind) for name, kind in self.STATED.items())
        return [FieldValue(name=name, value=value, field_type=kind) for name, value, kind in given if value is not None]

    def stated_edges(self) -> Sequence[EdgeTo]:
        """The edges that it states."""
        return ()

    def fields_in(self, scope: str) -> Sequence[FieldValue]:  # noqa: ARG002
        """The fields that it states in a scope, where they refer to items of it."""
        return self.stated_fields()

    def edges_in(self, scope: str) -> Sequence[EdgeTo]:  # noqa: ARG002
        """The edges that it states in a scope, where they lead to items of it."""
        return self.stated_edges()

    def faults(self) -> Iterator[Fault]:
        """What is wrong with it beside types, lengths and times."""
        yield from ()

    def blank(self, *names: str) -> Iterator[Fault]:
        """A fault for each of these texts that is blank."""
        for name in names:
            if not getattr(self, name).strip():
                yield Fault(name, "is blank", "a text", missing=True)
