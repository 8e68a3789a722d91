"""Facts as subject, predicate and object: a view over fields, their histories and the edges that name a relation.

Topics carry the only truth. A field of a topic is a fact about it, and so is each of its typed edges; a value that a
later one superseded is a fact with an end. Pages go by scope, then by subject, predicate and place among its values.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import polars as pl
from msgspec import json as msgjson

from memstate_core.model.errors import TopicNotFound
from memstate_core.model.forms.verification import VERIFICATION
from memstate_core.model.text import iso_expr, normalised
from memstate_core.retrieve.facts.conflicts import open_rivals
from memstate_core.retrieve.facts.in_force import in_force
from memstate_core.retrieve.index.layout import SERVED_STATE
from memstate_core.retrieve.ranking import UNSPECIFIC
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.retrieve.views.listing import Listing
from memstate_core.retrieve.views.topic import resolve
from memstate_core.retrieve.views.topic_keys import keyed
from memstate_core.state.fold.edges import valid_at
from memstate_core.state.graph import EDGE, FIELD, REVISION, TOPIC

Position = tuple[str, str, str, int]
"""The scope, subject and predicate of the last fact returned, and its place among the values of both."""

_ORDER = ("subject_id", "predicate", "place")
_SHARED = ("valid_from", "evidence_ids")
_ID = ("id", "scope", "title")


@dataclass(frozen=True)
class FactFilter:
    """Which facts to list.

    Attributes:
        subject: the id, an alias, the key or the title of a topic; None for all.
        predicate: the name of a field or the kind of an edge; None for all.
        as_of: a moment; the facts that were known and held then. None for those that hold now.
        history: facts that were superseded or ended as well, and those that are left out of default answers: of
            detached fields, and of an archived topic whose id is given.
    """

    subject: str | None = None
    predicate: str | None = None
    as_of: datetime | None = None
    history: bool = False


@dataclass(frozen=True)
class _Tables:
    """What the facts of a scope are made of: topics (columns id, title) and the tables that they are named for."""

    topics: pl.DataFrame
    fields: pl.DataFrame
    revisions: pl.DataFrame
    edges: pl.DataFrame


def facts_page(
    listing: Listing, wanted: FactFilter, after: Position | None
) -> tuple[list[dict[str, Any]], Position | None]:
    """A page of facts, ready for JSON, and where the next page begins; None on the last one.

    Args:
        listing: what the page is taken from.
        wanted: which facts.
        after: where the previous page ended.

    Raises:
        SnapshotDamaged: every shard that holds one of the scopes is damaged.
    """
    homes, limit = listing.homes(after and after[0]), listing.limit
    named = _named(listing.readers, wanted.subject, listing.scopes)
    mine = None if named is None else set(named["scope"])
    found: list[pl.DataFrame] = []
    for scope, reader in homes.items():
        if sum(map(len, found)) > limit or (mine is not None and scope not in mine):
            continue
        rows = _facts(reader, scope, wanted, named).with_columns(scope=pl.lit(scope))
        rows = rows.filter(_beyond(after[1:])) if after is not None and scope == after[0] else rows
        found.append(rows.head(limit + 1 - sum(map(len, found))))
    facts = pl.concat(found) if found else pl.DataFrame()
    page = facts.head(limit)
    more = facts.height > limit
    last = page.row(-1, named=True) if more else {}
    return _described(homes, page), (last["scope"], *(last[name] for name in _ORDER)) if more else None


def _beyond(last: tuple[str, str, int]) -> pl.Expr:
    """Whether a fact comes after the last of the page before."""
    subject, predicate, place = (pl.col(name) for name in _ORDER)
    later = (predicate > last[1]) | ((predicate == last[1]) & (place > last[2]))
    return (subject > last[0]) | ((subject == last[0]) & later)


def _named(
    readers: Sequence[SnapshotReader], subject: str | None, scopes: Collection[str] | None
) -> pl.DataFrame | None:
    """The topics that a subject names, by id, key or title (columns id, scope, title); None without a subject."""
    if subject is None:
        return None
    try:
        return resolve(readers, subject, scopes).topic.select(_ID)
    except TopicNotFound:
        asked = pl.select(normalised(pl.lit(subject))).item()
        within, given = ("", {}) if scopes is None else (" AND r.scope IN $scopes", {"scopes": sorted(scopes)})
        where = f"r.state = '{SERVED_STATE}'{within}"
        rows = pl.concat([reader.graph.read(TOPIC, list(_ID), where, **given) for reader in readers])
        titled = rows.filter(normalised(pl.col("title")) == asked)
        return pl.concat([titled, keyed(readers, subject, scopes).select(_ID)]).unique()


def _facts(reader: SnapshotReader, scope: str, wanted: FactFilter, named: pl.DataFrame | None) -> pl.DataFrame:
    """The facts of a scope in order."""
    tables = _tables(reader, scope, wanted, named)
    topics = tables.topics if named is None else tables.topics.join(named, on="id", how="semi")
    subjects = topics.select(subject_id="id", subject="title")
    facts = pl.concat([_values(tables), _related(tables)]).join(subjects, on="subject_id", maintain_order="left")
    facts = facts if wanted.predicate is None else facts.filter(pl.col("predicate") == wanted.predicate)
    placed = facts.with_columns(place=pl.int_range(pl.len()).over("subject_id", "predicate"))
    return placed.sort(_ORDER)


def _tables(reader: SnapshotReader, scope: str, wanted: FactFilter, named: pl.DataFrame | None) -> _Tables:
    if wanted.as_of is not None:
        past = reader.past(scope, wanted.as_of)
        shown = (pl.col("state") == SERVED_STATE) & pl.col("topic_kind").ne_missing(VERIFICATION)
        served = past.topics.filter(shown).select("id", "title")
        return _shown(_Tables(served, past.fields, past.revisions, past.edges), wanted)
    topics = reader.topics(scope).frame.select("id", "title")
    current = None if wanted.history else reader.facts(scope)
    if current is not None:
        tables = current.tables
        return _Tables(topics, tables["fields"], tables["revisions"], tables["edges"])
    if wanted.history and named is not None:
        topics = pl.concat([topics, named.filter(pl.col("scope") == scope).select("id", "title")]).unique("id")
    mine = {"ids": topics["id"].to_list()}
    fields = reader.graph.read(FIELD, where="r.topic_id IN $ids", **mine)
    own = reader.graph.read(REVISION, where="r.topic_id IN $ids AND r.summarises IS NULL", **mine)
    older = reader.compressed.filter(pl.col("topic_id").is_in(topics["id"].implode())).collect()
    edges = reader.graph.read(EDGE).filter(pl.col("from_id").is_in(topics["id"].implode()))
    revisions = pl.concat([own, older.select(own.columns)])
    if not wanted.history:
        now = reader.snapshot.manifest.now
        edges, revisions = edges.filter(valid_at(now)), in_force(revisions, now)
    return _shown(_Tables(topics, fields, revisions, edges), wanted)


def _shown(tables: _Tables, wanted: FactFilter) -> _Tables:
    """Without what default answers leave out, unless the history is wanted."""
    if wanted.history:
        return tables
    attached = tables.fields.filter(~pl.col("detached"))
    revisions = tables.revisions.join(attached, on=["topic_id", "name"], how="semi")
    newest = revisions.filter((pl.col("rank") == 0) & (pl.col("part") == "field"))
    rivals = open_rivals(newest)["rival"]
    shown = revisions.filter((pl.col("rank") == 0) | pl.col("id").is_in(rivals.implode()))
    return _Tables(tables.topics, attached, shown, tables.edges.filter(~pl.col("detached")))


def _values(tables: _Tables) -> pl.DataFrame:
    """Values of fields, the newest of each first. A value ends where the next one began; null is no value."""
    references = tables.fields.select("topic_id", "name", "ref_topic_id", rank=pl.lit(0, pl.Int64))
    own = references.join(tables.topics, left_on="ref_topic_id", right_on="id", how="semi")
    rows = _ended(tables.revisions.filter(pl.col("part") == "field").sort("topic_id", "name", "rank"))
    rows = rows.join(own, on=["topic_id", "name", "rank"], how="left", maintain_order="left")
    return rows.filter(pl.col("value_json") != "null").select(
        *_SHARED,
        subject_id="topic_id",
        predicate="name",
        object_json="value_json",
        object_title=pl.lit(None, pl.String),
        object_id="ref_topic_id",
        confidence="confidence",
        valid_until="valid_until",
        contradicted="contradicted",
    )


def _ended(rows: pl.DataFrame) -> pl.DataFrame:
    """Values in order with the end of each (`valid_until`), and whether it was contradicted up to it (`contradicted`).

    Values that contradict each other hold side by side until a later observation of the field, of any value.
    """
    followed = rows.with_columns(_next=pl.col("valid_from").shift(1).over("topic_id", "name"))
    leads = (pl.col("rivals").list.len() > 0).fill_null(False)
    led = followed.filter(leads).select(id="rivals", _end=pl.min_horizontal("settled_at", "_next")).explode("id")
    rivals = led.unique("id", maintain_order=True).with_columns(_is_rival=pl.lit(True))
    joined = followed.join(rivals, on="id", how="left", maintain_order="left")
    is_rival = pl.col("_is_rival").fill_null(False)
    return joined.with_columns(
        valid_until=pl.when(is_rival).then("_end").otherwise("_next"),
        contradicted=is_rival | (leads & pl.col("settled_at").is_null()),
    )


def _related(tables: _Tables) -> pl.DataFrame:
    """Edges between topics of the scope that name a relation; the object of each is the title of the other topic."""
    edges = tables.edges.filter(~pl.col("kind").is_in(UNSPECIFIC))
    named = edges.join(tables.topics.select(to_id="id", title="title"), on="to_id")
    return named.sort("from_id", "kind", "valid_from", "to_id", nulls_last=True).select(
        *_SHARED,
        subject_id="from_id",
        predicate="kind",
        object_json=pl.lit(None, pl.String),
        object_title=pl.coalesce("title", "to_id"),
        object_id="to_id",
        confidence=pl.lit(None, pl.Float64),
        valid_until="valid_until",
        contradicted=pl.lit(False),
    )


def _described(homes: dict[str, SnapshotReader], page: pl.DataFrame) -> list[dict[str, Any]]:
    """The facts of a page as documents, with the observations behind each."""
    if page.is_empty():
        return []
    events = _events(homes, page)
    documents = page.with_columns(iso_expr(pl.col(name)) for name in ("valid_from", "valid_until")).to_dicts()
    return [
        {
            "scope": row["scope"],
            "subject": row["subject"],
            "subject_id": row["subject_id"],
            "predicate": row["predicate"],
            "object": row["object_title"] if row["object_json"] is None else msgjson.decode(row["object_json"]),
            "object_id": row["object_id"],
            "confidence": row["confidence"],
            "valid_from": row["valid_from"],
            "valid_until": row["valid_until"],
            "contradicted": row["contradicted"],
            "source_event_ids": [events[one] for one in row["evidence_ids"] if one in events],
        }
        for row in documents
    ]


def _events(homes: dict[str, SnapshotReader], page: pl.DataFrame) -> dict[str, str]:
    """The observation of each piece of evidence that a page cites."""
    cited = page["evidence_ids"].explode().drop_nulls().unique()
    readers = {id(reader): reader for scope in page["scope"].unique() if (reader := homes[scope])}.values()
    mine = pl.col("evidence_id").is_in(cited.implode())
    found = [reader.evidence_of(page["scope"].unique()).filter(mine) for reader in readers]
    return dict(pl.concat(found).select("evidence_id", "observation_id").collect().iter_rows())
