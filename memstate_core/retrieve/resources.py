"""Workspace resources of some scopes as a tree: roots, the children of one, one by its URI, or all; page by page.

A root is a resource without a parent, or with one that is no resource of its scope. Resources that are each other's
parents have no root above them; the list of all still has them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from memstate_core.model.forms.resource import CONTENT, KIND, OTHER, PARENT, URI, Resource
from memstate_core.retrieve.form_topics import FormTopic, form_topics
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.state.damaged_shards import DamagedShards

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
    """

    uri: str | None = None
    parent: str | None = None
    roots: bool = False
    content: bool = False


def resources_page(
    readers: Sequence[SnapshotReader],
    scopes: Collection[str] | None,
    wanted: ResourceFilter,
    after: Position | None,
    limit: int,
    damaged: DamagedShards,
) -> tuple[list[dict[str, Any]], Position | None]:
    """A page of resources by scope and URI, ready for JSON, and where the next page begins; None on the last one.

    Args:
        readers: the open snapshots of the store's shards.
        scopes: the scopes to list; None for all.
        wanted: which resources.
        after: where the previous page ended.
        limit: the maximum number of resources.
        damaged: the shards whose snapshots are damaged.

    Raises:
        SnapshotDamaged: every shard that holds one of the scopes is damaged.
    """
    damaged.require_any(scopes, [reader.snapshot.manifest.shard for reader in readers])
    every = {scope for reader in readers for scope in reader.scopes if scopes is None or scope in scopes}
    found: list[dict[str, Any]] = []
    for scope in sorted(every):
        if len(found) > limit or (after is not None and scope < after[0]):
            continue
        listed = _of_scope(readers, scope, wanted)
        found += [each for each in listed if after is None or (scope, each["uri"]) > after]
    page = found[:limit]
    return page, (page[-1]["scope"], page[-1]["uri"]) if len(found) > limit else None


def _of_scope(readers: Sequence[SnapshotReader], scope: str, wanted: ResourceFilter) -> list[dict[str, Any]]:
    """The wanted resources of a scope, by URI."""
    topics = {str(topic.value(URI)): topic for topic in form_topics(readers, [scope], Resource.topic_kind())
              if topic.value(URI) is not None}  # fmt: skip
    parents = {uri: topic.value(PARENT) for uri, topic in topics.items()}
    children = Counter(parent for parent in parents.values() if parent in topics)
    chosen = [
        uri
        for uri, parent in sorted(parents.items())
        if (wanted.uri is None or uri == wanted.uri)
        and (wanted.parent is None or parent == wanted.parent)
        and not (wanted.roots and parent in topics)
    ]
    return [_described(uri, topics[uri], children[uri], wanted.content) for uri in chosen]


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
