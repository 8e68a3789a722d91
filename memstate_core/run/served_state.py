"""The input of manual actions: a shard's served topics, and all decisions that the ledger records for it."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from memstate_core.model.frames import conform
from memstate_core.model.graph_tables import REVIEWS
from memstate_core.model.ids import key_id
from memstate_core.model.ledger_tables import TRANSITIONS
from memstate_core.model.step_frames import ALIASES, EVIDENCE_TOPIC
from memstate_core.run.run import GRAPH_FILE
from memstate_core.run.store import Store
from memstate_core.state.absent import unreadable
from memstate_core.state.current import served
from memstate_core.state.fold.decisions import PUBLISHED
from memstate_core.state.fold.identity import answering
from memstate_core.state.fold.rollbacks import in_effect, undone_by_rollbacks
from memstate_core.state.fold.shard_history import of_shard
from memstate_core.state.graph import REVIEW, TOPIC, open_graph
from memstate_core.state.snapshots import Snapshot

_COLUMNS = [
    "id", "scope", "title", "topic_kind", "salience", "state", "pinned", "merged_into", "created_at", "updated_at",
    "reinforced_at",
]  # fmt: skip


@dataclass(frozen=True)
class Served:
    """The served state of a shard.

    Attributes:
        snapshot: the served snapshot.
        transitions: its decisions in effect in order (columns TRANSITIONS), publications left out.
        topics: columns id, scope, title, topic_kind, salience, state, pinned, merged_into (the topic it resolves
            to), created_at, updated_at, reinforced_at; tombstones among them.
        aliases: columns ALIASES.
        evidence_topic: the topic of each piece of evidence (columns EVIDENCE_TOPIC).
        reviews: the topics that wait for review (columns REVIEWS).
        rolled_back: the decisions that rollbacks undid (columns TRANSITIONS, rolled_back_at).
    """

    snapshot: Snapshot
    transitions: pl.DataFrame
    topics: pl.DataFrame
    aliases: pl.DataFrame
    evidence_topic: pl.DataFrame
    reviews: pl.DataFrame
    rolled_back: pl.DataFrame

    def answering(self, ids: pl.Expr) -> pl.Expr:
        """The topic that an id resolves to today, or the id itself if there is none."""
        dead = self.topics.filter(pl.col("merged_into").is_not_null())
        return answering(ids, self.aliases, dead.select(dropped="id", survivor="merged_into"))

    def living(self, name: str) -> str | None:
        """The id of the living topic that an id resolves to, or None."""
        found = pl.DataFrame({"id": [name]}).select(self.answering(pl.col("id")))
        alive = self.topics.filter(pl.col("merged_into").is_null())
        return str(found.item()) if found["id"].is_in(alive["id"].implode()).item() else None

    def keyed(self, key: str) -> pl.DataFrame:
        """The living topics that a `topic_key` names, or that took over those it named (columns id, scope, title)."""
        scopes = self.topics.select(pl.col("scope").cast(pl.String).unique())
        ids = scopes.select(id=self.answering(key_id(pl.col("scope"), pl.lit(key)))).unique()
        alive = self.topics.filter(pl.col("merged_into").is_null())
        return alive.join(ids, on="id", how="semi").select("id", "scope", "title")


def read_served(store: Store) -> dict[str, Served]:
    """Every shard that serves a snapshot, by name; every byte is compared with what was written first.

    Raises:
        StoreNotFound: no shard does.
        SnapshotDamaged: a snapshot has other files than its manifest says.
        SnapshotAbsent: one is not on this machine.
        LedgerDamaged: the recorded decisions are not as they were written.
    """
    store.ledger.chain.require_sound(tables=("transitions",))
    return {snapshot.manifest.shard: _read(store, snapshot) for snapshot in served(store.home, store.shards)}


def _read(store: Store, snapshot: Snapshot) -> Served:
    if problems := snapshot.damage():
        raise unreadable(store.home, snapshot.name, problems)
    mine = of_shard(store.ledger.scan("transitions"), snapshot.manifest.shard).filter(pl.col("kind") != PUBLISHED)
    with open_graph(snapshot.path / GRAPH_FILE, read_only=True) as graph:
        topics, reviews = graph.read(TOPIC, _COLUMNS), graph.read(REVIEW)
    recorded = conform(mine.sort("seq").collect(), TRANSITIONS)
    return Served(
        snapshot=snapshot,
        transitions=in_effect(recorded),
        topics=topics,
        aliases=conform(pl.read_parquet(snapshot.path / "aliases.parquet", glob=False), ALIASES),
        evidence_topic=conform(
            pl.read_parquet(snapshot.path / "evidence.parquet", columns=list(EVIDENCE_TOPIC), glob=False),
            EVIDENCE_TOPIC,
        ),
        reviews=conform(reviews, REVIEWS),
        rolled_back=undone_by_rollbacks(recorded),
    )
