"""How a form names another memory item: `prefix:name`, such as `key:acme-renewal`.

A name leads to a topic of the form's own scope. What is not known yet is found once it arrives.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from memstate_core.model.forms.form import RESERVED, Fault, Home

TOPIC, KEY, TITLE, OBSERVATION = "topic", "key", "title", "observation"
_FORMS: Final = {"block": "core_block", "session": "session_state", "resource": "resource"}
"""Prefixes of items that forms write, with the `type` of the form."""
PREFIXES: Final = (TOPIC, KEY, TITLE, *_FORMS, OBSERVATION)

ITEM_LIMIT = 1_100
"""The most characters of a name with its prefix."""

REFERENCE: Final = f"{RESERVED}ref:"
"""How ids begin that lead to the topic of an observation (`memstate_core.placement.references`)."""

_BY_NAME = "block:LABEL, session:ID or resource:URI"
SPELLING = "topic:ID, key:KEY, title:TITLE, block:LABEL, session:ID, resource:URI or observation:ID"


class Item(NamedTuple):
    """A memory item by its prefix and its name; `topic_kind` for titles of topics that have a kind."""

    prefix: str
    name: str
    topic_kind: str | None = None

    @property
    def text(self) -> str:
        """The item as it is written."""
        return f"{self.prefix}:{self.name}"

    @property
    def key(self) -> str | None:
        """The topic key of an item that is named by one."""
        if self.prefix in _FORMS:
            return f"{RESERVED}{_FORMS[self.prefix]}:{self.name}"
        return self.name if self.prefix == KEY else None

    @property
    def observation(self) -> str | None:
        """The id of an observation, where the item is one."""
        return self.name if self.prefix == OBSERVATION else None

    def home(self, scope: str) -> Home:
        """The item as a record names the topic that it is about."""
        if self.prefix == TITLE:
            return Home(title=self.name, topic_kind=self.topic_kind)
        if self.key is not None:
            form = _FORMS.get(self.prefix)
            return Home(topic_key=self.key, topic_kind=None if form is None else f"{RESERVED}{form}")
        return Home(topic_id=self.topic_id(scope))

    def topic_id(self, scope: str) -> str:
        """The id by which the item is found in a scope: of a topic, of a title, or a reference to an observation."""
        if self.prefix == TOPIC:
            return self.name
        if self.prefix == OBSERVATION:
            return f"{REFERENCE}{scope}:{OBSERVATION}:{self.name}"
        return _derived_id(self, scope)


def _derived_id(item: Item, scope: str) -> str:
    """The id that follows from a key, or from a title; the client, which only names items, loads no frames for it."""
    import polars as pl

    from memstate_core.model.ids import uuid_text
    from memstate_core.model.text import normalised

    if item.key is not None:
        return uuid_text("key", scope, item.key)
    kind, title = pl.select(normalised(pl.lit(pl.Series([item.topic_kind or "", item.name])))).to_series()
    return uuid_text("title", scope, kind, title)


def named_item(text: str, topic_kind: str | None = None) -> Item:
    """The item that a text names, which was checked (`item_faults`)."""
    found = item_of(text, topic_kind)
    assert found is not None
    return found


def item_of(text: str, topic_kind: str | None = None) -> Item | None:
    """The item that a text names; None if it is no such name."""
    prefix, _, name = text.partition(":")
    return Item(prefix, name, topic_kind) if prefix in PREFIXES and name.strip() else None


def item_faults(
    name: str, text: str, prefixes: tuple[str, ...] = PREFIXES, kind: tuple[str, str | None] = ("", None)
) -> Iterator[Fault]:
    """A fault of the key `name` if the text names no item, none with these prefixes, or a topic that only forms write.

    Args:
        name: the key of the form.
        text: its value.
        prefixes: those that it may have.
        kind: the key with the kind of the topic, and its value.
    """
    found = item_of(text)
    if found is None or found.prefix not in prefixes:
        expected = SPELLING if prefixes == PREFIXES else " or ".join(f"{prefix}:…" for prefix in prefixes)
        yield Fault(name, f"is {text!r}", f"an item: {expected}")
    elif found.prefix == KEY and found.name.startswith(RESERVED):
        yield Fault(name, f"is {text!r}", f"a key that does not begin with {RESERVED}, or {_BY_NAME}")
    elif found.prefix == TITLE and (kind[1] or "").startswith(RESERVED):
        yield Fault(kind[0], f"is {kind[1]!r}", f"a kind that does not begin with {RESERVED}, or {_BY_NAME} as {name}")
