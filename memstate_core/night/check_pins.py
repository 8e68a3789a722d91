"""Topics that count as pinned in condition C5 beside those that a decision or their kind pins.

Rules pin too, and which topics they pin is recorded nowhere: it follows from the policy and from what the
night found.
"""

from __future__ import annotations

import polars as pl

from memstate_core.forget.ladder import STEP as FORGETTING
from memstate_core.forget.ladder import ladder_features
from memstate_core.forget.topic_features import topic_features
from memstate_core.run.begin import new_evidence
from memstate_core.run.run import Run
from memstate_core.run.store import Store
from memstate_core.run.view import decisions
from memstate_core.state.decisions import UNPINNED
from memstate_core.state.graph import Graph
from memstate_core.state.ladder_state import rungs


def also_pinned(store: Store, run: Run, graph: Graph) -> pl.Series:
    """The ids of these topics.

    In a night they are the topics that rules pin, evaluated on what the ladder found. In a correction, or when a
    snapshot is verified, events of rules are unknown: there they are the topics for which the condition of
    any pin rule holds. A topic that was ever unpinned is among these too, since it stays until a night.

    Args:
        store: the store.
        run: the run, with its salience set.
        graph: its working graph.
    """
    rules = [rule for rule in run.policy.rules if rule.do == "pin"]
    if FORGETTING in run.notes():
        ladder = rungs(decisions(store.ledger, run, but=FORGETTING))
        found = ladder_features(store, run, graph, ladder, new_evidence(store, run).frame) if rules else None
        return _ids(found, pl.col("pinned"))
    recorded = decisions(store.ledger, run)
    unpinned = recorded.filter(pl.col("kind") == UNPINNED)["topic_id"].drop_nulls()
    none = unpinned.clear()
    found = topic_features(graph, run, none, none, rungs(recorded)) if rules else None
    return pl.concat([_ids(found, pl.any_horizontal(*(rule.holds() for rule in rules), pl.lit(False))), unpinned])


def _ids(topics: pl.DataFrame | None, condition: pl.Expr) -> pl.Series:
    return pl.Series("topic_id", [], pl.String) if topics is None else topics.filter(condition)["topic_id"]
