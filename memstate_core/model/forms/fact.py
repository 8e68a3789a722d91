"""Semantic facts given as such: a field of the subject's topic, or a typed edge where the object is a topic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from memstate_core.model.forms.form import Fault, Form, Home
from memstate_core.model.forms.item import ITEM_LIMIT, KEY, OBSERVATION, TITLE, TOPIC, item_faults, named_item
from memstate_core.model.moments import parse_moment
from memstate_core.model.parts import EdgeTo, FieldType, FieldValue

_SUBJECTS = (TOPIC, KEY, TITLE, OBSERVATION)
_TYPES: Mapping[type, FieldType] = MappingProxyType(
    {bool: "bool", int: "int", float: "float", list: "list", dict: "json"}
)


class StatedFact(Form, kw_only=True, tag="fact"):
    """A subject, a predicate and an object, with the confidence in them and the time for which they hold."""

    NOUN: ClassVar[str] = "semantic fact"
    STATED: ClassVar[Mapping[str, FieldType]] = MappingProxyType({})
    LIMITS: ClassVar[Mapping[str, int]] = MappingProxyType({
        "subject": ITEM_LIMIT, "subject_kind": 256, "predicate": 256, "object_item": ITEM_LIMIT, "object_kind": 256,
        "sources": 1_000, "sources[]": 1_024,
    })  # fmt: skip
    TIMES: ClassVar[Mapping[str, bool]] = MappingProxyType({"valid_from": False, "valid_until": True})

    subject: Annotated[str, Meta(description="the topic that it is about, such as `title:Acme`")]
    predicate: Annotated[str, Meta(description="what is said about it: the name of a field, or a kind of edge")]
    object: Annotated[Any, Meta(description="the value, which becomes that of the field")] = None
    object_item: Annotated[str | None, Meta(description="a topic in place of a value; the fact is an edge to it")] = (
        None
    )
    subject_kind: Annotated[str | None, Meta(description="kind of the topic, where `subject` is a title")] = None
    object_kind: Annotated[str | None, Meta(description="kind of the topic, where `object_item` is a title")] = None
    confidence: Annotated[float | None, Meta(description="from 0 to 1, of a value")] = None
    valid_from: Annotated[str | None, Meta(description="ISO 8601 time when it became true")] = None
    valid_until: Annotated[
        str | None,
        Meta(description="ISO 8601 time when it ends; that of a value has passed, and needs `valid_from` beside it"),
    ] = None
    sources: Annotated[list[str] | None, Meta(description="ids of the observations that it rests on")] = None

    def times(self) -> Mapping[str, bool]:
        """The end of a value has passed, since it ends with the next revision; that of an edge may lie ahead."""
        return {"valid_from": False, "valid_until": self.object_item is not None}

    def home(self, scope: str) -> Home:
        """The topic of the subject."""
        return named_item(self.subject, self.subject_kind).home(scope)

    def said(self) -> str | None:
        """The fact, where an edge says it."""
        return None if self.object_item is None else f"{self.subject} {self.predicate} {self.object_item}"

    def fields_in(self, scope: str) -> Sequence[FieldValue]:  # noqa: ARG002
        """The value, and its end as a value of null."""
        if self.object_item is not None:
            return ()
        kind = _TYPES.get(type(self.object), "string")
        stated = FieldValue(
            name=self.predicate, value=self.object, field_type=kind, confidence=self.confidence,
            valid_from=self.valid_from, why_changed=self._why(),
        )  # fmt: skip
        if self.valid_until is None:
            return [stated]
        return [stated, FieldValue(name=self.predicate, value=None, field_type=kind, valid_from=self.valid_until)]

    def edges_in(self, scope: str) -> Sequence[EdgeTo]:
        """The edge to the object, where that is a topic."""
        if self.object_item is None:
            return ()
        item = named_item(self.object_item, self.object_kind)
        return [
            EdgeTo(
                kind=self.predicate, to_topic_id=item.topic_id(scope), valid_from=self.valid_from,
                valid_until=self.valid_until,
            )
        ]  # fmt: skip

    def faults(self) -> Iterator[Fault]:
        """A name that is none, both or neither of the objects, a confidence or a window that cannot be."""
        yield from self.blank("predicate")
        yield from item_faults("subject", self.subject, _SUBJECTS, ("subject_kind", self.subject_kind))
        if self.object_item is None:
            yield from self._faults_of_value()
        else:
            yield from self._faults_of_item(self.object_item)
        if self.valid_from and self.valid_until and parse_moment(self.valid_until) <= parse_moment(self.valid_from):
            yield Fault("valid_until", f"is {self.valid_until}", f"a time after valid_from ({self.valid_from})")

    def _faults_of_value(self) -> Iterator[Fault]:
        if self.object is None or (isinstance(self.object, str) and not self.object.strip()):
            yield Fault("object", "is missing", "a value, or object_item with a topic", missing=True)
        if self.confidence is not None and not 0 <= self.confidence <= 1:
            yield Fault("confidence", f"is {self.confidence}", "a number between 0 and 1")
        if self.valid_until is not None and self.valid_from is None:
            yield Fault("valid_from", "is missing", "when the value began, beside valid_until", missing=True)

    def _faults_of_item(self, item: str) -> Iterator[Fault]:
        yield from item_faults("object_item", item, _SUBJECTS, ("object_kind", self.object_kind))
        if self.object is not None:
            yield Fault("object", "stands beside object_item", "one of them")
        if self.confidence is not None:
            yield Fault("confidence", "stands beside object_item", "none, since a fact about two topics is an edge")

    def _why(self) -> str | None:
        return f"from {', '.join(self.sources)}" if self.sources else None
