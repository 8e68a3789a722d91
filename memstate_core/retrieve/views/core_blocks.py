"""The core blocks of some scopes, as they hold now or held at a moment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from memstate_core.model.forms.core_block import AUTHORITY, CONTENT, CORE_BLOCK, READ_ONLY
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.retrieve.views.form_topics import FormTopic, form_topics

Block = dict[str, Any]


def core_blocks(readers: Sequence[SnapshotReader], scopes: Iterable[str], as_of: datetime | None = None) -> list[Block]:
    """The core blocks of these scopes, those with more authority first, then by scope and label.

    Args:
        readers: the open snapshots of the store's shards.
        scopes: the scopes.
        as_of: a moment; the blocks as known then. None for the present.

    Returns:
        `topic_id`, `scope`, `label`, `content`, `authority`, `read_only`, `updated_at` (since when the content holds),
        `revision_id` and `evidence_ids` (of the content) of each, ready for JSON.
    """
    found = [_block(topic) for topic in form_topics(readers, scopes, CORE_BLOCK, as_of) if CONTENT in topic.current]
    return sorted(found, key=lambda block: (-block["authority"], block["scope"], block["label"], block["topic_id"]))


def _block(topic: FormTopic) -> Block:
    content = topic.current[CONTENT]
    return {
        "topic_id": topic.topic_id,
        "scope": topic.scope,
        "label": topic.title,
        "content": str(content["value"]),
        "authority": int(topic.value(AUTHORITY, 0)),
        "read_only": bool(topic.value(READ_ONLY, False)),
        "updated_at": content["valid_from"],
        "revision_id": content["id"],
        "evidence_ids": content["evidence_ids"],
    }
