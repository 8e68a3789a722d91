"""One topic by its id, an alias, or the id of a tombstone that was merged into it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import polars as pl

from memstate_core.model.errors import TopicNotFound
from memstate_core.model.frames import empty
from memstate_core.model.graph_tables import TOPICS
from memstate_core.model.text import iso, normalised
from memstate_core.retrieve.facts.facts import TopicSet
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.retrieve.views.records import Record, past_record, topic_records
from memstate_core.state.damaged_shards import DamagedShards
from memstate_core.state.graph import TOPIC

if TYPE_CHECKING:
    from memstate_core.retrieve.past import Past


@dataclass(frozen=True)
class Resolved:
    """The topic that an id resolves to.

    Attributes:
        reader: the snapshot that holds the topic.
        topic: its one row (columns TOPICS).
        passed: the ids on the way, beginning with the requested one; empty if it is the topic's own.
    """

    reader: SnapshotReader
    topic: pl.DataFrame
    passed: list[str]


def topic_record(
    readers: Sequence[SnapshotReader],
    topic_id: str,
    *,
    history: bool = False,
    as_of: datetime | None = None,
    expand: bool = False,
    scopes: Collection[str] | None = None,
    damaged: DamagedShards = DamagedShards(),  # noqa: B008 (immutable)
) -> Record:
    """The record of one topic; that of its survivor, with `resolved_from`, if it was merged.

    Args:
        readers: the open snapshots of the store's shards.
        topic_id: an id, or an alias of one.
        history: whole histories instead of the values in force, and `topic_history`; values that begin later too.
        as_of: everything as it was at this moment (`memstate_core.retrieve.past`).
        expand: the revisions behind summaries instead of summaries, which the past never has.
        scopes: as for `resolve`.
        damaged: as for `resolve`.

    Raises:
        TopicNotFound: the id is unknown, or was unknown at that moment.
        SnapshotDamaged: the id is unknown in the sound shards, and a damaged one may have it.
    """
    found = resolve(readers, topic_id, scopes, damaged)
    if as_of is not None:
        past = found.reader.past(found.topic["scope"][0], as_of)
        way = _way(past, found, topic_id)
        return past_record(past, way[-1], history=history) | ({"resolved_from": way[:-1]} if way[1:] else {})
    within = TopicSet.of(found.topic["id"].to_list())
    older = found.reader.compressed if expand or not history else None
    at = None if history else found.reader.snapshot.manifest.now
    records = topic_records(found.reader.graph, found.topic, within, history=history, older=older, moment=at)
    record = next(records)
    return record | ({"resolved_from": found.passed} if found.passed else {})


def _way(past: Past, found: Resolved, topic_id: str) -> list[str]:
    """The ids on the way from an id to its topic as of a moment.

    Raises:
        TopicNotFound: there was none; says since when there is one.
    """
    try:
        return past.resolve(topic_id, found.reader.name)
    except TopicNotFound as error:
        began = found.topic["created_at"][0]
        if began is None or began <= past.moment:
            raise
        raise TopicNotFound(topic_id, error.facts["snapshot"], since=iso(began)) from None


def titled(readers: Sequence[SnapshotReader], text: str, limit: int = 5) -> pl.DataFrame:
    """Topics by title, for a person who knows no id.

    Args:
        readers: the open snapshots of the store's shards.
        text: a title, or words of one.
        limit: how many topics to return at most whose titles have only the words.

    Returns:
        Columns id, scope, title and `is_equal`. Topics with this very title, compared as titles are; if there are none,
        topics whose titles have all words of the text, the most salient first. Tombstones are left out.
    """
    columns = ["id", "scope", "title", "salience"]
    rows = pl.concat([reader.graph.read(TOPIC, columns, "r.state <> 'merged'") for reader in readers])
    asked = pl.select(normalised(pl.lit(text))).item()
    title = normalised(pl.col("title"))
    words = [title.str.contains(word, literal=True) for word in asked.split()]
    has_words = pl.all_horizontal(pl.lit(bool(words)), *words)
    found = rows.with_columns(is_equal=title == asked).filter(pl.col("is_equal") | has_words)
    equal = found.filter("is_equal")
    chosen = found if equal.is_empty() else equal
    shown = chosen.sort("salience", "id", descending=[True, False])
    return (shown.head(limit) if equal.is_empty() else shown).select("id", "scope", "title", "is_equal")


def titles_of(readers: Sequence[SnapshotReader], ids: Collection[str]) -> dict[str, str]:
    """The titles of topics by id; unknown ids are left out."""
    wanted = {"ids": sorted(ids)}
    found = [reader.graph.read(TOPIC, ["id", "title"], "r.id IN $ids", **wanted) for reader in readers]
    return dict(pl.concat(found).rows()) if found and ids else {}


def resolve(
    readers: Sequence[SnapshotReader],
    topic_id: str,
    scopes: Collection[str] | None = None,
    damaged: DamagedShards = DamagedShards(),  # noqa: B008 (immutable)
) -> Resolved:
    """Follows aliases and merges to the topic that an id refers to now.

    Args:
        readers: the open snapshots of the store's shards.
        topic_id: an id, or an alias of one.
        scopes: the visible scopes; None means every scope. Topics of other scopes count as unknown.
        damaged: the shards that could not be opened.

    Raises:
        TopicNotFound: the id is unknown.
        SnapshotDamaged: the id is unknown in the sound shards, and a damaged one may have it.
    """
    for reader in readers:
        passed: list[str] = []
        named = _named(reader, topic_id, scopes)
        while named.height and (survivor := named["merged_into"][0]) is not None and survivor not in passed:
            passed.append(named["id"][0])
            named = _read(reader, survivor, scopes)
        if named.height:
            way = [] if named["id"][0] == topic_id else list(dict.fromkeys([topic_id, *passed]))
            return Resolved(reader, named, way)
    if unread := damaged.of(scopes):
        raise next(iter(unread.values()))
    raise TopicNotFound(topic_id, ", ".join(reader.name for reader in readers))


def _named(reader: SnapshotReader, topic_id: str, scopes: Collection[str] | None) -> pl.DataFrame:
    own = _read(reader, topic_id, scopes)
    if own.height:
        return own
    aliases = reader.aliases.filter(pl.col("alias") == topic_id)
    known = _within(aliases, scopes)["topic_id"]
    return _read(reader, known[0], scopes) if len(known) else empty(TOPICS)


def _read(reader: SnapshotReader, topic_id: str, scopes: Collection[str] | None) -> pl.DataFrame:
    if scopes is None:
        return reader.graph.read(TOPIC, where="r.id = $id", id=topic_id)
    # The graph filters by scope, so that a foreign id takes no longer than an unknown one.
    where = "r.id = $id AND r.scope IN $scopes"
    return reader.graph.read(TOPIC, where=where, id=topic_id, scopes=sorted(scopes))


def _within(rows: pl.DataFrame, scopes: Collection[str] | None) -> pl.DataFrame:
    return rows if scopes is None else rows.filter(pl.col("scope").is_in(list(scopes)))
