"""The core blocks of some scopes, as they hold now or held at a moment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import polars as pl

from memstate_core.model.forms.core_block import AUTHORITY, CONTENT, CORE_BLOCK, READ_ONLY
from memstate_core.retrieve.current import candidate_facts
from memstate_core.retrieve.index.layout import SERVED_STATE
from memstate_core.retrieve.reader import SnapshotReader

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
    wanted = set(scopes)
    found = [block for reader in readers for scope in reader.scopes if scope in wanted
             for block in _of_scope(reader, scope, as_of)]  # fmt: skip
    return sorted(found, key=lambda block: (-block["authority"], block["scope"], block["label"], block["topic_id"]))


def _of_scope(reader: SnapshotReader, scope: str, as_of: datetime | None) -> list[Block]:
    topics = reader.topics(scope).frame if as_of is None else reader.past(scope, as_of).topics
    mine = topics.filter((pl.col("topic_kind") == CORE_BLOCK) & (pl.col("state") == SERVED_STATE))
    if mine.is_empty():
        return []
    ids = mine["id"].to_list()
    facts = candidate_facts(reader, [scope], ids, history=False, as_of=as_of, explicit=True)
    labels = dict(mine.select("id", "title").iter_rows())
    current = {
        topic_id: {name: field["history"][0] for name, field in facts.fields.get(topic_id, {}).items()}
        for topic_id in ids
    }
    return [_block(topic_id, scope, labels[topic_id], now) for topic_id, now in current.items() if CONTENT in now]


def _block(topic_id: str, scope: str, label: str, current: dict[str, Any]) -> Block:
    content = current[CONTENT]
    return {
        "topic_id": topic_id,
        "scope": scope,
        "label": label,
        "content": str(content["value"]),
        "authority": int(current[AUTHORITY]["value"]) if AUTHORITY in current else 0,
        "read_only": READ_ONLY in current and bool(current[READ_ONLY]["value"]),
        "updated_at": content["valid_from"],
        "revision_id": content["id"],
        "evidence_ids": content["evidence_ids"],
    }
