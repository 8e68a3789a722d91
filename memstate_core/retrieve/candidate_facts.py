"""Facts and edges of a query's candidates: from the files by scope, the graph, or the ledger for the past."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import polars as pl

from memstate_core.retrieve.facts.facts import Facts, TopicSet, facts_of, read_edges, read_facts
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.retrieve.scope_facts import Edge, edges_of

if TYPE_CHECKING:
    from memstate_core.retrieve.past import Past


def candidate_facts(
    reader: SnapshotReader,
    scopes: Sequence[str],
    ids: list[str],
    *,
    history: bool,
    as_of: datetime | None,
    explicit: bool,
) -> Facts:
    """Facts of some topics of these scopes, as of a past moment if one is given; see `read_facts` for `history`.

    Detached fields are included only if topics or fields were requested explicitly.
    """
    if as_of is not None:
        return _past_facts([reader.past(scope, as_of) for scope in scopes], ids, history=history, detached=explicit)
    kept = [facts for scope in scopes if (facts := reader.facts(scope)) is not None]
    if explicit or history or len(kept) < len(scopes):
        return _graph_facts(reader, ids, history=history, detached=explicit)
    return reader.cached_facts.of(ids, lambda wanted: Facts.together(facts.facts(wanted) for facts in kept))


def candidate_edges(
    reader: SnapshotReader, scopes: Sequence[str], ids: list[str], *, as_of: datetime | None, explicit: bool
) -> list[Edge]:
    """The edges of some topics of these scopes that were valid at a moment, or when the snapshot was published.

    Detached edges are included only if topics were requested explicitly.

    The files have edges within these scopes only; the graph may add edges to other scopes, which the caller
    must filter out.
    """
    if not ids:
        return []
    if as_of is not None:
        mine = pl.col("from_id").is_in(ids) | pl.col("to_id").is_in(ids)
        edges = pl.concat([reader.past(scope, as_of).edges.filter(mine) for scope in scopes])
        return edges_of(edges if explicit else edges.filter(~pl.col("detached")))
    kept = [facts for scope in scopes if (facts := reader.facts(scope)) is not None]
    if explicit or len(kept) < len(scopes):
        edges = read_edges(reader.graph, TopicSet.of(ids), moment=reader.snapshot.manifest.now)
        return edges_of(edges if explicit else edges.filter(~pl.col("detached")))
    return [edge for facts in kept for edge in facts.edges(ids)]


def _graph_facts(reader: SnapshotReader, ids: list[str], *, history: bool, detached: bool) -> Facts:
    older, moment = None if history else reader.compressed, reader.snapshot.manifest.now
    return read_facts(reader.graph, TopicSet.of(ids), history=history, older=older, detached=detached, moment=moment)


def _past_facts(pasts: list[Past], ids: list[str], *, history: bool, detached: bool) -> Facts:
    mine = pl.col("topic_id").is_in(ids)
    fields, revisions, reviews = (
        pl.concat([getattr(past, name).filter(mine) for past in pasts]) for name in ("fields", "revisions", "reviews")
    )
    fields = fields if detached else fields.filter(~pl.col("detached"))
    return facts_of(fields, revisions, reviews, history=history)
