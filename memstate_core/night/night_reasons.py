"""The reasons for which a shard has a night although others go without (`nights_due`).

Each is one way in which a night might give another state than the served one, but for saliences. Whatever is in doubt
is a reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

import polars as pl

from memstate_core import __version__
from memstate_core.forget.due import ladder_is_due
from memstate_core.model.errors import MemstateError
from memstate_core.night.written_since import WrittenSince
from memstate_core.policy.settings import Policy
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.revise.duplicates import unsearched
from memstate_core.run.publications import manifest_problems
from memstate_core.run.run import deaths_path, pending_path
from memstate_core.run.store import Store
from memstate_core.state.fold.decisions import UNREAD, set_aside
from memstate_core.state.fold.ladder_state import ladder_state
from memstate_core.state.fold.rollbacks import in_effect
from memstate_core.state.fold.shard_history import of_shard
from memstate_core.state.graph import EDGE, REVISION, TOPIC, Graph
from memstate_core.state.snapshots import Manifest, Snapshot

UNREADABLE = "it serves no snapshot that can be read"


@dataclass(frozen=True)
class ShardAsServed:
    """A shard that serves a snapshot.

    Attributes:
        store: its store.
        served: the snapshot.
        now: the logical time of the night that is in question.
        written: what the ledger records of all shards.
    """

    store: Store
    served: Snapshot
    now: datetime
    written: WrittenSince

    @property
    def made(self) -> Manifest:
        """The manifest of the snapshot."""
        return self.served.manifest

    @property
    def policy(self) -> Policy:
        """The policy of the settings."""
        return self.store.settings.policy

    @cached_property
    def decisions(self) -> pl.DataFrame:
        """Its decisions in effect, in order, of the kinds that `WrittenSince.decisions` has."""
        return in_effect(of_shard(self.written.decisions.lazy(), self.made.shard).collect())


def reason_for_night(shard: ShardAsServed) -> str | None:
    """Why a shard has a night; None if it has none."""
    reason = next((text for text, holds in _REASONS if holds(shard)), None)
    if reason is not None:
        return reason
    try:
        with SnapshotReader(shard.served, buffer_mib=shard.store.settings.store.graph_buffer_mib) as reader:
            return _reason_in_graph(shard, reader)
    except (MemstateError, OSError, pl.exceptions.PolarsError):
        return UNREADABLE


def _reason_in_graph(shard: ShardAsServed, reader: SnapshotReader) -> str | None:
    if _is_accessed(shard, reader):
        return "accesses wait for it"
    links = pl.scan_parquet(shard.served.path / "evidence.parquet", glob=False)
    if links.select(pl.col("topic_id").null_count()).collect().item():
        return "evidence has no topic yet"
    if _takes_effect(shard, reader.graph):
        return "values or edges take effect or end"
    if _is_searched(shard, reader.graph):
        return "scopes wait for a search of duplicates"
    ladder = ladder_state(shard.decisions)
    return "forgetting is due" if ladder_is_due(reader.graph, links, ladder, shard.now, shard.policy) else None


def _is_old(shard: ShardAsServed) -> bool:
    age = shard.now - shard.made.now
    return not timedelta(0) <= age < timedelta(days=shard.store.settings.schedule.skip_unchanged_days)


def _is_interrupted(shard: ShardAsServed) -> bool:
    work = shard.store.home.work(shard.made.shard)
    return work.exists() or deaths_path(work).exists()


def _is_unrecorded(shard: ShardAsServed) -> bool:
    """Whether the ledger does not record the served snapshot as the last one, or was rewritten since."""
    head, last = shard.made.ledger_head, shard.written.recorded.get(shard.made.shard)
    known = head is not None and shard.store.ledger.chain.holds(head)
    return not known or bool(manifest_problems(shard.made, last))


def _has_rows_aside(shard: ShardAsServed) -> bool:
    """Whether rows wait that were set aside for the next night, by a failed run or a change of shards."""
    by = pl.col("payload_json").str.json_path_match("$.actor")
    unread = shard.decisions.filter(by == UNREAD)["evidence_ids"].explode()
    waiting = set_aside(shard.decisions)
    pending = pending_path(shard.store.home.work(shard.made.shard)).exists()
    return pending or bool(waiting.is_in(unread.implode()).any())


def _is_accessed(shard: ShardAsServed, reader: SnapshotReader) -> bool:
    accessed = shard.written.accessed_since(shard.made.accesses_version)
    if accessed.is_empty():
        return False
    known = pl.concat([reader.graph.read(TOPIC, ["id"])["id"], reader.aliases["alias"]])
    return bool(accessed.is_in(known.implode()).any())


def _takes_effect(shard: ShardAsServed, graph: Graph) -> bool:
    """Whether a value or an edge came into force since the snapshot was made, or an edge ended."""
    since = {"since": shard.made.now.replace(tzinfo=None), "now": shard.now.replace(tzinfo=None)}
    began, ended = (f"r.{name} > $since AND r.{name} <= $now" for name in ("valid_from", "valid_until"))
    values = graph.read(REVISION, ["id"], f"r.part = 'field' AND {began}", **since)
    return bool(values.height or graph.read(EDGE, ["kind"], f"({began}) OR ({ended})", **since).height)


def _is_searched(shard: ShardAsServed, graph: Graph) -> bool:
    """Whether duplicates are looked for in a scope with more than one active topic."""
    scopes = unsearched(shard.decisions, shard.made.embedding_model, shard.policy.digest())
    if scopes is not None and scopes.is_empty():
        return False
    active = graph.read(TOPIC, ["scope"], "r.state = 'active'")["scope"]
    several = active.filter(active.is_duplicated()).unique()
    return bool(several.len() if scopes is None else several.is_in(scopes.implode()).any())


_REASONS: tuple[tuple[str, Callable[[ShardAsServed], bool]], ...] = (
    ("its snapshot is as old as the settings allow", _is_old),
    ("another version of memstate made its snapshot", lambda shard: shard.made.made_by != __version__),
    ("the conditions were not checked on its snapshot", lambda shard: shard.made.checked_by != __version__),
    ("the policy changed", lambda shard: Policy.recorded(shard.made.policy) != shard.policy),
    ("the encoder changed", lambda shard: shard.made.embedding_model != shard.store.encoder.model),
    ("a run of it was interrupted", _is_interrupted),
    ("its snapshot is not the last one that the ledger records", _is_unrecorded),
    ("decisions were recorded since", lambda shard: shard.written.decided_since(shard.made.shard)),
    ("evidence waits for it", lambda shard: shard.written.waiting[shard.made.shard].rows != 0),
    ("rows that were set aside wait for it", _has_rows_aside),
)
"""The reasons that need no graph, cheap ones first."""
