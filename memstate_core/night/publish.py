"""The `snapshot` step: publishes a working graph atomically.

The order makes a kill at any moment harmless: the folder is complete, verified and flushed before it gets its name;
the publication record in the ledger is the commit point; CURRENT moves last, and moving it is idempotent.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

import polars as pl
from msgspec import json as msgjson

from memstate_core import __version__
from memstate_core.model.errors import SnapshotDamaged
from memstate_core.model.frames import project
from memstate_core.model.graph_tables import REVISIONS
from memstate_core.model.ledger_tables import DECISION
from memstate_core.model.step_frames import ALIASES, PROBLEMS
from memstate_core.night.checks.suite import CONDITIONS
from memstate_core.night.prune import prune
from memstate_core.retrieve.evaluation.recorded_questions import expire_questions
from memstate_core.retrieve.index.evidence import evidence_index
from memstate_core.retrieve.index.facts_files import write_facts
from memstate_core.retrieve.index.kept_scopes import EarlierIndex
from memstate_core.retrieve.index.notes import NOTES_FILE, notes_index
from memstate_core.retrieve.index.write import (
    Layouts,
    index_problems,
    link_evidence_index,
    write_evidence_index,
    write_topic_index,
)
from memstate_core.run.run import GRAPH_FILE, Run
from memstate_core.run.step import StepResult
from memstate_core.run.store import Store
from memstate_core.state.current import move_current
from memstate_core.state.files import file_digest, make_folder, sync_path
from memstate_core.state.fold.decisions import ACCEPTED, PUBLISHED
from memstate_core.state.graph import EDGE, FIELD, REVISION, TOPIC, VECTOR, leftovers, open_graph
from memstate_core.state.kept_open import close_kept
from memstate_core.state.kept_tables import KeptTables, Rows
from memstate_core.state.snapshots import (
    COMPRESSED_FILE,
    MANIFEST,
    PROBLEMS_FILE,
    SCHEMA_VERSION,
    Manifest,
    Snapshot,
    file_digests,
    load_snapshot,
)
from memstate_core.state.state_hash import state_hash

STEP = "snapshot"
_FOLDER = "snapshot"


def drafted(store: Store, run: Run) -> Snapshot:
    """The draft of the run's snapshot: that which the gate on answers made of the graph as it is now, or a new one.

    Raises:
        SnapshotDamaged: what was written does not read back equal.
    """
    return _left_draft(run) or draft(store, run)


def publish(store: Store, run: Run, made: Snapshot | None = None) -> StepResult:
    """Publishes the run's working graph.

    Args:
        store: the store.
        run: the run in progress.
        made: its draft, if it has been made already.

    Returns:
        One row: snapshot (number), state_hash, and the counts of the manifest.

    Raises:
        SnapshotDamaged: what was written does not read back equal; nothing was published.
    """
    made = made or drafted(store, run)
    home, facts = store.home, run.facts
    final = home.snapshots(facts.shard) / str(facts.number)
    make_folder(final.parent)
    made.path.rename(final)
    sync_path(final.parent)
    _record(store, run, made.manifest)
    move_current(home, facts.shard, facts.number)
    prune(store, facts.shard, facts.now)
    expire_questions(home.recorded_questions, store.settings.recall, facts.now)
    row = {"snapshot": facts.number, "state_hash": made.manifest.state_hash, **made.manifest.counts}
    return StepResult(pl.DataFrame([row]), made.manifest.counts)


def graph_counts(graph: Rows) -> dict[str, int]:
    """How many topics a graph holds in each state, and how many fields, revisions and edges.

    `detached` counts topics that have detached fields or edges, whatever their state.
    """
    states = dict(graph.read(TOPIC, ["state"])["state"].value_counts().iter_rows())
    named = {state: int(states.get(state, 0)) for state in ("active", "archived", "merged")}
    fields, edges = (graph.read(table, [table.owner, "detached"]) for table in (FIELD, EDGE))
    apart = [rows.filter("detached").to_series() for rows in (fields, edges)]
    named["detached"] = pl.concat(apart).n_unique()
    revisions = graph.read(REVISION, ["id"]).height
    return named | {"fields": fields.height, "revisions": revisions, "edges": edges.height}


def draft(store: Store, run: Run) -> Snapshot:
    """The snapshot of a run's working graph in its scratch folder, verified.

    Raises:
        SnapshotDamaged: what was written reads back otherwise.
    """
    folder = run.scratch / _FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    close_kept(run.graph)
    shutil.copyfile(run.graph, folder / GRAPH_FILE)
    with open_graph(folder / GRAPH_FILE, read_only=True) as graph:
        tables = KeptTables(graph)
        made = _written(store, run, folder, tables)
        problems = _problems(run, made, tables)
    if problems:
        raise SnapshotDamaged(f"{made.name} (not published)", problems)
    return made


def _left_draft(run: Run) -> Snapshot | None:
    """The draft that was made of the working graph as it is now, if there is one and it is whole."""
    folder = run.scratch / _FOLDER
    with suppress(OSError, ValueError):
        found = Snapshot(folder, msgjson.decode((folder / MANIFEST).read_bytes(), type=Manifest))
        same = found.manifest.run_id == run.facts.run_id
        same = same and found.manifest.files.get(GRAPH_FILE) == file_digest(run.graph)
        return found if same and not found.damage() else None
    return None


def _written(store: Store, run: Run, folder: Path, tables: Rows) -> Snapshot:
    """Writes what lies beside the graph, from the tables of the copy that is published."""
    base = None if run.facts.base is None else load_snapshot(store.home, run.facts.shard, run.facts.base)
    earlier = _earlier_index(store, run, base)
    layouts, evidence = _evidence_files(store, run, folder, base, earlier)
    counts = graph_counts(tables) | {"evidence": evidence}
    write_facts(folder, tables)
    write_topic_index(folder, tables.read(TOPIC), tables.read(VECTOR), layouts, earlier)
    run.table("aliases", ALIASES).write_parquet(folder / "aliases.parquet")
    compressed = run.table("compressed", REVISIONS).sort("topic_id", "name", "rank")
    compressed.write_parquet(folder / COMPRESSED_FILE, row_group_size=10_000)
    run.table("problems", PROBLEMS).write_parquet(folder / PROBLEMS_FILE)
    manifest = _manifest(run, folder, counts, state_hash(tables), base)
    (folder / MANIFEST).write_bytes(msgjson.format(msgjson.encode(manifest)))
    for path in [*folder.rglob("*"), folder]:
        sync_path(path)
    return Snapshot(folder, manifest)


def _earlier_index(store: Store, run: Run, base: Snapshot | None) -> EarlierIndex | None:
    """The index of the base, where this version made it with the same model, of a ledger that nothing rewrote since."""
    if base is None or base.manifest.ledger_head is None or base.manifest.made_by != __version__:
        return None
    rewritten = store.ledger.chain.versions_at(base.manifest.ledger_head) is None
    return None if rewritten or not _is_of_model(base, run) else EarlierIndex(base.path)


def _is_of_model(base: Snapshot, run: Run) -> bool:
    return base.manifest.embedding_model == run.facts.embedding_model


def _evidence_files(
    store: Store, run: Run, folder: Path, base: Snapshot | None, earlier: EarlierIndex | None
) -> tuple[Layouts, int]:
    """Writes the index of evidence, or shares the base's if it is the same; where its scopes lie, and its rows."""
    if run.reuses_base and base is not None and _is_of_model(base, run):
        return link_evidence_index(folder, base.path), base.manifest.counts["evidence"]
    notes_index(store, run).write_parquet(folder / NOTES_FILE)
    evidence, vectors = evidence_index(store, run, earlier)
    return write_evidence_index(folder, evidence, vectors, earlier), evidence.height


def _manifest(run: Run, folder: Path, counts: dict[str, int], hashed: str, base: Snapshot | None) -> Manifest:
    facts, size = run.facts, (folder / GRAPH_FILE).stat().st_size
    return Manifest(
        schema_version=SCHEMA_VERSION,
        shard=facts.shard,
        number=facts.number,
        run_id=facts.run_id,
        now=facts.now,
        embedding_model=facts.embedding_model,
        policy_hash=run.policy.digest(),
        policy=facts.policy,
        evidence_version=facts.evidence_version,
        accesses_version=facts.accesses_version,
        ledger_head=facts.ledger_head,
        counts=counts,
        state_hash=hashed,
        graph_fresh_bytes=size if base is None or facts.fresh_graph else base.manifest.graph_fresh_bytes,
        files=file_digests(folder, base),
        made_by=__version__,
        checked_by=__version__ if _is_checked(run) else "",
    )


def _is_checked(run: Run) -> bool:
    """Whether the conditions were checked on the run's working graph, and hold."""
    held = {verdict["name"] for verdict in run.checks() if verdict["passed"]}
    return held.issuperset(CONDITIONS)


def _problems(run: Run, made: Snapshot, tables: Rows) -> list[str]:
    """What is wrong with a draft: its graph is not the working graph, or its files do not hold what that has."""
    left = [f"{path.name} is left beside the graph" for path in leftovers(made.path / GRAPH_FILE)]
    found, expected = made.manifest.files[GRAPH_FILE], file_digest(run.graph)
    changed = [] if found == expected else [f"{GRAPH_FILE}: SHA-256 is {found}, that of the working graph {expected}"]
    return left + changed + index_problems(made.path, tables)


def _record(store: Store, run: Run, manifest: Manifest) -> None:
    payload = msgjson.encode(manifest).decode()
    row = {"kind": PUBLISHED, "payload_json": payload, "evidence_ids": [], "reason": _reason(run)}
    run.decide(
        STEP,
        project(
            pl.DataFrame([row], schema_overrides={"evidence_ids": pl.List(pl.String)}),
            DECISION,
            nulls=("scope", "topic_id"),
        ),
    )
    with store.ledger.writing(f"run {run.facts.run_id}, publishing"):
        last = store.ledger.scan("transitions").select(pl.col("seq").max()).collect().item()
        rows = run.transitions(0 if last is None else last + 1)
        store.ledger.append("transitions", rows, f"publish/{run.facts.shard}", run.facts.number)
    run.forget_pending()


def _reason(run: Run) -> str:
    accepted = run.decisions(ACCEPTED)["payload_json"].str.json_path_match("$.gate").to_list()
    return f"all checks passed, accepted: {', '.join(accepted)}" if accepted else "all checks passed"
