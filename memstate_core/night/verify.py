"""Verifying what is served: file digests, the index, the conditions, and the ledger folded again."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from memstate_core.model.frames import CHANGES, empty
from memstate_core.night.check_suite import conditions
from memstate_core.night.rebuild import fold_recorded
from memstate_core.retrieve.index.write import index_problems
from memstate_core.run.run import GRAPH_FILE
from memstate_core.run.store import Store
from memstate_core.state.graph import open_graph
from memstate_core.state.snapshots import Snapshot
from memstate_core.state.state_hash import state_hash


@dataclass(frozen=True)
class Verdict:
    """One thing that was verified.

    Attributes:
        name: what.
        passed: whether it holds.
        detail: what was found where it does not.
    """

    name: str
    passed: bool
    detail: str = ""


def verify(store: Store, snapshot: Snapshot) -> list[Verdict]:
    """Verifies a served snapshot against its manifest and against the ledger."""
    damage = snapshot.damage()
    if damage:
        return [Verdict("file digests", False, "; ".join(damage))]
    with open_graph(snapshot.path / GRAPH_FILE, read_only=True) as graph:
        served = state_hash(graph)
        index = index_problems(snapshot.path, graph)
    expected = snapshot.manifest.state_hash
    found = [
        Verdict("file digests", True),
        Verdict("state hash", served == expected, "" if served == expected else f"{served}, expected {expected}"),
        Verdict("index parity", not index, "; ".join(index)),
    ]
    return found + _against_ledger(store, snapshot)


def _against_ledger(store: Store, snapshot: Snapshot) -> list[Verdict]:
    with tempfile.TemporaryDirectory() as folder:
        rebuilt = fold_recorded(store, snapshot.manifest.shard, Path(folder) / "fold", "verify")
        same = rebuilt.state_hash == snapshot.manifest.state_hash
        detail = "" if same else f"the ledger folds to {rebuilt.state_hash}, served is {snapshot.manifest.state_hash}"
        if rebuilt.recorded.number != snapshot.manifest.number:
            newer = f"{rebuilt.recorded.shard}/{rebuilt.recorded.number}"
            detail += f"; the ledger records {newer} as published, which the next run or `memstate rebuild` will serve"
        rebuilt.run.keep_table("changes", empty(CHANGES))
        checked = conditions(rebuilt.store, rebuilt.run)
    verdicts = [Verdict("L3 rebuild", same, detail)]
    return verdicts + [
        Verdict(name, check.passed, str(check.violations.head(5).rows())) for name, check in checked.items()
    ]
