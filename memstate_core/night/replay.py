"""Replays a run's steps and checks on part of its rows, in a scratch folder of its own, to see whether they fail.

Nothing is recorded or published. A replay sees the same ledger, graph, policy and time as the run, and sets aside the
evidence and accesses that it leaves out, so that steps and checks leave them out alike. A check that finds violations
has not failed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import polars as pl

from memstate_core.forget.bound import scopes_over_bound
from memstate_core.forget.ladder import forget
from memstate_core.forget.salience import update_salience
from memstate_core.ingest.unforeseen import is_unforeseen
from memstate_core.model.frames import project
from memstate_core.model.ledger_tables import DECISION
from memstate_core.night.checks.suite import conditions
from memstate_core.night.publish import draft
from memstate_core.night.reused_base import place_or_reuse_base
from memstate_core.revise.dependency import queue_reviews
from memstate_core.revise.duplicates import find_duplicates
from memstate_core.revise.merge import merge_duplicates
from memstate_core.run.apply import update_topics
from memstate_core.run.begin import new_evidence, stage_graph
from memstate_core.run.embed_topics import refresh_embeddings
from memstate_core.run.run import Run
from memstate_core.run.step import StepResult
from memstate_core.run.store import Store, open_store
from memstate_core.state.fold.decisions import SET_ASIDE
from memstate_core.state.process.memory import memory_budget

Frames = dict[str, pl.DataFrame]
_FAILED = 9

STEPS = (
    "evidence", "placements", "topics", "topic_embeddings", "duplicate_pairs", "merges", "dependency_review",
    "salience", "forgetting", "correctness_conditions", "pins_within_bound", "snapshot",
)  # fmt: skip
"""The steps and checks of a run that depend on its evidence, in their order."""


def _perform(step: str, store: Store, run: Run, frames: Frames) -> StepResult:
    match step:
        case "evidence":
            return new_evidence(store, run)
        case "placements":
            return place_or_reuse_base(store, run, frames["evidence"])
        case "topics":
            return update_topics(store, run)
        case "topic_embeddings":
            return refresh_embeddings(store, run)
        case "duplicate_pairs":
            return find_duplicates(store, run, frames["topics"])
        case "merges":
            return merge_duplicates(store, run, frames["duplicate_pairs"])
        case "dependency_review":
            return queue_reviews(run, pl.concat([frames["topics"], frames["merges"]]))
        case "salience":
            return update_salience(run)
        case "forgetting":
            return forget(store, run, frames["evidence"])
        case "correctness_conditions":
            conditions(store, run)
        case "pins_within_bound":
            scopes_over_bound(run)
        case _:
            draft(store, run)
    return StepResult(pl.DataFrame())


def fails(store: Store, run: Run, step: str, held_back: pl.Series) -> bool:
    """Whether the steps up to one fail without some rows, tried in this process."""
    try:
        replay(store, run, step, held_back)
    except BaseException as error:
        if not is_unforeseen(error):
            raise
        return True
    return False


def dies(store: Store, run: Run, step: str, held_back: pl.Series) -> bool:
    """Whether the steps up to one fail without some rows, or kill the process that tries them."""
    named = {"home": str(store.home.root), "shard": run.facts.shard, "step": step}
    asked = json.dumps(named | {"held_back": held_back.to_list()})
    done = subprocess.run([sys.executable, "-m", __name__], input=asked, text=True, capture_output=True, check=False)
    if done.returncode not in (0, _FAILED) and done.returncode > 0:
        raise RuntimeError(f"the replay of step {step} could not be started: {done.stderr[-2000:]}")
    return done.returncode != 0


def replay(store: Store, run: Run, step: str, held_back: pl.Series) -> None:
    """Runs the steps of a run up to one, without some rows.

    Args:
        store: the store.
        run: the run, which must have begun.
        step: the last step.
        held_back: the ids of the evidence and accesses to leave out.
    """
    tried = Run.begin(store.home.work(f"{run.facts.shard}.replay"), run.facts)
    try:
        tried.decide(SET_ASIDE, pl.concat([run.decisions(SET_ASIDE), _left_out(held_back)]))
        stage_graph(store, tried)
        frames: Frames = {}
        for name in STEPS[: STEPS.index(step) + 1]:
            result = _perform(name, store, tried, frames)
            tried.keep(name, result, 0.0)
            frames[name] = result.frame
    finally:
        tried.end()


def _left_out(row_ids: pl.Series) -> pl.DataFrame:
    rows = pl.DataFrame({"evidence_ids": row_ids}, schema={"evidence_ids": pl.String})
    decided = rows.select(pl.concat_list("evidence_ids"), kind=pl.lit(SET_ASIDE), payload_json=pl.lit("{}"))
    return project(decided, DECISION, nulls=("scope", "topic_id", "reason"))


def _main() -> int:
    asked = json.loads(sys.stdin.read())
    store = open_store(Path(asked["home"]))
    run, held_back = Run.load(store.home.work(asked["shard"])), pl.Series("id", asked["held_back"], pl.String)
    with memory_budget(store.settings.store.memory_mib):
        return _FAILED if fails(store, run, asked["step"], held_back) else 0


if __name__ == "__main__":
    sys.exit(_main())
