"""The active topics of one form of `memory` in some scopes, with their fields as they hold now or held at a moment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import polars as pl

from memstate_core.retrieve.candidate_facts import candidate_facts
from memstate_core.retrieve.index.layout import SERVED_STATE
from memstate_core.retrieve.reader import SnapshotReader


@dataclass(frozen=True)
class FormTopic:
    """A topic with the current revision of each of its fields, by name."""

    topic_id: str
    scope: str
    title: str
    current: dict[str, dict[str, Any]]

    def value(self, name: str, otherwise: Any = None) -> Any:
        """The value of a field; `otherwise` without the field, and where the value is null."""
        found = self.current[name]["value"] if name in self.current else None
        return otherwise if found is None else found

    def cited(self, *names: str) -> dict[str, Any]:
        """The evidence behind some fields (`evidence_ids`), and since when the newest of them holds (`updated_at`)."""
        revisions = [self.current[name] for name in names if name in self.current]
        times = [each["valid_from"] for each in revisions if each["valid_from"]]
        evidence = dict.fromkeys(found for each in revisions for found in each["evidence_ids"])
        return {"updated_at": max(times, default=None), "evidence_ids": sorted(evidence)}


def form_topics(
    readers: Sequence[SnapshotReader],
    scopes: Iterable[str],
    kind: str,
    as_of: datetime | None = None,
    only: Sequence[str] | None = None,
) -> list[FormTopic]:
    """The topics of a kind in these scopes that are active, by scope and id.

    Args:
        readers: the open snapshots of the store's shards.
        scopes: the scopes.
        kind: the kind of topics.
        as_of: a moment; the topics as known then. None for the present.
        only: the ids of the topics; None for all.
    """
    wanted, whole = set(scopes), as_of is None and only is None
    return [
        topic
        for reader in readers
        for scope in sorted(wanted.intersection(reader.scopes))
        for topic in (reader.derived(_served, scope, kind) if whole else _of_scope(reader, scope, kind, as_of, only))
    ]


def _served(reader: SnapshotReader, scope: str, kind: str) -> list[FormTopic]:
    return _of_scope(reader, scope, kind, None, None)


def served_of_kind(reader: SnapshotReader, scope: str, kind: str, as_of: datetime | None = None) -> pl.DataFrame:
    """The active topics of a kind in a scope, by id (at least columns id and title)."""
    topics = reader.topics(scope).frame if as_of is None else reader.past(scope, as_of).topics
    return topics.filter((pl.col("topic_kind") == kind) & (pl.col("state") == SERVED_STATE)).sort("id")


def _of_scope(
    reader: SnapshotReader, scope: str, kind: str, as_of: datetime | None, only: Sequence[str] | None
) -> list[FormTopic]:
    mine = served_of_kind(reader, scope, kind, as_of)
    mine = mine if only is None else mine.filter(pl.col("id").is_in(only))
    if mine.is_empty():
        return []
    facts = candidate_facts(reader, [scope], mine["id"].to_list(), history=False, as_of=as_of, explicit=True)
    return [
        FormTopic(
            topic_id,
            scope,
            title,
            {name: field["history"][0] for name, field in facts.fields.get(topic_id, {}).items()},
        )
        for topic_id, title in mine.select("id", "title").iter_rows()
    ]
