"""Workspace resources of some scopes as a tree: roots, the children of one, one by its URI, or all; page by page.

They are those of the snapshot, or as of a moment those that a night would have left then, with the parents of then.
A root is a resource without a parent, or with one that is no resource of its scope. Resources that are each other's
parents have no root above them; the list of all still has them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import polars as pl
from msgspec import json as msgjson

from memstate_core.model.forms.resource import CONTENT, KIND, OTHER, PARENT, URI, Resource
from memstate_core.retrieve.facts.in_force import in_force_of
from memstate_core.retrieve.index.facts_files import current_revisions
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.retrieve.views.form_topics import FormTopic, form_topics, served_of_kind
from memstate_core.retrieve.views.listing import Listing

Position = tuple[str, str]
"""The scope and the URI of the last resource returned."""


@dataclass(frozen=True)
class ResourceFilter:
    """Which resources to list; at most one of the first three.

    Attributes:
        uri: the one with this URI.
        parent: the children of this URI.
        roots: those at the top of the tree.
        content: with their whole content.
        as_of: a moment; the resources as known then. None for the present.
    """

    uri: str | None = None
    parent: str | None = None
    roots: bool = False
    content: bool = False
    as_of: datetime | None = None


def resources_page(
    listing: Listing, wanted: ResourceFilter, after: Position | None
) -> tuple[list[dict[str, Any]], Position | None]:
    """A page of resources by scope and URI, ready for JSON, and where the next page begins; None on the last one.

    Args:
        listing: what the page is taken from.
        wanted: which resources.
        after: where the previous page ended.

    Raises:
        SnapshotDamaged: every shard that holds one of the scopes is damaged.
    """
    homes, limit = listing.homes(after and after[0]), listing.limit
    found: list[tuple[str, str, str, int]] = []
    for scope, reader in homes.items():
        if len(found) > limit:
            break
        found += [each for each in _tree(reader, scope, wanted) if after is None or each[:2] > after]
    page = found[:limit]
    topics = {
        topic.topic_id: topic
        for scope in {each[0] for each in page}
        for topic in form_topics(
            [homes[scope]], [scope], Resource.topic_kind(), wanted.as_of, only=[each[2] for each in page]
        )
    }
    listed = [_described(uri, topics[topic_id], children, wanted.content) for _, uri, topic_id, children in page]
    return listed, page[-1][:2] if len(found) > limit else None


def _tree(reader: SnapshotReader, scope: str, wanted: ResourceFilter) -> list[tuple[str, str, str, int]]:
    """Scope, URI, topic and number of children of the wanted resources of a scope, by URI; reads no content."""
    ids = served_of_kind(reader, scope, Resource.topic_kind(), wanted.as_of)["id"].to_list()
    if not ids:
        return []
    rows = _addresses(reader, scope, ids, wanted.as_of)
    values = {(topic_id, name): msgjson.decode(value) for topic_id, name, value in rows.iter_rows()}
    topics = {str(uri): topic_id for topic_id in ids if (uri := values.get((topic_id, URI))) is not None}
    parents = {uri: values.get((topic_id, PARENT)) for uri, topic_id in topics.items()}
    children = Counter(parent for parent in parents.values() if parent in topics)
    return [
        (scope, uri, topics[uri], children[uri])
        for uri, parent in sorted(parents.items())
        if (wanted.uri is None or uri == wanted.uri)
        and (wanted.parent is None or parent == wanted.parent)
        and not (wanted.roots and parent in topics)
    ]


def _addresses(reader: SnapshotReader, scope: str, ids: list[str], as_of: datetime | None) -> pl.DataFrame:
    """The URIs of resources and of their parents (columns topic_id, name, value_json)."""
    columns, names = ["topic_id", "name", "value_json"], [URI, PARENT]
    if as_of is not None:
        current = (pl.col("part") == "field") & (pl.col("rank") == 0)
        mine = pl.col("topic_id").is_in(ids) & pl.col("name").is_in(names)
        return reader.past(scope, as_of).revisions.filter(current & mine).select(columns)
    where = "r.topic_id IN $ids AND r.name IN $names"
    newest = current_revisions(reader.graph, where, ids=ids, names=names)
    held = in_force_of(reader.graph, reader.compressed, newest, reader.snapshot.manifest.now)
    return held.filter(pl.col("rank") == 0).select(columns)


def _described(uri: str, topic: FormTopic, children: int, content: bool) -> dict[str, Any]:
    text = topic.value(CONTENT)
    return {
        "scope": topic.scope,
        "topic_id": topic.topic_id,
        "uri": uri,
        "kind": topic.value(KIND, OTHER),
        "title": topic.title,
        "parent_uri": topic.value(PARENT),
        "children": children,
        "characters": 0 if text is None else len(text),
        "content": text if content else None,
    } | topic.cited(URI, KIND, CONTENT, PARENT)
