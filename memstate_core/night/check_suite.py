"""The six correctness conditions of one run, together, by name."""

from __future__ import annotations

import polars as pl

from memstate_core.model.frames import CHANGES
from memstate_core.night import checks
from memstate_core.night.check_adaptation import not_raised
from memstate_core.night.check_pins import also_pinned
from memstate_core.run.begin import new_accesses
from memstate_core.run.run import GRAPH_FILE, Run
from memstate_core.run.store import Store
from memstate_core.run.view import decisions
from memstate_core.state.graph import open_graph
from memstate_core.state.snapshots import COMPRESSED_FILE, load_snapshot

CONDITIONS = {
    "C1_query_soundness": "a default query sees only the newest revisions of topics that are not archived",
    "C2_transition_soundness": "every state follows from a recorded decision, and nothing superseded became current",
    "C3_dependency_consistency": "what depends on a change over extension edges is queued for review",
    "C4_provenance_preservation": "every value leads to its evidence, and no evidence is left without a topic",
    "C5_bounded_active_state": "active topics in each scope stay within the policy's bound, or are all pinned",
    "C6_retrieval_adaptation": "what was used is more salient than it would be had nobody used it",
}


def conditions(store: Store, run: Run) -> dict[str, checks.Check]:
    """The verdicts on a run's working graph, by the names above."""
    decided = decisions(store.ledger, run)
    changed = run.table("changes", CHANGES)["topic_id"].unique()
    with open_graph(run.graph, read_only=True) as graph:
        found = [
            checks.query_soundness(graph),
            checks.dependency_consistency(graph, changed, run),
            checks.provenance_preservation(graph, run),
            checks.bounded_state(graph, run, also_pinned(store, run, graph)),
        ]
    found.insert(1, _against_base(store, run, decided))
    found.append(checks.Check("C6", _unraised(store, run)))
    return dict(zip(CONDITIONS, found, strict=True))


def _unraised(store: Store, run: Run) -> pl.DataFrame:
    """Violations of C6 (columns subject, problem)."""
    none = pl.DataFrame(schema={"subject": pl.String, "problem": pl.String})
    accesses = new_accesses(store, run)
    if run.facts.base is None or accesses.is_empty():
        return none
    served = load_snapshot(store.home, run.facts.shard, run.facts.base)
    if served.manifest.policy_hash != run.policy.digest():
        return none
    with (
        open_graph(run.graph, read_only=True) as graph,
        open_graph(served.path / GRAPH_FILE, read_only=True) as base,
    ):
        found = not_raised(graph, base, run, accesses)
    return found.select(subject="topic_id", problem=pl.lit("it was used and is not more salient for it"))


def _against_base(store: Store, run: Run, decided: pl.DataFrame) -> checks.Check:
    with open_graph(run.graph, read_only=True) as graph:
        if run.facts.base is None:
            return checks.transition_soundness(graph, None, run, decided)
        served = load_snapshot(store.home, run.facts.shard, run.facts.base)
        older = pl.read_parquet(served.path / COMPRESSED_FILE, glob=False)
        with open_graph(served.path / GRAPH_FILE, read_only=True) as base:
            return checks.transition_soundness(graph, base, run, decided, older)
