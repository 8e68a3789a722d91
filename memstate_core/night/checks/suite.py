"""The six correctness conditions together, by name: on a run before it publishes, and on a served snapshot."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from memstate_core.model.errors import SnapshotDamaged
from memstate_core.model.graph_tables import REVISIONS
from memstate_core.model.step_frames import ALIASES, EVIDENCE_TOPIC
from memstate_core.night.checks.adaptation import adaptation
from memstate_core.night.checks.bounds import bounded_state
from memstate_core.night.checks.check import Check
from memstate_core.night.checks.checked_state import COMPRESSED, CheckedState, Published, Tables, read_tables
from memstate_core.night.checks.dependency import dependency_consistency
from memstate_core.night.checks.examined_topics import in_doubt
from memstate_core.night.checks.provenance import provenance
from memstate_core.night.checks.query_soundness import query_soundness
from memstate_core.night.checks.recorded import Recorded, recorded_by_run, recorded_for
from memstate_core.night.checks.transition_soundness import transition_soundness
from memstate_core.run.run import GRAPH_FILE, Run
from memstate_core.run.store import Store
from memstate_core.state.graph import open_graph
from memstate_core.state.snapshots import COMPRESSED_FILE, Snapshot, load_snapshot

CONDITIONS = {
    "C1_query_soundness": "a default query sees only the newest values of topics that are not archived",
    "C2_transition_soundness": "every state follows from a decision that policy asked for; nothing superseded is back",
    "C3_dependency_consistency": "what depends on a change over extension edges is queued for review",
    "C4_provenance_preservation": "every value leads to evidence that states it; all evidence has its topic",
    "C5_bounded_active_state": "active topics in each scope stay within the bound, pins apart; archived ones are whole",
    "C6_retrieval_adaptation": "salience follows from evidence and accesses, and an access raises it",
}


def conditions(store: Store, run: Run) -> dict[str, Check]:
    """The verdicts on a run's working graph, by the names above; `doubt` says what they take over from the base."""
    checked = CheckedState(
        recorded=recorded_by_run(store, run),
        graph=_tables(run.graph),
        compressed=run.table("compressed", REVISIONS).select(COMPRESSED.keys()),
        aliases=run.table("aliases", ALIASES),
        held=run.table("links", EVIDENCE_TOPIC),
    )
    return _verdicts(store, checked, whole=False)


def served_conditions(store: Store, snapshot: Snapshot) -> dict[str, Check] | None:
    """The verdicts on a published snapshot, by the names above; None where the ledger does not record it."""
    recorded = recorded_for(store, snapshot.manifest.shard, snapshot.manifest.number)
    if recorded is None:
        return None
    served = _published(snapshot.path)
    checked = CheckedState(recorded, served.tables, served.compressed, served.aliases, served.held)
    return _verdicts(store, checked, whole=True)


def _verdicts(store: Store, checked: CheckedState, *, whole: bool) -> dict[str, Check]:
    """The verdicts on all topics, or on those that may differ from a base that was checked."""
    folder, missing = _base_folder(store, checked.recorded)
    base = None if folder is None else _published(folder)
    if base is not None and not whole:
        checked = checked.examining(in_doubt(checked, base))
    found = [
        query_soundness(checked),
        transition_soundness(checked, None if base is None else base.revisions, missing),
        dependency_consistency(checked, base, missing),
        provenance(checked),
        bounded_state(checked),
        adaptation(checked, None if base is None else base.tables, missing),
    ]
    return dict(zip(CONDITIONS, found, strict=True))


def _base_folder(store: Store, recorded: Recorded) -> tuple[Path | None, str | None]:
    """The folder of the snapshot that the run started from, or why there is none to compare with."""
    if recorded.base is None:
        return None, None
    try:
        snapshot = load_snapshot(store.home, recorded.shard, recorded.base.number)
    except SnapshotDamaged as error:
        kept = (store.home.snapshots(recorded.shard) / str(recorded.base.number)).exists()
        return None, error.message if kept else "base no longer kept"
    damage = snapshot.damage()
    return (None, f"base {snapshot.name} is damaged: {damage[0]}") if damage else (snapshot.path, None)


def _published(folder: Path) -> Published:
    columns = (
        (COMPRESSED_FILE, COMPRESSED),
        ("evidence.parquet", EVIDENCE_TOPIC),
        ("aliases.parquet", ALIASES),
    )
    files = [pl.read_parquet(folder / name, glob=False, columns=list(schema)) for name, schema in columns]
    return Published(_tables(folder / GRAPH_FILE), *files)


def _tables(path: Path) -> Tables:
    with open_graph(path, read_only=True) as graph:
        return read_tables(graph)
