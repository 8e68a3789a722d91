"""Accepted but unserved evidence: observations in the inbox, and evidence newer than the snapshots in the ledger.

The inbox is read before the ledger, and a file leaves the inbox only after its rows are durable in the ledger, so
nothing is missing from both between import and publication. The index of a snapshot says what it holds.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from memstate_core.model.evidence import names_a_topic
from memstate_core.model.frames import conform, empty
from memstate_core.model.ledger_tables import EVIDENCE
from memstate_core.model.scope import scopes_of_shard
from memstate_core.model.terms import terms
from memstate_core.model.text import normalised
from memstate_core.placement.named import place_named
from memstate_core.retrieve.index.evidence import rendered
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.run.store import Store
from memstate_core.serve.pending.fair_share import fair_share, row_bytes
from memstate_core.serve.pending.inbox_view import InboxObservations, InboxView
from memstate_core.state.erasure_mark import erasure_mark
from memstate_core.state.fold import decisions as decided
from memstate_core.state.fold.rollbacks import ROLLED_BACK, in_effect
from memstate_core.state.fold.shard_history import of_shard
from memstate_core.state.graph import TOPIC
from memstate_core.state.ledger.ledger import Ledger

_IDENTITY = ["scope", "observation_id"]
_STEPS = 64
_FEW_SCOPES = 16
_MANY_IDS = 200
_TOPIC_COLUMNS = ["id", "scope", "merged_into"]
_NO_TOPICS = pl.DataFrame(schema={"topic_id": pl.String, "scope": pl.String})


@dataclass(frozen=True)
class Unpublished:
    """Evidence that is accepted and not served.

    Attributes:
        rows: columns EVIDENCE, the newest first, with `shown` (the evidence as text), `topic` (the topic that it names
            as it is served or will be made; null if only a run can decide) and `is_served` (whether that topic is).
        terms: every distinct term of each row (columns evidence_id, term).
        cut: scopes of which a limit left rows out.
        complete: whether every file of the inbox was read.
    """

    rows: pl.DataFrame
    terms: pl.DataFrame
    cut: frozenset[str]
    complete: bool

    def is_complete(self, scopes: Collection[str] | None) -> bool:
        """Whether nothing of these scopes was left out; None means every scope."""
        return self.complete and not (self.cut if scopes is None else self.cut.intersection(scopes))


class UnpublishedView:
    """A thread-safe view of unserved evidence; computed again only if inbox, ledger or snapshots have changed."""

    def __init__(self, store: Store) -> None:
        self._store, self._ledger = store, Ledger(store.ledger.root, checked=True)
        self.inbox = InboxView(store.home.inbox, store.home.inbox_key, store.settings)
        self._lock = threading.Lock()
        self._beyond: tuple[object, pl.DataFrame, frozenset[str]] = (None, empty(EVIDENCE), frozenset())
        self._made: tuple[object, Unpublished | None] = (None, None)
        self._looked_up: tuple[object, pl.DataFrame] = (None, pl.DataFrame())
        self._served: list[ServedIds] = []
        self._terms = terms(pl.DataFrame(schema={"evidence_id": pl.String, "text": pl.String}))

    def of(self, readers: Sequence[SnapshotReader], now: datetime) -> Unpublished:
        """The evidence that these snapshots, one per shard, do not serve; all evidence without any."""
        with self._lock:
            inbox = self.inbox.observations(now)
            erased = erasure_mark(self._store.home)  # an erasure keeps the versions of the ledger
            at = ([reader.name for reader in readers], self._ledger.version("evidence"), erased)
            if self._beyond[0] != at:
                self._beyond = (at, *self._since(readers))
            state, made = (at, inbox.version, inbox.complete), self._made[1]
            if made is None or self._made[0] != state:
                made = self._make(readers, inbox)
                self._made = (state, made)
            return made

    def _since(self, readers: Sequence[SnapshotReader]) -> tuple[pl.DataFrame, frozenset[str]]:
        """Evidence in the ledger and not in the snapshots, newest first, and the scopes that a limit cut."""
        shards = self._store.shards
        versions = dict.fromkeys(shards) | {
            reader.snapshot.manifest.shard: reader.snapshot.manifest.evidence_version for reader in readers
        }
        found = []
        for version in set(versions.values()):
            mine = [shard for shard in shards if versions[shard] == version]
            found.append(self._of_shards(self._ledger.since("evidence", version), mine))
        new = _without(pl.concat(found).unique(_IDENTITY, keep="any"), readers)
        new = new.filter(~pl.col("evidence_id").is_in(self._set_aside().implode()))
        # Keys and sizes first, so that a large import is not loaded to be cut.
        keys = new.select("evidence_id", "scope", "imported_at", _bytes=row_bytes()).collect()
        newest = keys.sort("imported_at", "evidence_id", descending=True)
        kept = fair_share(newest, pl.col("_bytes"))
        rows = new.filter(pl.col("evidence_id").is_in(kept["evidence_id"].implode())).collect()
        cut = keys.join(kept, on="evidence_id", how="anti")["scope"]
        return conform(rows.sort("imported_at", descending=True), EVIDENCE), frozenset(cut)

    def _set_aside(self) -> pl.Series:
        """The evidence that no run takes in."""
        if self._ledger.version("transitions") is None:
            return pl.Series(dtype=pl.String)
        kinds = pl.col("kind").is_in([decided.SET_ASIDE, decided.READMITTED, ROLLED_BACK])
        rows = self._ledger.scan("transitions")
        own = (of_shard(rows, shard).filter(kinds).sort("seq").collect() for shard in self._store.shards)
        return pl.concat([decided.set_aside(in_effect(each)) for each in own])

    def _of_shards(self, rows: pl.LazyFrame, mine: list[str]) -> pl.LazyFrame:
        shards = self._store.shards
        if len(mine) == len(shards):
            return rows
        scopes = rows.select(pl.col("scope").unique()).collect()["scope"]
        own = pl.concat([scopes_of_shard(scopes, shard, len(shards)) for shard in mine])
        return rows.filter(pl.col("scope").is_in(own.implode()))

    def _make(self, readers: Sequence[SnapshotReader], inbox: InboxObservations) -> Unpublished:
        _, beyond, cut = self._beyond
        unserved = self._unserved(inbox.rows, readers)
        # The first of two contents of an observation wins: the ledger's, then the one accepted first.
        rows = pl.concat([beyond, unserved.reverse()]).unique(_IDENTITY, keep="first", maintain_order=True)
        newest = fair_share(rows.sort("imported_at", "evidence_id", descending=True), row_bytes())
        text = pl.when(names_a_topic()).then(rendered()).otherwise("text")
        placed = _placed(newest, self._served_ids(readers))
        shown = newest.with_columns(shown=text).join(placed, on="evidence_id", how="left", maintain_order="left")
        cut |= inbox.cut | frozenset(rows.join(newest, on="evidence_id", how="anti")["scope"])
        marked = shown.with_columns(pl.col("is_served").fill_null(False))
        return Unpublished(marked, self._terms_of(shown), cut, inbox.complete)

    def _served_ids(self, readers: Sequence[SnapshotReader]) -> list[ServedIds]:
        """The topic ids looked up so far, kept as long as the snapshots are served."""
        known = {id(each.reader): each for each in self._served}
        self._served = [known.get(id(reader)) or ServedIds(reader) for reader in readers]
        return self._served

    def _terms_of(self, shown: pl.DataFrame) -> pl.DataFrame:
        """Every distinct term of each row; terms of earlier rows are reused."""
        known = self._terms.join(shown, on="evidence_id", how="semi")
        fresh = shown.join(known, on="evidence_id", how="anti")
        texts = fresh.select("evidence_id", text=pl.concat_str("actor", "shown", separator=" ", ignore_nulls=True))
        self._terms = pl.concat([known, terms(texts).unique()])
        return self._terms

    def _unserved(self, rows: pl.DataFrame, readers: Sequence[SnapshotReader]) -> pl.DataFrame:
        """The rows whose observation no snapshot has; each row is looked up once per generation."""
        names = [reader.name for reader in readers]
        seen, key = self._looked_up[1], pl.col("evidence_id", *_IDENTITY)
        if self._looked_up[0] != names:
            seen = rows.clear().select(key, new=pl.lit(True))
        fresh = rows.select(key).join(seen, on="evidence_id", how="anti")
        new = _without(fresh.lazy(), readers, fresh["scope"].unique().to_list()).collect()
        marked = fresh.with_columns(new=pl.col("evidence_id").is_in(new["evidence_id"].implode()))
        seen = pl.concat([seen.join(rows, on="evidence_id", how="semi"), marked])
        self._looked_up = (names, seen)
        return rows.join(seen.filter("new"), on="evidence_id", how="semi", maintain_order="left")


def _without(rows: pl.LazyFrame, readers: Sequence[SnapshotReader], scopes: list[str] | None = None) -> pl.LazyFrame:
    """The rows whose observation no snapshot has; if there are few scopes only those are searched."""
    few = scopes is not None and len(scopes) <= _FEW_SCOPES
    for reader in readers:
        held = reader.evidence_of(scopes or ()) if few else reader.all_evidence()
        rows = rows.join(held.select(_IDENTITY), on=_IDENTITY, how="anti")
    return rows


class ServedIds:
    """The topics of one snapshot by id, including tombstones, read from its graph on first use."""

    def __init__(self, reader: SnapshotReader) -> None:
        self.reader = reader
        self._rows = empty(TOPIC.schema).select(_TOPIC_COLUMNS)
        self._asked: set[str] = set()

    def rows(self, ids: Sequence[str]) -> pl.DataFrame:
        """The rows (id, scope, merged_into) of all topics looked up so far, including these."""
        fresh = [each for each in ids if each not in self._asked]
        if fresh:
            # Kuzu compares each topic with each id; many ids are found faster in a copy of the column.
            where = "r.id IN $ids" if len(fresh) <= _MANY_IDS else ""
            found = self.reader.graph.read(TOPIC, _TOPIC_COLUMNS, where, **({"ids": fresh} if where else {}))
            self._rows = pl.concat([self._rows, found.filter(pl.col("id").is_in(fresh))])
            self._asked.update(fresh)
        return self._rows


def _placed(rows: pl.DataFrame, served: Sequence[ServedIds]) -> pl.DataFrame:
    """The topics that rows name (columns evidence_id, topic, is_served), as far as the snapshots know them.

    They are placed among themselves as a run would place them, except that a served topic's id belongs to its scope:
    an earlier date does not take it over, but a key or title of the scope that makes the id does. The result is then
    followed through aliases and merges to the served topic.
    """
    named = rows.filter(names_a_topic())
    given = named["topic_id"].drop_nulls().unique().to_list()
    owned = pl.concat([_NO_TOPICS, *(ids.rows(given).select(topic_id="id", scope="scope") for ids in served)])
    is_foreign = (pl.col("_maker") != pl.col("scope")).fill_null(False)
    owned = owned.join(_makers(named), on="topic_id", how="left").filter(~is_foreign).drop("_maker")
    placed = place_named(named, owned).placements.select("evidence_id", "scope", anchor="topic_id")
    keys = named.select("evidence_id", "placement", "title", "topic_kind", "topic_id", "topic_key")
    placed = placed.join(keys, on="evidence_id")
    found = placed.select("evidence_id", "scope", "anchor", topic=pl.lit(None, pl.String))
    for ids in served:
        here = _followed(placed, ids)
        found = found.join(here, on="evidence_id", how="left", maintain_order="left")
        found = found.with_columns(topic=pl.coalesce("topic", "_topic")).drop("_topic")
    is_served = pl.col("topic").is_not_null()
    return found.select("evidence_id", topic=pl.coalesce("topic", "anchor"), is_served=is_served)


def _makers(named: pl.DataFrame) -> pl.DataFrame:
    """The scopes whose rows make ids by key, title or placement (columns topic_id, _maker)."""
    made = place_named(named.filter(pl.col("topic_id").is_null()), _NO_TOPICS)
    ids = [made.placements.select("topic_id", _maker="scope"), made.aliases.select(topic_id="alias", _maker="scope")]
    return pl.concat(ids).unique("topic_id")


def _followed(placed: pl.DataFrame, served: ServedIds) -> pl.DataFrame:
    """The topic of one snapshot that each anchor leads to within its scope (columns evidence_id, _topic)."""
    owners = served.reader.aliases.select("scope", anchor="alias", _owner="topic_id")
    at = placed.join(owners, on=["scope", "anchor"], how="left", maintain_order="left")
    at = at.with_columns(_at=pl.coalesce("_owner", _of_any_kind(placed, served.reader), "anchor"))
    for _ in range(_STEPS):
        topics = served.rows(at["_at"].drop_nulls().unique().to_list())
        merged = topics.filter(pl.col("merged_into").is_not_null())
        if not at["_at"].is_in(merged["id"].implode()).any():
            break
        at = at.with_columns(pl.col("_at").replace(merged["id"], merged["merged_into"]))
    known = topics.select("id", "scope")
    return at.join(known, left_on=["_at", "scope"], right_on=["id", "scope"]).select("evidence_id", _topic="_at")


def _of_any_kind(placed: pl.DataFrame, reader: SnapshotReader) -> pl.Series:
    """For a title without a kind, the topic that had this title first; null otherwise."""
    title = normalised(pl.col("title")).alias("_title")
    asked = placed.with_columns(title).with_columns(
        _asks=pl.all_horizontal(pl.col("topic_id", "topic_key", "topic_kind").is_null())
        & (pl.col("placement") != "new_topic").fill_null(True)
    )
    scopes = set(asked.filter("_asks")["scope"]) & set(reader.scopes)
    if not scopes:
        return pl.Series("_of_any_kind", [None] * placed.height, pl.String)
    titled = pl.concat([reader.topics(scope).frame for scope in sorted(scopes)])
    owners = titled.filter(pl.col("id").is_in(reader.aliases["topic_id"].implode())).with_columns(title)
    first = owners.sort("created_at", "id").unique(["scope", "_title"], keep="first", maintain_order=True)
    joined = asked.join(
        first.select("scope", "_title", _first="id"), on=["scope", "_title"], how="left", maintain_order="left"
    )
    return joined.select(pl.when("_asks").then("_first").alias("_of_any_kind")).to_series()
