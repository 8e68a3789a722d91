"""The relations of a memory item: the typed edges of its topic that say how it stands to another."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import polars as pl

from memstate_core.model.errors import TopicNotFound
from memstate_core.model.forms.item import Item
from memstate_core.model.forms.relation import RELATIONS
from memstate_core.model.text import iso_expr
from memstate_core.retrieve.facts.facts import TopicSet, read_edges
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.retrieve.views.topic import resolve
from memstate_core.state.fold.edges import valid_at
from memstate_core.state.graph import TOPIC


def relations_of(readers: Sequence[SnapshotReader], item: Item, scope: str, moment: datetime) -> dict[str, Any]:
    """The topic of an item and its relations, ready for JSON.

    Args:
        readers: the open snapshots of the store's shards.
        item: the item.
        scope: its scope.
        moment: when a relation is to be in force.

    Returns:
        `topic_id`, `title`, `snapshot` and `relations`: `relation`, `direction` (out or in), `topic_id` and `title` of
        the other topic, `valid_from`, `valid_until`, `active`, `evidence_ids` of each.

    Raises:
        TopicNotFound: no snapshot has the item in this scope.
    """
    reader, topic_id = _held(readers, item, scope)
    edges = read_edges(reader.graph, TopicSet.of([topic_id])).filter(pl.col("kind").is_in(RELATIONS))
    out = pl.col("from_id") == topic_id
    ends = edges.select(
        "kind",
        "evidence_ids",
        iso_expr(pl.col("valid_from")),
        iso_expr(pl.col("valid_until")),
        active=valid_at(moment),
        direction=pl.when(out).then(pl.lit("out")).otherwise(pl.lit("in")),
        topic_id=pl.when(out).then("to_id").otherwise("from_id"),
    ).rename({"kind": "relation"})
    titles = reader.graph.read(TOPIC, ["id", "title"], "r.id IN $ids", ids=[topic_id, *ends["topic_id"]])
    named = ends.join(titles, left_on="topic_id", right_on="id", how="left")
    own = titles.filter(pl.col("id") == topic_id)["title"].item()
    rows = named.sort("relation", "direction", "topic_id").to_dicts()
    return {"topic_id": topic_id, "title": own, "snapshot": reader.name, "relations": rows}


def _held(readers: Sequence[SnapshotReader], item: Item, scope: str) -> tuple[SnapshotReader, str]:
    if item.observation is not None:
        for reader in readers:
            rows = reader.evidence_of([scope]).filter(pl.col("observation_id") == item.observation)
            held = rows.select("topic_id").collect()["topic_id"].drop_nulls()
            if held.len():
                return reader, str(held[0])
    try:
        found = resolve(readers, item.topic_id(scope), [scope])
    except TopicNotFound as error:
        raise TopicNotFound(item.text, error.facts["snapshot"]) from None  # not the id that its name leads to
    return found.reader, str(found.topic["id"][0])
