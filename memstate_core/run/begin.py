"""Begins a run: recovers from a killed run, pins the inputs, copies the graph."""

from __future__ import annotations

import shutil
from datetime import datetime
from typing import Any

import polars as pl
from msgspec import json as msgjson

from memstate_core.model.errors import LedgerDamaged, SnapshotDamaged
from memstate_core.model.frames import conform, empty, project
from memstate_core.model.ledger_tables import ACCESSES, DECISION
from memstate_core.model.step_frames import ALIASES, EVIDENCE_TOPIC
from memstate_core.run.base_check import require_evidence, sound_base
from memstate_core.run.run import GRAPH_FILE, Run, RunFacts
from memstate_core.run.step import StepResult
from memstate_core.run.store import Store
from memstate_core.run.view import decisions, left_out_rows, shard_evidence
from memstate_core.state.current import move_current, named_number
from memstate_core.state.files import require_space
from memstate_core.state.fold.decisions import CORRECTIONS, PUBLISHED, READMITTED, SET_ASIDE, UNREAD, merges, set_aside
from memstate_core.state.fold.identity import answering, survivors
from memstate_core.state.fold.rollbacks import ROLLED_BACK, in_effect
from memstate_core.state.fold.shard_history import of_shard
from memstate_core.state.graph import EDGE, NODE_TABLES, open_graph
from memstate_core.state.snapshots import Manifest, Snapshot, load_snapshot, numbers

_COPIES = 3
"""Sizes of the served snapshot that a run writes: its graph, changed pages of it, and the next snapshot."""

COMPACT_AT = 1.3
"""A graph file that has grown to this many times its initial size is rewritten."""


def begin_run(
    store: Store,
    shard: str,
    run_id: str,
    now: datetime,
    *,
    pinned: Manifest | None = None,
    decided_at: datetime | None = None,
    decided: pl.DataFrame | None = None,
) -> Run:
    """Starts a run of a shard; the caller holds the store's lock.

    The run sees the ledger as it is now and starts from a copy of the served snapshot. Every byte of both is compared
    with what was written first.

    A run with `decided_at` is a rollback: it starts from the pinned snapshot instead, and leaves rows that failed runs
    set aside to the next night.

    Args:
        store: the store.
        shard: which shard.
        run_id: the run's name in the ledger.
        now: its logical time.
        pinned: the manifest whose evidence, policy and model the run keeps instead of today's.
        decided_at: the time of the decisions of a rollback, if this is one.
        decided: manual decisions that say already what the run reads, as those of a rollback do (columns DECISION).

    Raises:
        LedgerDamaged: the ledger lacks something that was acknowledged, or holds other bytes than were written.
        SnapshotDamaged: the served snapshot has other files than its manifest says.
        DiskFull: the disk has no room for the run's copy of the graph and for what it publishes.
    """
    recorded = recover(store, shard)
    earlier = pinned.number if pinned is not None and decided_at is not None else None
    base = sound_base(store, shard, earlier)
    facts = RunFacts(
        run_id=run_id,
        shard=shard,
        shards=store.layout.count,
        now=now,
        number=next_number(store, shard, recorded),
        base=None if base is None else base.manifest.number,
        evidence_version=store.ledger.version("evidence") if pinned is None else pinned.evidence_version,
        transitions_version=store.ledger.version("transitions"),
        accesses_version=store.ledger.version("accesses") if pinned is None else pinned.accesses_version,
        ledger_head=store.ledger.chain.head,
        fresh_graph=base is None or _is_bloated(base),
        embedding_model=store.encoder.model if pinned is None else pinned.embedding_model,
        policy=store.settings.policy.model_dump(mode="json") if pinned is None else pinned.policy,
        decided_at=decided_at,
    )
    if base is not None:
        require_space(store.home.root, _COPIES * base.size)
    run = Run.begin(store.home.work(shard), facts)
    if decided is not None:
        run.decide(CORRECTIONS, decided)
    require_evidence(store, run, base_links(store, run)["evidence_id"])
    if decided_at is None:
        run.take_pending()
    if pinned is None:
        _take_unread(store, run)
    stage_graph(store, run)
    return run


def _take_unread(store: Store, run: Run) -> None:
    """Decides that the run reads what shards had not read when their number changed (`UNREAD`)."""
    version = run.facts.transitions_version
    if version is None:
        return
    kinds = pl.col("kind").is_in([SET_ASIDE, READMITTED, ROLLED_BACK])
    rows = in_effect(of_shard(store.ledger.scan("transitions", version), run.facts.shard).filter(kinds).collect())
    unread = rows.filter(pl.col("payload_json").str.json_path_match("$.actor") == UNREAD)
    waiting = unread.filter(pl.col("evidence_ids").list.first().is_in(set_aside(rows.sort("seq")).implode()))
    if waiting.height:
        decided = waiting.with_columns(kind=pl.lit(READMITTED), reason=pl.lit("read by the first night since"))
        run.decide(SET_ASIDE, pl.concat([run.decisions(SET_ASIDE), project(decided, DECISION)]))


def new_evidence(store: Store, run: Run) -> StepResult:
    """The evidence that the served snapshot does not know yet (columns evidence_id, observation_id, scope)."""
    have = shard_evidence(store.ledger, run, ["evidence_id", "observation_id", "scope"])
    new = have.join(base_links(store, run), on="evidence_id", how="anti").sort("evidence_id")
    scopes = new.group_by("scope").agg(evidence=pl.len()).sort("evidence", "scope", descending=[True, False])
    return StepResult(new, {"evidence": new.height, "evidence_total": have.height}, {"new evidence": scopes.head(20)})


def new_accesses(store: Store, run: Run) -> pl.DataFrame:
    """Accesses that the served snapshot does not include yet (columns ACCESSES), ids resolved to current topics."""
    followed = survivors(merges(decisions(store.ledger, run)))
    rows = unread_accesses(store, run)
    return rows.with_columns(answering(pl.col("topic_id"), run.table("aliases", ALIASES), followed))


def unread_accesses(store: Store, run: Run) -> pl.DataFrame:
    """Accesses that the served snapshot does not include yet (columns ACCESSES), without what is set aside."""
    now, base = run.facts.accesses_version, run.facts.base
    readmitted = run.decisions(SET_ASIDE).filter(pl.col("kind") == READMITTED)["evidence_ids"].explode().drop_nulls()
    if now is None:
        return empty(ACCESSES)
    rows = store.ledger.scan("accesses", now)
    if base is not None:
        known = load_snapshot(store.home, run.facts.shard, base).manifest.accesses_version
        if known is not None:
            read = store.ledger.scan("accesses", known).select("access_id")
            read = read.filter(~pl.col("access_id").is_in(readmitted.implode()))
            rows = rows.join(read, on="access_id", how="anti")
    return rows.filter(~pl.col("access_id").is_in(left_out_rows(store.ledger, run).implode())).collect()


def base_links(store: Store, run: Run) -> pl.DataFrame:
    """Evidence of the snapshot that the run started from, with its topic there (columns EVIDENCE_TOPIC)."""
    if run.facts.base is None:
        return empty(EVIDENCE_TOPIC)
    path = load_snapshot(store.home, run.facts.shard, run.facts.base).path / "evidence.parquet"
    return conform(pl.read_parquet(path, columns=list(EVIDENCE_TOPIC), glob=False), EVIDENCE_TOPIC)


def recover(store: Store, shard: str) -> int | None:
    """Completes or discards what a killed run left.

    A run's commit point is the ledger's record that it published. If that record names a later snapshot
    than CURRENT does, or CURRENT names none, CURRENT is moved now. A folder that no record names was never published
    and is removed.

    Returns:
        The number of the last snapshot that the ledger records as published.

    Raises:
        LedgerDamaged: the recorded decisions are not as they were written, or lack a snapshot that CURRENT names.
    """
    store.ledger.chain.require_sound(tables=("transitions",))
    recorded = last_published(store, shard)
    kept = numbers(store.home, shard)
    named = named_or_zero(store, shard)
    if named > (recorded or 0):
        lost = f"transitions: {shard}/{named} was published, the last snapshot on record is {recorded or 'none'}"
        raise LedgerDamaged(str(store.home.ledger), [lost])
    if recorded in kept and recorded > named:
        move_current(store.home, shard, recorded)
    unpublished = [number for number in kept if number > (recorded or 0)]
    for number in unpublished:
        shutil.rmtree(store.home.snapshots(shard) / str(number))
    return recorded


def named_or_zero(store: Store, shard: str) -> int:
    """The number that CURRENT names; 0 where it names no snapshot."""
    try:
        return named_number(store.home, shard) or 0
    except SnapshotDamaged:
        return 0


def next_number(store: Store, shard: str, recorded: int | None) -> int:
    """The number of the shard's next snapshot, given the last recorded one; a recorded number is never reused."""
    return 1 + max(recorded or 0, *numbers(store.home, shard), 0)


def last_published(store: Store, shard: str) -> int | None:
    """The number of the last snapshot that the ledger records as published."""
    payload = last_published_payload(store, shard)
    return None if payload is None else int(payload["number"])


def last_published_payload(store: Store, shard: str) -> dict[str, Any] | None:
    """What the ledger recorded with the last published snapshot."""
    rows = store.ledger.scan("transitions").filter((pl.col("shard") == shard) & (pl.col("kind") == PUBLISHED))
    last = rows.sort("seq").tail(1).select("payload_json").collect()
    return msgjson.decode(last.item()) if last.height else None


def _is_bloated(base: Snapshot) -> bool:
    return (base.path / GRAPH_FILE).stat().st_size > COMPACT_AT * base.manifest.graph_fresh_bytes


def stage_graph(store: Store, run: Run) -> None:
    """Makes the working graph of a run: a copy of its base's, or a new one."""
    number = run.facts.base
    base = None if number is None else load_snapshot(store.home, run.facts.shard, number)
    if base is not None and not run.facts.fresh_graph:
        shutil.copyfile(base.path / GRAPH_FILE, run.graph)
        return
    buffer = store.settings.store.graph_buffer_mib
    with open_graph(run.graph, buffer_mib=buffer) as new:
        if base is not None:
            with open_graph(base.path / GRAPH_FILE, read_only=True, buffer_mib=buffer) as old:
                for table in (*NODE_TABLES, EDGE):
                    new.insert(table, old.read(table))
