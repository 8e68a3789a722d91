"""What the ledger records of a shard up to one state: evidence, transitions, accesses, policy, logical time.

The state is either that of a run that has not published yet, or that of a published snapshot. Nothing is read
from the run's own tables or from the snapshot's manifest, so damage to either is detected.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import polars as pl
from msgspec import json as msgjson

from memstate_core.model.frames import Schema, empty
from memstate_core.model.ledger_tables import ACCESSES, EVIDENCE, TRANSITIONS
from memstate_core.model.scope import scopes_of_shard
from memstate_core.policy.settings import Policy
from memstate_core.run.publications import ERASURE, REEMBEDDING, publications
from memstate_core.run.run import Run
from memstate_core.run.store import Store
from memstate_core.state.fold.decisions import PERSON, PUBLISHED, READMITTED, set_aside
from memstate_core.state.fold.rollbacks import ROLLED_BACK
from memstate_core.state.fold.shard_history import of_shard
from memstate_core.state.snapshots import Manifest

EVIDENCE_COLUMNS = (
    "evidence_id", "observation_id", "scope", "observed_at", "placement", "topic_id", "topic_key", "topic_kind",
    "title", "summary", "fields", "edges",
)  # fmt: skip


@dataclass(frozen=True)
class Recorded:
    """The ledger's record of one state.

    Attributes:
        shard: the shard.
        now: the logical time of the state.
        policy: the policy of the run that made it.
        transitions: every decision in effect up to the state, in order (columns TRANSITIONS), publications left out.
        last: those of the run that made the state.
        since_night: those since the last night, this run's own among them; of a night, its own. A night is a run
            without manual actions that is neither a change of the model nor an erasure.
        evidence: columns EVIDENCE_COLUMNS, in no order, without what is set aside.
        accesses: columns ACCESSES, each access once, those of other shards among them, without what is set aside.
        fresh_accesses: those that the base did not have.
        base: the manifest, as recorded, of the snapshot that the run started from.
        unseen: the decisions in effect that the base's run may not have seen, all that it took among them.
    """

    shard: str
    now: datetime
    policy: Policy
    transitions: pl.DataFrame
    last: pl.DataFrame
    since_night: pl.DataFrame
    evidence: pl.DataFrame
    accesses: pl.DataFrame
    fresh_accesses: pl.DataFrame
    base: Manifest | None
    unseen: pl.DataFrame

    def before(self) -> Recorded:
        """The same without the last run's decisions; evidence and accesses are those of the state."""
        mark = self.last["seq"].min()
        earlier = self.transitions if mark is None else self.transitions.filter(pl.col("seq") < mark)
        return replace(self, transitions=earlier, last=self.last.clear())


def recorded_by_run(store: Store, run: Run) -> Recorded:
    """What the ledger will record once a run publishes: its pinned inputs, and its own decisions."""
    facts = run.facts
    earlier = _transitions(store, facts.shard, facts.transitions_version)
    published = publications(store, facts.shard)
    # A rollback names the number of a publication, which `earlier` leaves out; its own decisions come after it.
    first = 1 + max(_last_seq(earlier), *(seq for seq, _ in published), 0)
    last = run.transitions(first).filter(pl.col("kind") != PUBLISHED)
    versions = {"evidence": facts.evidence_version, "accesses": facts.accesses_version}
    known = {manifest.number: manifest for _, manifest in published}
    base = None if facts.base is None else known.get(facts.base)
    account = (facts.shard, facts.now, facts.policy, facts.shards)
    rows, found = _in_effect(pl.concat([earlier, last]), published)
    decided = (rows, last, last if _is_night(facts.run_id, last) else _after_night(found, rows))
    seen = _before_run(published, base, _taken_over(rows, facts.shard))
    return _recorded(store, account, decided, versions, base, seen)


def recorded_for(store: Store, shard: str, number: int) -> Recorded | None:
    """What the ledger records of a published snapshot, or None if it records none of this number.

    A rebuild publishes the state of an earlier run again; the state is then attributed to that run's decisions.
    """
    published = _up_to(publications(store, shard), number)
    if not published:
        return None
    seq, manifest = published[-1]
    earlier = _transitions(store, shard, store.ledger.version("transitions")).filter(pl.col("seq") <= seq)
    rows, found = _in_effect(earlier, published)
    since, base = _start(found, rows)
    versions = {"evidence": manifest.evidence_version, "accesses": manifest.accesses_version}
    account = (shard, manifest.now, manifest.policy, store.layout.count)
    last = rows.filter(pl.col("seq") > since)
    earlier_runs = [publication for publication in found if publication[0] <= since]
    by_night = _is_night(_behind(found, since), last)
    decided = (rows, last, last if by_night else _after_night(earlier_runs, rows))
    return _recorded(store, account, decided, versions, base)


def bases(store: Store, shard: str, numbers: Iterable[int]) -> list[Manifest]:
    """The snapshots, as recorded, that the runs behind some published ones started from."""
    known, rows = publications(store, shard), _transitions(store, shard, store.ledger.version("transitions"))
    histories = [published for number in numbers if (published := _up_to(known, number))]
    effects = [_in_effect(rows.filter(pl.col("seq") <= found[-1][0]), found) for found in histories]
    starts = [_start(found, in_effect)[1] for in_effect, found in effects]
    return [base for base in starts if base is not None]


def manual(decisions: pl.DataFrame) -> pl.DataFrame:
    """The decisions that a person took; a night records none."""
    actor = pl.col("payload_json").str.json_path_match("$.actor")
    return decisions.filter(actor == PERSON)


def _up_to(published: list[tuple[int, Manifest]], number: int) -> list[tuple[int, Manifest]]:
    """The publications up to the last one of a number; none if it was never published."""
    found = [publication for publication in published if publication[1].number <= number]
    return found if found and found[-1][1].number == number else []


def _after_night(runs: list[tuple[int, Manifest]], rows: pl.DataFrame) -> pl.DataFrame:
    """The decisions since the last of some runs that was a night."""
    while runs:
        end, (since, _) = runs[-1][0], _start(runs, rows)
        if _is_night(_behind(runs, since), rows.filter(pl.col("seq").is_between(since, end, closed="right"))):
            return rows.filter(pl.col("seq") > end)
        runs = [run for run in runs if run[0] <= since]
    return rows


def _is_night(run_id: str, decided: pl.DataFrame) -> bool:
    return not run_id.startswith((REEMBEDDING, ERASURE)) and manual(decided).is_empty()


def _behind(published: list[tuple[int, Manifest]], since: int) -> str:
    """The id of the run that made the state of the last of some publications, given where its decisions begin."""
    return next(manifest.run_id for seq, manifest in published if seq > since)


def _start(found: list[tuple[int, Manifest]], rows: pl.DataFrame) -> tuple[int, Manifest | None]:
    """The first transition of the run behind the last of some publications, and the base of that run."""
    place, end = len(found) - 1, found[-1][0]
    while place > 0:
        since, base = found[place - 1]
        decided = rows.filter(pl.col("seq").is_between(since, end, closed="none")).height
        if decided or _state(base) != _state(found[-1][1]):
            return since, base
        place -= 1
    return _taken_over(rows, found[-1][1].shard), None


def _in_effect(
    rows: pl.DataFrame, published: list[tuple[int, Manifest]]
) -> tuple[pl.DataFrame, list[tuple[int, Manifest]]]:
    """The decisions and publications that no rollback undid: those up to where the last one leads, and all since it."""
    last = rows.filter(pl.col("kind") == ROLLED_BACK).sort("seq").tail(1)
    if last.is_empty():
        return rows, published
    at, to = int(last["seq"][0]), int(msgjson.decode(last["payload_json"][0])["seq"])
    before = [publication for publication in published if publication[0] <= to]
    kept, known = _in_effect(rows.filter(pl.col("seq") <= to), before)
    later = [publication for publication in published if publication[0] > at]
    return pl.concat([kept, rows.filter(pl.col("seq") >= at)]), [*known, *later]


def _state(manifest: Manifest) -> tuple[Any, ...]:
    versions = (manifest.evidence_version, manifest.accesses_version)
    return (manifest.now, manifest.policy_hash, manifest.state_hash, *versions)


def _taken_over(rows: pl.DataFrame, shard: str) -> int:
    """The number of the last decision that a shard took over from earlier ones as it began; -1 for none."""
    return int(rows.select(pl.col("seq").filter(pl.col("shard") != shard).max().fill_null(-1)).item())


def _before_run(published: list[tuple[int, Manifest]], base: Manifest | None, first: int) -> int:
    """The number of the last transition that was surely there when the run behind a snapshot began; `first` if none."""
    earlier = [first]
    for seq, manifest in published:
        if base is not None and manifest.number == base.number:
            return earlier[-1]
        earlier.append(seq)
    return -1


def _transitions(store: Store, shard: str, version: int | None) -> pl.DataFrame:
    if version is None:
        return empty(TRANSITIONS)
    rows = of_shard(store.ledger.scan("transitions", version), shard)
    return rows.filter(pl.col("kind") != PUBLISHED).sort("seq").collect()


def _last_seq(rows: pl.DataFrame) -> int:
    return int(rows.select(pl.col("seq").max().fill_null(0)).item())


def _recorded(
    store: Store,
    account: tuple[str, datetime, dict[str, Any], int],
    decided: tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame],
    versions: dict[str, int | None],
    base: Manifest | None,
    since: int = -1,
) -> Recorded:
    shard, now, policy, shards = account
    transitions, last, since_night = decided
    left_out = set_aside(transitions)
    evidence = _rows(store, "evidence", versions["evidence"], {name: EVIDENCE[name] for name in EVIDENCE_COLUMNS})
    accesses = _rows(store, "accesses", versions["accesses"], ACCESSES).unique("access_id")
    accesses = accesses.filter(~pl.col("access_id").is_in(left_out.implode()))
    known = _rows(store, "accesses", None if base is None else base.accesses_version, {"access_id": pl.String})
    readmitted = last.filter(pl.col("kind") == READMITTED)["evidence_ids"].explode().drop_nulls()
    known = known.filter(~pl.col("access_id").is_in(readmitted.implode()))
    return Recorded(
        shard=shard,
        now=now,
        policy=Policy.recorded(policy),
        transitions=transitions,
        last=last,
        since_night=since_night,
        evidence=_of_shard(evidence, shard, shards).filter(~pl.col("evidence_id").is_in(left_out.implode())),
        accesses=accesses,
        fresh_accesses=accesses.join(known, on="access_id", how="anti"),
        base=base,
        unseen=transitions.filter(pl.col("seq") > since),
    )


def _rows(store: Store, table: str, version: int | None, columns: Schema) -> pl.DataFrame:
    if version is None:
        return empty(columns)
    return store.ledger.scan(table, version).select(columns.keys()).collect()


def _of_shard(evidence: pl.DataFrame, shard: str, shards: int) -> pl.DataFrame:
    own = scopes_of_shard(evidence["scope"].unique(), shard, shards)
    return evidence.filter(pl.col("scope").is_in(own.implode()))
