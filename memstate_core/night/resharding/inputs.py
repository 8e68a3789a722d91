"""What a change of the number of shards starts from: the served snapshots, as one state for all new shards.

The new shards have one policy, model and logical time, and one version of each table of the ledger. Old shards differ
in time and versions, since their nights ran one after another. So the state is aged to the latest of their times, and
rows that some had not read by the latest version are set aside until the first night (`UNREAD`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

import polars as pl
from msgspec import structs

from memstate_core import __version__
from memstate_core.model.errors import ReshardRefused, StagingMissing
from memstate_core.model.frames import empty, project
from memstate_core.model.ids import sha256_text
from memstate_core.model.ledger_tables import DECISION
from memstate_core.model.scope import Layout, scopes_of_shard
from memstate_core.policy.settings import Policy
from memstate_core.revise.duplicates import unsearched
from memstate_core.run.base_check import require_ledger
from memstate_core.run.run import Run, pending_path
from memstate_core.run.served_state import Served
from memstate_core.run.store import Store
from memstate_core.state.files import require_space
from memstate_core.state.fold.decisions import PERSON, RESHARDED, SET_ASIDE, UNREAD
from memstate_core.state.snapshots import Manifest

RESHARDING = "reshard-"
"""How the run ids of changes of the number of shards begin."""
_SIZES = 2
"""Sizes of the served snapshots that the new ones may need, working copies included."""


@dataclass(frozen=True)
class Inputs:
    """What the new shards are made of.

    Attributes:
        served: the old shards, by name.
        pinned: the policy, model, versions and logical time of the new ones; shard and number are of an old one.
        layout: the new layout.
        before: the number of shards so far.
        unread: rows that some old shards had not read (columns DECISION).
        unsearched: the scopes of which decisions wait for a search for duplicates.
    """

    served: Mapping[str, Served]
    pinned: Manifest
    layout: Layout
    before: int
    unread: pl.DataFrame
    unsearched: pl.Series


def inputs(store: Store, served: Mapping[str, Served], count: int, at: datetime | None) -> Inputs:
    """What the new shards are made of; the caller holds the store's lock.

    Args:
        store: the store.
        served: what it serves, by shard.
        count: how many shards it shall have.
        at: the logical time; None for the latest of the served snapshots.

    Raises:
        ReshardRefused: the store is in no state in which that can be done.
        LedgerDamaged: the ledger lacks something, or holds other bytes than were written.
        DiskFull: the disk has no room for the new snapshots.
    """
    _require_whole(store, served, count)
    manifests = [each.snapshot.manifest for each in served.values()]
    _require_alike(store, manifests, at)
    for manifest in manifests:
        require_ledger(store, manifest)
    require_space(store.home.root, _SIZES * sum(each.snapshot.size for each in served.values()))
    layout = Layout(count, store.layout.number + 1)
    now = max(manifest.now for manifest in manifests)
    known = sorted(f"{manifest.shard}/{manifest.number} {manifest.run_id}" for manifest in manifests)
    pinned = structs.replace(
        manifests[0],
        run_id=f"{RESHARDING}{sha256_text(repr((known, layout)))[:32]}",
        now=at or now,
        evidence_version=_latest(manifest.evidence_version for manifest in manifests),
        accesses_version=_latest(manifest.accesses_version for manifest in manifests),
        made_by=__version__,
    )
    unread = pl.concat([_unread(store, each, pinned) for each in served.values()])
    return Inputs(served, pinned, layout, len(served), unread, _unsearched(served, pinned))


def _latest(versions: Iterator[int | None]) -> int | None:
    return max((version for version in versions if version is not None), default=None)


def _require_whole(store: Store, served: Mapping[str, Served], count: int) -> None:
    """Refuses a store of which a run is not completed, or a shard is not served."""
    home = store.home
    if home.replica.exists():
        raise _refused(store, "it is the folder of a replica", "Change the store that it follows.")
    if count == store.layout.count:
        raise _refused(store, f"it has {count} already", "Name another number.")
    if missing := sorted({*store.shards} - {*served}):
        problem = f"nothing was published of {', '.join(missing)} yet"
        raise _refused(store, problem, "Set store.shards back if it was changed by hand; else run `memstate maintain`.")
    for shard in served:
        if pending_path(home.work(shard)).exists() or _is_unpublished(store, served[shard]):
            advice = f"Run `memstate maintain`; to give it up instead, remove {home.work(shard)} first."
            raise _refused(store, f"a run of {shard} began and has not published", advice)


def _is_unpublished(store: Store, served: Served) -> bool:
    manifest = served.snapshot.manifest
    try:
        return Run.load(store.home.work(manifest.shard)).facts.number > manifest.number
    except (StagingMissing, ValueError):
        return False


def _require_alike(store: Store, manifests: Collection[Manifest], at: datetime | None) -> None:
    """Refuses shards that follow different policies or models, which one new shard cannot."""
    policies = {Policy.recorded(manifest.policy).digest() for manifest in manifests}
    if len(policies) > 1 or len({manifest.embedding_model for manifest in manifests}) > 1:
        raise _refused(store, "its shards follow different policies or models", "Run `memstate maintain`, then again.")
    if at is not None and (latest := max(manifest.now for manifest in manifests)) > at:
        raise _refused(store, f"{at.isoformat()} is before the state that is served", f"Give {latest.isoformat()}.")


def _refused(store: Store, problem: str, advice: str) -> ReshardRefused:
    return ReshardRefused(str(store.home.root), problem, advice)


def _unread(store: Store, served: Served, pinned: Manifest) -> pl.DataFrame:
    """The rows of a shard that its snapshot was not made of and the new ones' versions have (columns DECISION)."""
    manifest = served.snapshot.manifest
    named = served.answering(pl.col("topic_id")).is_in(served.topics["id"].implode())
    found = []
    for table, key, had, has in (
        ("evidence", "evidence_id", manifest.evidence_version, pinned.evidence_version),
        ("accesses", "access_id", manifest.accesses_version, pinned.accesses_version),
    ):
        if had == has or has is None:
            continue
        rows = store.ledger.scan(table, has).select("scope", "topic_id", id=key)
        if had is not None:
            rows = rows.join(store.ledger.scan(table, had).select(id=key), on="id", how="anti")
        later = rows.unique("id").collect().sort("id")
        scopes = scopes_of_shard(later["scope"].drop_nulls().unique(), manifest.shard, len(store.shards))
        of_topic = pl.col("scope").is_null() & named if table == "accesses" else pl.lit(False)
        later = later.filter(pl.col("scope").is_in(scopes.implode()).fill_null(False) | of_topic)
        found.append(later.select("scope", "id", table=pl.lit(table)))
    if not found:
        return empty(DECISION)
    payload = pl.struct("table", was=pl.lit(None, pl.String), actor=pl.lit(UNREAD)).struct.json_encode()
    decided = pl.concat(found).with_columns(
        kind=pl.lit(SET_ASIDE), evidence_ids=pl.concat_list("id"), payload_json=payload
    )
    reason = pl.lit(f"{manifest.shard} had not read it when the number of shards was changed")
    return project(decided.with_columns(reason=reason), DECISION, nulls=("topic_id",))


def _unsearched(served: Mapping[str, Served], pinned: Manifest) -> pl.Series:
    """The scopes that the next nights of old shards would have searched for what was decided since their last."""
    policy, found = Policy.recorded(pinned.policy).digest(), [pl.Series("scope", [], pl.String)]
    for each in served.values() if len(served) > 1 else ():
        since = unsearched(each.transitions.select(DECISION.keys()), pinned.embedding_model, policy)
        found.append(each.topics["scope"].unique() if since is None else since)
    return pl.concat(found).unique().sort()


def reshard_decisions(given: Inputs, shard: str) -> pl.DataFrame:
    """What a new shard records of the change (columns DECISION): the change, and the scopes to search again."""
    payload = f'{{"from":{given.before},"to":{given.layout.count},"actor":"{PERSON}"}}'
    own = scopes_of_shard(given.unsearched, shard, given.layout.count)
    rows = pl.DataFrame({"scope": [None, *own]}, schema={"scope": pl.String})
    none = pl.lit([], pl.List(pl.String))
    columns = {"kind": pl.lit(RESHARDED), "payload_json": pl.lit(payload), "evidence_ids": none}
    reason = pl.lit(f"the number of shards was changed from {given.before} to {given.layout.count}")
    return project(rows.with_columns(reason=reason, **columns), DECISION, nulls=("topic_id",))
