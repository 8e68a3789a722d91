"""Temporal relations: how one memory item stands to another, and when. Each is a typed edge between their topics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, ClassVar, Final, Literal, get_args

from msgspec import Meta

from memstate_core.model.forms.form import Fault, Form, Home
from memstate_core.model.forms.item import ITEM_LIMIT, item_faults, named_item
from memstate_core.model.moments import iso, parse_moment
from memstate_core.model.parts import EdgeTo, FieldType

RelationKind = Literal["contradicts", "derives", "extends", "supersedes", "supports"]
RELATIONS: Final[tuple[str, ...]] = get_args(RelationKind)

_WHEN = "ISO 8601; a text that is no date counts as none, so that the relation is in force"


class Relation(Form, kw_only=True, tag="relation"):
    """How a memory item stands to another: it contradicts, derives from, extends, supersedes or supports it."""

    NOUN: ClassVar[str] = "temporal relation"
    STATED: ClassVar[Mapping[str, FieldType]] = MappingProxyType({})
    LIMITS: ClassVar[Mapping[str, int]] = MappingProxyType({
        "source": ITEM_LIMIT, "source_kind": 256, "target": ITEM_LIMIT, "target_kind": 256,
        "valid_from": 256, "valid_until": 256, "sources": 1_000, "sources[]": 1_024,
    })  # fmt: skip

    source: Annotated[str, Meta(description="the item that the relation starts from, such as `key:acme-renewal`")]
    relation: Annotated[RelationKind, Meta(description="what it says about the target")]
    target: Annotated[str, Meta(description="the item that the relation leads to")]
    source_kind: Annotated[str | None, Meta(description="kind of the topic, where `source` is the title of one")] = None
    target_kind: Annotated[str | None, Meta(description="kind of the topic, where `target` is the title of one")] = None
    valid_from: Annotated[str | None, Meta(description=f"when it began: {_WHEN}")] = None
    valid_until: Annotated[str | None, Meta(description=f"when it ends: {_WHEN}")] = None
    sources: Annotated[list[str] | None, Meta(description="ids of the observations that it rests on")] = None

    def home(self, scope: str) -> Home:
        """The topic of the source."""
        return named_item(self.source, self.source_kind).home(scope)

    def said(self) -> str:
        """The relation as a sentence."""
        return f"{self.source} {self.relation} {self.target}"

    def edges_in(self, scope: str) -> Sequence[EdgeTo]:
        """The relation as an edge to the target's topic."""
        target = named_item(self.target, self.target_kind)
        began, ended = (dated(text) for text in (self.valid_from, self.valid_until))
        return [EdgeTo(kind=self.relation, to_topic_id=target.topic_id(scope), valid_from=began, valid_until=ended)]

    def faults(self) -> Iterator[Fault]:
        """An item that is none, or one that is related to itself."""
        yield from item_faults("source", self.source, kind=("source_kind", self.source_kind))
        yield from item_faults("target", self.target, kind=("target_kind", self.target_kind))
        if (self.source, self.source_kind) == (self.target, self.target_kind):
            yield Fault("target", f"is {self.target!r} like the source", "another item")


def dated(text: str | None) -> str | None:
    """The canonical form of a date; None where it is none."""
    try:
        return None if text is None else iso(parse_moment(text))
    except (ValueError, OverflowError):
        return None
