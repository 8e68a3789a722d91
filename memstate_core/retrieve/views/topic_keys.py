"""Topics by the `topic_key` that observations named them by.

The id of a keyed topic follows from its scope and key, so no table of keys is needed: the ids of a key in all scopes
are looked up at once.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import polars as pl

from memstate_core.model.errors import TopicAmbiguous, TopicNotFound
from memstate_core.model.ids import key_id
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.retrieve.views.topic import resolve
from memstate_core.state.damaged_shards import DamagedShards
from memstate_core.state.graph import TOPIC, Graph

_READ = ["id", "scope", "title", "state", "merged_into"]


def topic_id_of(
    readers: Sequence[SnapshotReader],
    name: str,
    scopes: Collection[str] | None = None,
    damaged: DamagedShards = DamagedShards(),  # noqa: B008 (immutable)
) -> str:
    """The id itself if a topic has it, else the id of the only topic that it names as a `topic_key`.

    Args:
        readers: the open snapshots of the store's shards.
        name: an id, an alias of one, or a `topic_key`.
        scopes: as for `keyed`.
        damaged: the shards that could not be opened.

    Raises:
        TopicNotFound: nothing has this id or key.
        TopicAmbiguous: several topics have this key.
        SnapshotDamaged: nothing in the sound shards has this id or key, and a damaged one may have it.
    """
    try:
        resolve(readers, name, scopes)
    except TopicNotFound as error:
        found = keyed(readers, name, scopes)
        if found.height > 1:
            raise TopicAmbiguous(name, error.facts["snapshot"], found.select("title", "id", "scope").rows()) from None
        if found.is_empty():
            resolve(readers, name, scopes, damaged)
        return str(found["id"].item())
    return name


def keyed(readers: Sequence[SnapshotReader], key: str, scopes: Collection[str] | None = None) -> pl.DataFrame:
    """The topics that a key names, or that took over those it named (columns id, scope, title, state), by scope and id.

    Args:
        readers: the open snapshots of the store's shards.
        key: a `topic_key`.
        scopes: the visible scopes; None means every scope.
    """
    found = pl.concat([_keyed(reader, key, scopes) for reader in readers])
    return found.drop("merged_into").unique().sort("scope", "id")


def _keyed(reader: SnapshotReader, key: str, scopes: Collection[str] | None) -> pl.DataFrame:
    visible = pl.Series("scope", reader.scopes if scopes is None else sorted({*scopes}.intersection(reader.scopes)))
    named = visible.cast(pl.String).to_frame().select(alias=key_id(pl.col("scope"), pl.lit(key)))
    others = named.join(reader.aliases, on="alias")["topic_id"]
    return _living(reader.graph, pl.concat([named["alias"], others.cast(pl.String)]))


def _living(graph: Graph, ids: pl.Series) -> pl.DataFrame:
    """The topics with some ids; of one that was merged away, the topic that it ended up in."""
    rows = _read(graph, ids)
    seen = rows["id"]
    while (merged := rows.filter(pl.col("merged_into").is_not_null())).height:
        following = merged["merged_into"].unique()
        fresh = following.filter(~following.is_in(seen.implode()))
        rows = pl.concat([rows.filter(pl.col("merged_into").is_null()), _read(graph, fresh)])
        seen = pl.concat([seen, fresh])
    return rows


def _read(graph: Graph, ids: pl.Series) -> pl.DataFrame:
    return graph.read(TOPIC, _READ, "r.id IN $ids", ids=ids.unique().to_list())
