"""Verification of what is served: files and manifest, the ledger, C1 to C6, and the fold of the ledger (L3)."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from memstate_core import __version__
from memstate_core.model.errors import SnapshotDamaged, StoreNotFound
from memstate_core.model.progress import tracked
from memstate_core.night.checks.suite import served_conditions
from memstate_core.night.index_audit import rebuilt_problems
from memstate_core.night.ledger_audit import UNREADABLE, ledger_problems, table_problems
from memstate_core.night.rebuild import Folded, fold_recorded
from memstate_core.retrieve.index.notes import NOTES_FILE, notes_index
from memstate_core.retrieve.index.write import index_problems
from memstate_core.run.publications import manifest_problems, recorded_manifest
from memstate_core.run.run import GRAPH_FILE
from memstate_core.run.store import Store
from memstate_core.state.absent import require_here
from memstate_core.state.current import named_number
from memstate_core.state.graph import open_graph
from memstate_core.state.kept_open import kept_open
from memstate_core.state.kept_tables import KeptTables
from memstate_core.state.ledger.beginning import Beginning
from memstate_core.state.ledger.read_once import files_read_once
from memstate_core.state.snapshots import Manifest, Snapshot, load_snapshot, numbers
from memstate_core.state.state_hash import state_hash

_INDEX = "index rebuild"


@dataclass(frozen=True)
class Verdict:
    """The verdict on one item.

    Attributes:
        name: the item.
        passed: whether it is correct.
        detail: what was found if it is not, and what could not be checked.
    """

    name: str
    passed: bool
    detail: str = ""


@kept_open()
@files_read_once()
def verify_store(store: Store, *, deep: bool = False) -> dict[str, list[Verdict]]:
    """The verdicts on every shard's served snapshot, by the name of the snapshot (or of the shard, without one).

    Args:
        store: the store.
        deep: verify the files and manifests of the other kept snapshots, too, which as-of queries read.

    Raises:
        StoreNotFound: nothing was published here.
        SnapshotAbsent: a shard is not on this machine, or was removed from it meanwhile.
    """
    found = {}
    for shard in tracked(store.shards, "verify", len(store.shards), "shards"):
        try:
            number = named_number(store.home, shard)
            snapshot = None if number is None else load_snapshot(store.home, shard, number)
        except SnapshotDamaged as error:
            found[shard] = [Verdict("served snapshot", False, error.message)]
            continue
        if snapshot is not None:
            found[snapshot.name] = verify(store, snapshot)
        others = [other for other in numbers(store.home, shard) if other != number] if deep else []
        found |= {f"{shard}/{other}": _kept(store, shard, other) for other in others}
        require_here(store.home, [shard])
    if not found:
        raise StoreNotFound(str(store.home.root))
    return found


def _kept(store: Store, shard: str, number: int) -> list[Verdict]:
    """The verdicts on a snapshot that is kept and not served."""
    try:
        snapshot = load_snapshot(store.home, shard, number)
    except SnapshotDamaged as error:
        return [Verdict("kept snapshot", False, error.message)]
    try:
        problems = manifest_problems(snapshot.manifest, recorded_manifest(store, shard, number))
    except UNREADABLE:
        problems = ["not compared, since the ledger cannot be read"]
    damage = snapshot.damage()
    verdicts = [_verdict("manifest", problems), _verdict("file digests", damage)]
    return verdicts if damage else [*verdicts, *_of_files(snapshot)]


def verify(store: Store, snapshot: Snapshot, *, chain: bool = True) -> list[Verdict]:
    """Verifies a served snapshot against its manifest and against the ledger.

    Checks that need damaged files or an unreadable ledger are not run; the verdict on these says so.

    Args:
        store: the store.
        snapshot: the snapshot.
        chain: whether to compare the files of the ledger with its chain, too.
    """
    recorded = _recorded(store, snapshot.manifest)
    audit = ledger_problems if chain else table_problems
    damage, unreadable = snapshot.damage(), audit(store, recorded or snapshot.manifest)
    left_out = "the conditions were not checked"
    verdicts = [_verdict("ledger", unreadable, left_out), *chain_verdicts(store.ledger.chain.begun)]
    if recorded is not None or not unreadable:
        verdicts.append(_verdict("manifest", manifest_problems(snapshot.manifest, recorded)))
    verdicts.append(_verdict("file digests", damage, left_out))
    if not damage:
        verdicts += _of_files(snapshot)
    return verdicts if damage or unreadable else [*verdicts, *_against_ledger(store, snapshot)]


def chain_verdicts(begun: Iterable[Beginning]) -> list[Verdict]:
    """What stays on record of a chain that was lost, for as long as the ledger lives."""
    return [Verdict("ledger chain", True, beginning.text) for beginning in begun]


def _verdict(name: str, problems: list[str], consequence: str = "") -> Verdict:
    detail = "; ".join([*problems, consequence] if problems and consequence else problems)
    return Verdict(name, not problems, detail)


def _of_files(snapshot: Snapshot) -> list[Verdict]:
    with open_graph(snapshot.path / GRAPH_FILE, read_only=True) as graph:
        tables = KeptTables(graph)
        found, index = state_hash(tables), index_problems(snapshot.path, tables)
    expected = snapshot.manifest.state_hash
    other = [] if found == expected else [f"{found}, expected {expected}"]
    return [_verdict("state hash", other), _verdict("index parity", index)]


def _recorded(store: Store, served: Manifest) -> Manifest | None:
    """The manifest that the ledger recorded for a snapshot; None if it has none or cannot be read."""
    try:
        return recorded_manifest(store, served.shard, served.number)
    except UNREADABLE:
        return None


def _against_ledger(store: Store, snapshot: Snapshot) -> list[Verdict]:
    checked = served_conditions(store, snapshot) or {}
    conditions = [Verdict(name, check.passed, check.detail) for name, check in checked.items()]
    return [*_rebuilt(store, snapshot), *conditions]


def _rebuilt(store: Store, snapshot: Snapshot) -> list[Verdict]:
    served = snapshot.manifest
    with tempfile.TemporaryDirectory() as folder:
        folded = fold_recorded(store, served.shard, Path(folder) / "fold", "verify")
        problems = _notes_problems(snapshot, folded)
        index = _index_verdict(snapshot, folded, Path(folder) / "index")
    if folded.state_hash != served.state_hash:
        problems.append(f"the ledger folds to {folded.state_hash}, served is {served.state_hash}")
    if folded.recorded.number != served.number:
        newer = f"{folded.recorded.shard}/{folded.recorded.number}"
        problems.append(f"the ledger records {newer} as published, which the next run or `memstate rebuild` will serve")
    return [_verdict("L3 rebuild", problems), index]


def _index_verdict(snapshot: Snapshot, folded: Folded, scratch: Path) -> Verdict:
    """Whether the files beside the graph are those that the ledger gives; other versions may have written others."""
    served = snapshot.manifest
    if folded.recorded.number != served.number or folded.state_hash != served.state_hash:
        return Verdict(_INDEX, True, "not compared, since the ledger gives another state")
    if served.made_by != __version__:
        made_by = served.made_by or "an earlier version"
        return Verdict(_INDEX, True, f"not compared, since {made_by} made it and this is {__version__}")
    return _verdict(_INDEX, rebuilt_problems(snapshot, folded.store, folded.run, scratch))


def _notes_problems(snapshot: Snapshot, folded: Folded) -> list[str]:
    """Whether the notes of evidence, which no graph holds, are those of the ledger; earlier versions wrote none."""
    if not snapshot.has(NOTES_FILE) or folded.recorded.number != snapshot.manifest.number:
        return []
    found = pl.read_parquet(snapshot.path / NOTES_FILE, glob=False)
    expected = notes_index(folded.store, folded.run)
    return [] if found.equals(expected) else [f"{NOTES_FILE} differs from the notes in the ledger"]
