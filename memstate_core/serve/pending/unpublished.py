"""What a generation does not serve yet: observations in the inbox, and evidence that the ledger took since.

The inbox is looked at before the ledger, and a file leaves the inbox only after its rows are safe in the ledger, so
between import and publication nothing is missing from both. What a snapshot holds is told by its own index.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from memstate_core.model.evidence import names_a_topic
from memstate_core.model.frames import EVIDENCE, conform, empty
from memstate_core.model.scope import scopes_of_shard
from memstate_core.model.terms import terms
from memstate_core.model.text import normalised
from memstate_core.placement.named import place_named
from memstate_core.retrieve.index.evidence import rendered
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.run.store import Store
from memstate_core.serve.pending.inbox_view import ROWS_LIMIT, InboxObservations, InboxView
from memstate_core.serve.snapshots.generation import Generation
from memstate_core.state.graph import TOPIC

_IDENTITY = ["scope", "observation_id"]
_STEPS = 64
_FEW_SCOPES = 16
_MANY_IDS = 200
_TOPIC_COLUMNS = ["id", "scope", "merged_into"]


@dataclass(frozen=True)
class Unpublished:
    """What is accepted and not served.

    Attributes:
        rows: columns EVIDENCE, the newest first, with `shown` (the evidence as text), `topic` (the topic that it names
            as it is served or will be made; null where only a run can tell) and `is_served` (whether that topic is).
        terms: every distinct term of each row (columns evidence_id, term).
        complete: whether that is all; False where a limit left something out.
    """

    rows: pl.DataFrame
    terms: pl.DataFrame
    complete: bool


class UnpublishedView:
    """What is not served yet, for several threads; made anew only when inbox, ledger or generation have changed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.inbox = InboxView(store.home.inbox, store.settings)
        self._lock = threading.Lock()
        self._beyond: tuple[object, pl.DataFrame] = (None, empty(EVIDENCE))
        self._made: tuple[object, Unpublished | None] = (None, None)
        self._looked_up: tuple[object, pl.DataFrame] = (None, pl.DataFrame())
        self._served: list[ServedIds] = []
        self._terms = terms(pl.DataFrame(schema={"evidence_id": pl.String, "text": pl.String}))

    def of(self, generation: Generation, now: datetime) -> Unpublished:
        """What a generation does not serve yet."""
        with self._lock:
            waiting = self.inbox.observations(now)
            at = (generation.names, self._store.ledger.version("evidence"))
            if self._beyond[0] != at:
                self._beyond = (at, self._since(generation))
            state, made = (at, waiting.version, waiting.complete), self._made[1]
            if made is None or self._made[0] != state:
                made = self._make(generation, waiting)
                self._made = (state, made)
            return made

    def _since(self, generation: Generation) -> pl.DataFrame:
        """Evidence that is in the ledger and not in the snapshots, the newest first, up to the limit and one."""
        shards = self._store.shards
        versions = dict.fromkeys(shards) | {
            reader.snapshot.manifest.shard: reader.snapshot.manifest.evidence_version for reader in generation.readers
        }
        found = []
        for version in set(versions.values()):
            mine = [shard for shard in shards if versions[shard] == version]
            found.append(self._of_shards(self._store.ledger.since("evidence", version), mine))
        new = _without(pl.concat(found).unique(_IDENTITY, keep="any"), generation.readers)
        return conform(new.top_k(ROWS_LIMIT + 1, by="imported_at").collect(), EVIDENCE)

    def _of_shards(self, rows: pl.LazyFrame, mine: list[str]) -> pl.LazyFrame:
        shards = self._store.shards
        if len(mine) == len(shards):
            return rows
        scopes = rows.select(pl.col("scope").unique()).collect()["scope"]
        own = pl.concat([scopes_of_shard(scopes, shard, len(shards)) for shard in mine])
        return rows.filter(pl.col("scope").is_in(own.implode()))

    def _make(self, generation: Generation, waiting: InboxObservations) -> Unpublished:
        beyond = self._beyond[1]
        inbox = self._unserved(waiting.rows, generation)
        # Of two contents of one observation the first one holds: the ledger's, then the one accepted first.
        rows = pl.concat([beyond, inbox.reverse()]).unique(_IDENTITY, keep="first", maintain_order=True)
        newest = rows.sort("imported_at", "evidence_id", descending=True).head(ROWS_LIMIT)
        text = pl.when(names_a_topic()).then(rendered()).otherwise("text")
        placed = _placed(newest, self._served_ids(generation))
        shown = newest.with_columns(shown=text).join(placed, on="evidence_id", how="left", maintain_order="left")
        complete = waiting.complete and rows.height <= ROWS_LIMIT
        return Unpublished(shown.with_columns(pl.col("is_served").fill_null(False)), self._terms_of(shown), complete)

    def _served_ids(self, generation: Generation) -> list[ServedIds]:
        """What is known of ids of topics by now, kept as long as the generation is served."""
        known = {id(each.reader): each for each in self._served}
        self._served = [known.get(id(reader)) or ServedIds(reader) for reader in generation.readers]
        return self._served

    def _terms_of(self, shown: pl.DataFrame) -> pl.DataFrame:
        """Every distinct term of each row; those of rows that were here before are not looked for again."""
        known = self._terms.join(shown, on="evidence_id", how="semi")
        fresh = shown.join(known, on="evidence_id", how="anti")
        told = fresh.select("evidence_id", text=pl.concat_str("actor", "shown", separator=" ", ignore_nulls=True))
        self._terms = pl.concat([known, terms(told).unique()])
        return self._terms

    def _unserved(self, rows: pl.DataFrame, generation: Generation) -> pl.DataFrame:
        """The rows of which no snapshot has the observation; each row is looked up once a generation."""
        seen, key = self._looked_up[1], pl.col("evidence_id", *_IDENTITY)
        if self._looked_up[0] != generation.names:
            seen = rows.clear().select(key, new=pl.lit(True))
        fresh = rows.select(key).join(seen, on="evidence_id", how="anti")
        new = _without(fresh.lazy(), generation.readers, fresh["scope"].unique().to_list()).collect()
        marked = fresh.with_columns(new=pl.col("evidence_id").is_in(new["evidence_id"].implode()))
        seen = pl.concat([seen.join(rows, on="evidence_id", how="semi"), marked])
        self._looked_up = (generation.names, seen)
        return rows.join(seen.filter("new"), on="evidence_id", how="semi", maintain_order="left")


def _without(rows: pl.LazyFrame, readers: Sequence[SnapshotReader], scopes: list[str] | None = None) -> pl.LazyFrame:
    """The rows of which no snapshot has the observation; only some scopes are looked at where they are few."""
    few = scopes is not None and len(scopes) <= _FEW_SCOPES
    for reader in readers:
        held = reader.evidence_of(scopes or ()) if few else reader.all_evidence()
        rows = rows.join(held.select(_IDENTITY), on=_IDENTITY, how="anti")
    return rows


class ServedIds:
    """The topics of one snapshot by their ids, tombstones too, read from its graph when they are first asked for."""

    def __init__(self, reader: SnapshotReader) -> None:
        self.reader = reader
        self._rows = empty(TOPIC.schema).select(_TOPIC_COLUMNS)
        self._asked: set[str] = set()

    def rows(self, ids: Sequence[str]) -> pl.DataFrame:
        """The rows (id, scope, merged_into) of all topics asked for so far, these among them."""
        fresh = [each for each in ids if each not in self._asked]
        if fresh:
            # Kuzu compares each topic with each id; many ids are quicker found in a copy of the column.
            where = "r.id IN $ids" if len(fresh) <= _MANY_IDS else ""
            found = self.reader.graph.read(TOPIC, _TOPIC_COLUMNS, where, **({"ids": fresh} if where else {}))
            self._rows = pl.concat([self._rows, found.filter(pl.col("id").is_in(fresh))])
            self._asked.update(fresh)
        return self._rows


def _placed(rows: pl.DataFrame, served: Sequence[ServedIds]) -> pl.DataFrame:
    """The topics that rows name (columns evidence_id, topic, is_served), as far as the snapshots know them.

    They are placed among themselves as a run would place them; the topic that this gives is then followed through
    aliases and merges to the one that is served.
    """
    named = rows.filter(names_a_topic())
    nobody = pl.DataFrame(schema={"topic_id": pl.String, "scope": pl.String})
    placed = place_named(named, nobody).placements.select("evidence_id", "scope", anchor="topic_id")
    told = named.select("evidence_id", "placement", "title", "topic_kind", "topic_id", "topic_key")
    placed = placed.join(told, on="evidence_id")
    found = placed.select("evidence_id", "scope", "anchor", topic=pl.lit(None, pl.String))
    for ids in served:
        here = _followed(placed, ids)
        found = found.join(here, on="evidence_id", how="left", maintain_order="left")
        found = found.with_columns(topic=pl.coalesce("topic", "_topic")).drop("_topic")
    is_served = pl.col("topic").is_not_null()
    return found.select("evidence_id", topic=pl.coalesce("topic", "anchor"), is_served=is_served)


def _followed(placed: pl.DataFrame, served: ServedIds) -> pl.DataFrame:
    """The topic of one snapshot that answers for each anchor within its scope (columns evidence_id, _topic)."""
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
    """For a title without a kind, the topic of the snapshot that bore this title first; null for all else."""
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
