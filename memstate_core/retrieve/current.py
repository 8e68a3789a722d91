"""Facts and edges of a query's candidates: from the files by scope, or from the graph for the past."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import polars as pl

from memstate_core.model.frames import EDGES, empty
from memstate_core.retrieve.facts import Facts, TopicSet, facts_of, read_edges, read_facts
from memstate_core.retrieve.reader import SnapshotReader


def candidate_facts(
    reader: SnapshotReader,
    scopes: Sequence[str],
    ids: list[str],
    *,
    history: bool,
    as_of: datetime | None,
    explicit: bool,
) -> Facts:
    """Facts of some topics of these scopes; see `read_facts` for `history` and `as_of`.

    Detached fields are included only if topics or fields were requested explicitly, or for a past moment.
    """
    tables = [table for scope in scopes if (table := reader.facts(scope)) is not None]
    if explicit or history or as_of is not None or len(tables) < len(scopes):
        return read_facts(
            reader.graph,
            TopicSet.of(ids),
            history=history,
            as_of=as_of,
            older=reader.compressed if as_of is not None else None,
            detached=explicit or as_of is not None,
        )

    def read(wanted: list[str]) -> Facts:
        mine = pl.col("topic_id").is_in(wanted)
        fields, revisions, reviews = (
            pl.concat([table[name].filter(mine) for table in tables]) for name in ("fields", "revisions", "reviews")
        )
        return facts_of(fields, revisions, reviews)

    return reader.cached_facts.of(ids, read)


def candidate_edges(
    reader: SnapshotReader, scopes: Sequence[str], ids: list[str], *, as_of: datetime | None, explicit: bool
) -> pl.DataFrame:
    """The edges of some topics of these scopes that are valid at a moment, or when the snapshot was published.

    Detached edges are included only if topics were requested explicitly, or for a past moment.

    The files have edges within these scopes only; the graph may add edges to other scopes, which the caller
    must filter out.
    """
    if not ids:
        return empty(EDGES)
    tables = [table for scope in scopes if (table := reader.facts(scope)) is not None]
    if explicit or as_of is not None or len(tables) < len(scopes):
        edges = read_edges(reader.graph, TopicSet.of(ids), moment=as_of or reader.snapshot.manifest.now)
        return edges if explicit or as_of is not None else edges.filter(~pl.col("detached"))
    mine = pl.col("from_id").is_in(ids) | pl.col("to_id").is_in(ids)
    return pl.concat([table["edges"].filter(mine) for table in tables])
