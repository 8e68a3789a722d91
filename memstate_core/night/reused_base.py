"""A run that reads what its base was made of: it takes the state of the base over, and neither places nor folds.

A fold is a function of evidence, accesses, decisions and policy (laws L2, L3), so where none of them changed it gives
the state of the base again. What depends on the time alone, salience and the ladder, is computed in every run.
Where anything is in doubt, everything is folded.
"""

from __future__ import annotations

import polars as pl

from memstate_core import __version__
from memstate_core.model.frames import conform, empty
from memstate_core.model.graph_tables import REVISIONS
from memstate_core.model.step_frames import ALIASES, CHANGES, PLACEMENTS, PROBLEMS
from memstate_core.night.placements import place, placed_counts
from memstate_core.policy.settings import Policy
from memstate_core.revise.duplicates import stale_scopes
from memstate_core.run.begin import base_links
from memstate_core.run.run import Run
from memstate_core.run.step import StepResult
from memstate_core.run.store import Store
from memstate_core.run.view import decisions
from memstate_core.state.fold.decisions import CORRECTIONS, SET_ASIDE
from memstate_core.state.snapshots import COMPRESSED_FILE, PROBLEMS_FILE, Manifest, Snapshot, load_snapshot

_OWN = ("evidence", CORRECTIONS, SET_ASIDE)
"""The steps that decide before anything is placed."""


def place_or_reuse_base(store: Store, run: Run, new: pl.DataFrame) -> StepResult:
    """The `placements` step of a night: places all evidence, or takes the state of the base over (see `place`)."""
    if _reuses_base(store, run):
        return StepResult(empty(PLACEMENTS), placed_counts(empty(PLACEMENTS)))
    return place(store, run, new)


def _reuses_base(store: Store, run: Run) -> bool:
    """Takes the state of the base over if a fold would give it again.

    Returns:
        Whether it did. If so, the run is marked, and has the tables that the step `topics` keeps.
    """
    facts = run.facts
    base = None if facts.base is None else load_snapshot(store.home, facts.shard, facts.base)
    if base is None or not _is_unchanged(store, run, base) or _searches(store, run):
        return False
    links = base_links(store, run)
    if links["topic_id"].null_count():
        return False
    run.keep_table("links", links)
    files = {"aliases": ("aliases.parquet", ALIASES), "compressed": (COMPRESSED_FILE, REVISIONS)}
    for name, (file, schema) in {**files, "problems": (PROBLEMS_FILE, PROBLEMS)}.items():
        run.keep_table(name, conform(pl.read_parquet(base.path / file, glob=False), schema))
    run.reuse_base()
    return True


def _is_unchanged(store: Store, run: Run, base: Snapshot) -> bool:
    facts, made = run.facts, base.manifest
    versions = (facts.evidence_version, facts.accesses_version) == (made.evidence_version, made.accesses_version)
    return (
        versions
        and made.made_by == __version__
        and base.has(PROBLEMS_FILE)
        and facts.decided_at is None
        and Policy.recorded(made.policy) == run.policy
        and run.decisions(*_OWN).is_empty()
        and not _decided_since(store, made)
    )


def _decided_since(store: Store, made: Manifest) -> bool:
    """Whether the ledger has decisions on the base's shard that its run neither saw nor took."""
    versions = None if made.ledger_head is None else store.ledger.chain.versions_at(made.ledger_head)
    if versions is None:
        return True
    rows = store.ledger.since("transitions", versions.get("transitions"))
    others = rows.filter((pl.col("shard") == made.shard) & (pl.col("run_id") != made.run_id))
    return not others.select("seq").head(1).collect().is_empty()


def _searches(store: Store, run: Run) -> bool:
    """Whether duplicates are looked for, so that the run may merge topics and fold again."""
    due = stale_scopes(decisions(store.ledger, run), run, empty(CHANGES))
    return due is None or not due.is_empty()
