"""Folds what a run sees: all of it, or the topics that may differ from an earlier fold.

A fold is a function of evidence, decisions, accesses and policy (laws L2, L3), topic by topic. So a run that starts
from a snapshot of the same version and policy folds only what changed since, and takes the rest over. Where anything is
in doubt, everything is folded; `rebuild` and `verify` always fold everything.
"""

from __future__ import annotations

import polars as pl

from memstate_core import __version__
from memstate_core.model.frames import conform
from memstate_core.model.graph_tables import REVISIONS
from memstate_core.model.ledger_tables import DECISION
from memstate_core.model.step_frames import ALIASES, EVIDENCE_TOPIC, PLACEMENTS, PROBLEMS
from memstate_core.policy.settings import Policy
from memstate_core.run.begin import base_links
from memstate_core.run.run import Run
from memstate_core.run.store import Store
from memstate_core.run.view import decisions, numbered_decisions, shard_accesses, shard_evidence
from memstate_core.state.fold.changed_topics import EarlierFold
from memstate_core.state.fold.decisions import READMITTED, SET_ASIDE, merges
from memstate_core.state.fold.fold import fold
from memstate_core.state.fold.holdings import holdings
from memstate_core.state.fold.ladder_state import ladder_state
from memstate_core.state.fold.refold import Refolded, fold_changed
from memstate_core.state.fold.rollbacks import ROLLED_BACK
from memstate_core.state.graph import EDGE, FIELD, open_graph
from memstate_core.state.snapshots import COMPRESSED_FILE, PROBLEMS_FILE, Manifest, Snapshot, load_snapshot


def fold_run(store: Store, run: Run, earlier: EarlierFold | None = None) -> Refolded:
    """Folds what the run sees, with the decisions of its steps so far.

    Args:
        store: the store.
        run: the run in progress.
        earlier: the fold that the working graph has, to fold only what changed since; None to fold everything.
    """
    placements, aliases = run.table("placements", PLACEMENTS), run.table("title_aliases", ALIASES)
    so_far = decisions(store.ledger, run)
    if earlier is None:
        evidence, accesses = shard_evidence(store.ledger, run), shard_accesses(store.ledger, run)
        state = fold(evidence, placements, aliases, so_far, run.policy, accesses)
        return Refolded(state, None, state.topics.height)
    return fold_changed(
        earlier,
        holdings(placements, aliases, so_far),
        shard_evidence(store.ledger, run, ["evidence_id"]),
        _named(store, run),
        lambda ids: shard_evidence(store.ledger, run, among=ids),
        ladder_state(so_far),
        run.policy,
        shard_accesses(store.ledger, run),
    )


def _named(store: Store, run: Run) -> pl.DataFrame:
    """What topics of the working graph name: the ends of edges, and references (columns topic_id, to_id)."""
    with open_graph(run.graph, read_only=True, buffer_mib=store.settings.store.graph_buffer_mib) as graph:
        ends = graph.read(EDGE, ["from_id", "to_id"]).rename({"from_id": "topic_id"})
        references = graph.read(FIELD, ["topic_id", "ref_topic_id"], "r.ref_topic_id IS NOT NULL")
    return pl.concat([ends, references.rename({"ref_topic_id": "to_id"})])


def fold_of_steps(store: Store, run: Run, decided: pl.DataFrame) -> EarlierFold:
    """The fold that the run's step `topics` left, before some decisions (columns DECISION) that are not kept yet."""
    return EarlierFold(
        evidence_topic=run.table("links", EVIDENCE_TOPIC),
        aliases=run.table("aliases", ALIASES),
        merged=merges(decisions(store.ledger, run)),
        problems=run.table("problems", PROBLEMS),
        compressed=run.table("compressed", REVISIONS),
        decided=decided,
        accessed=pl.Series("topic_id", [], pl.String),
    )


def fold_of_base(store: Store, run: Run) -> EarlierFold | None:
    """The fold of the snapshot that the run started from; None where the run may not rely on it."""
    facts = run.facts
    base = None if facts.base is None else load_snapshot(store.home, facts.shard, facts.base)
    if base is None or facts.decided_at is not None or not _is_alike(run, base):
        return None
    since = _decided_since(store, run, base.manifest)
    if since is None or (since["kind"] == ROLLED_BACK).any():
        return None
    before = numbered_decisions(store.ledger, run).join(since, on="seq", how="anti", maintain_order="left")
    files = {"aliases": ("aliases.parquet", ALIASES), "compressed": (COMPRESSED_FILE, REVISIONS)}
    tables = {
        name: conform(pl.read_parquet(base.path / file, glob=False), schema)
        for name, (file, schema) in {**files, "problems": (PROBLEMS_FILE, PROBLEMS)}.items()
    }
    return EarlierFold(
        evidence_topic=base_links(store, run).drop_nulls("topic_id"),
        merged=merges(before),
        decided=since.select(DECISION.keys()),
        accessed=_accessed_since(store, run, base.manifest, since),
        **tables,
    )


def _is_alike(run: Run, base: Snapshot) -> bool:
    made = base.manifest
    return made.made_by == __version__ and base.has(PROBLEMS_FILE) and Policy.recorded(made.policy) == run.policy


def _decided_since(store: Store, run: Run, made: Manifest) -> pl.DataFrame | None:
    """The decisions (columns seq and DECISION) that the base's run neither saw nor took, this run's among them.

    None where the ledger's chain does not know what the base was made of, as after an erasure.
    """
    versions = None if made.ledger_head is None else store.ledger.chain.versions_at(made.ledger_head)
    if versions is None:
        return None
    later = store.ledger.since("transitions", versions.get("transitions"))
    later = later.filter((pl.col("shard") == made.shard) & (pl.col("run_id") != made.run_id))
    recorded = later.select("seq").collect()["seq"]
    every = numbered_decisions(store.ledger, run)
    own = run.decisions().height
    first = every.height - own
    return every.filter(pl.col("seq").is_in(recorded.implode()) | (pl.int_range(pl.len()) >= first))


def _accessed_since(store: Store, run: Run, made: Manifest, since: pl.DataFrame) -> pl.Series:
    """The ids that accesses name which were recorded, set aside or readmitted since the base."""
    if run.facts.accesses_version is None:
        return pl.Series("topic_id", [], pl.String)
    moved = since.filter(pl.col("kind").is_in([SET_ASIDE, READMITTED]))["evidence_ids"].explode().drop_nulls()
    rows = store.ledger.scan("accesses", run.facts.accesses_version).select("access_id", "topic_id")
    found = [rows.filter(pl.col("access_id").is_in(moved.implode())).collect()]
    known = pl.DataFrame(schema={"access_id": pl.String})
    if made.accesses_version is not None:
        known = store.ledger.scan("accesses", made.accesses_version).select("access_id").collect()
    found.append(rows.join(known.lazy(), on="access_id", how="anti").collect())
    return pl.concat(found)["topic_id"]
