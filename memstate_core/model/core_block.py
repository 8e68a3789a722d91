"""Core blocks: short texts that belong into every context pack of their scope, such as a persona or house rules.

A block is a topic of its own kind, keyed by its label, with the fields `content`, `authority` and `read_only`; its
history, scope, citations, undo and erasure are those of topics. Only a record that names it changes a block: no night
places turns in it, merges it, condenses it or archives it.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

CORE_BLOCK: Final = "memory:core_block"
"""The kind of the topics that are core blocks, which records can have in no other way than by the form below."""

CONTENT, AUTHORITY, READ_ONLY = "content", "authority", "read_only"
"""The fields of such a topic; its title is the label."""


class CoreBlock(Struct, kw_only=True, tag="core_block", tag_field="type"):
    """The form of a record that writes a core block.

    Attributes:
        label: its name within the scope.
        content: its whole text.
        authority: blocks with more of it come first. A block keeps what it has where this is None; at first it is 0.
        read_only: whether agents should leave the block as it is; kept alike, at first false.
    """

    label: str
    content: str
    authority: int | None = None
    read_only: bool | None = None


def core_key(label: str) -> str:
    """The topic key of the block with this label; no other record may use such a key."""
    return f"{CORE_BLOCK}:{label}"
