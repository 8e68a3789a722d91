"""Plans: the nightly job is run on a clone to list its actions, then on the store to apply them.

A plan predicts nothing: it records what the same job did on the same state, so it has every kind of action that a run
can take. Applying it runs the job again and compares the result.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
from msgspec import structs

from memstate_core.night.gates.acceptance import Acceptance
from memstate_core.night.plan_file import Action, Plan, Result, actions, read_plan, sealed
from memstate_core.night.plan_guard import facts_of
from memstate_core.run.run import GRAPH_FILE
from memstate_core.run.store import Store
from memstate_core.state.current import served
from memstate_core.state.fold.decisions import ARCHIVED, MERGED, RESTORED
from memstate_core.state.graph import TOPIC, open_graph
from memstate_pipeline.run import Maintained, maintain

_TITLED = (MERGED, ARCHIVED, RESTORED)


def plan_on(clone: Store, now: datetime) -> Plan:
    """Runs the nightly job on a clone of a store (`memstate_core.night.clone`) and records its actions.

    Gates that fail are recorded and refuse nothing here.

    Args:
        clone: the clone; the run changes it.
        now: the logical time.

    Raises:
        CheckRefused: the run would be refused by a blocking check.
        StepFailed: the run would fail.
    """
    facts = facts_of(clone)
    done = maintain(clone, now, on_clone=True)
    parts = done.summary.get("shards") or [done.summary]
    taken = [action for part in parts for action in _actions(clone, part)]
    plan = Plan(
        **structs.asdict(facts),
        now=now,
        result={part["shard"]: _result(part) for part in parts},
        summary=dict(sorted(Counter(action.kind for action in taken).items())),
        titles=_titles(clone, taken),
        actions=taken,
    )
    return sealed(plan)


def apply_plan(store: Store, path: Path, given: Acceptance | None = None) -> Maintained:
    """Runs the nightly job exactly as planned, or refuses.

    Shards are published one after another: if one is refused, those before it stay published as planned.

    Args:
        store: the store.
        path: the file of the plan.
        given: the gates that a person accepts in this run.

    Raises:
        GateRefused: a gate failed that is not accepted; nothing was published.
        StoreLocked: another run holds the store.
        PlanInvalid: the file is not a plan, or was changed after it was written; the store did not change.
        PlanStale: the store has changed since the plan, and was left as it is; or the run decided otherwise,
            and was not published.
    """
    return maintain(store, read_plan(path).now, plan=path, given=given)


def _actions(clone: Store, part: dict[str, Any]) -> list[Action]:
    own = (pl.col("run_id") == part["run_id"]) & (pl.col("shard") == part["shard"])
    return actions(clone.ledger.scan("transitions").filter(own).sort("seq").collect(), part["shard"])


def _result(part: dict[str, Any]) -> Result:
    return Result(
        state_hash=part["state_hash"],
        counts=part["counts"],
        expected_false_merges=part["expected_false_merges"],
        gates={check["name"]: check["detail"] for check in part["checks"] if not check["passed"] and "detail" in check},
    )


def _titles(clone: Store, taken: list[Action]) -> dict[str, str]:
    titled = [action for action in taken if action.kind in _TITLED]
    ids = {name for action in titled for name in (action.topic_id, (action.payload or {}).get("survivor")) if name}
    titles: dict[str, str] = {}
    for snapshot in served(clone.home, clone.shards):
        with open_graph(snapshot.path / GRAPH_FILE, read_only=True) as graph:
            topics = graph.read(TOPIC, ["id", "title"]).filter(pl.col("id").is_in(list(ids)))
        titles |= dict(topics.iter_rows())
    return dict(sorted(titles.items()))
