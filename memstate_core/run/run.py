"""One run of one shard: its fixed facts, its scratch folder, and what its steps leave for each other.

A run is begun once, by the first step, which pins everything that could change under it: the logical
time, the version of the evidence table, the snapshot it starts from, the policy. Every later step loads
those facts from the scratch folder, so that a step never reads a clock or the newest state of anything.
"""

from __future__ import annotations

import json
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
from msgspec import Struct
from msgspec import json as msgjson

from memstate_core.model.errors import FrameMismatch, StagingMissing
from memstate_core.model.frames import Schema, conform, empty
from memstate_core.model.ledger_tables import DECISION, TRANSITIONS
from memstate_core.policy.settings import Policy
from memstate_core.run.step import StepResult
from memstate_core.state.files import sync_path
from memstate_core.state.fold.decisions import SET_ASIDE
from memstate_core.state.kept_open import close_kept

GRAPH_FILE = "graph.kuzu"
PLAN_FILE = "plan.json"
STEP_FILE = "step"
REUSES_BASE_FILE = "reuses_base"


class RunFacts(Struct, frozen=True, kw_only=True):
    """What is fixed for the length of a run.

    `decided_at` is the time of its decisions where that is not its logical time `now`: a rollback serves the state of
    an earlier time.
    """

    run_id: str
    shard: str
    shards: int
    now: datetime
    number: int
    base: int | None
    evidence_version: int | None
    transitions_version: int | None
    accesses_version: int | None = None
    ledger_head: str | None = None
    fresh_graph: bool
    embedding_model: str
    policy: dict[str, Any]
    decided_at: datetime | None = None


class Run:
    """A run in progress, seen from one of its steps."""

    def __init__(self, scratch: Path, facts: RunFacts) -> None:
        self.scratch = scratch
        self.facts = facts
        self.policy = Policy.recorded(facts.policy)

    @classmethod
    def begin(cls, scratch: Path, facts: RunFacts) -> Run:
        """Clears the scratch folder and starts a run in it."""
        close_kept(scratch)
        shutil.rmtree(scratch, ignore_errors=True)
        for folder in ("notes", "decisions", "tables", "frames"):
            (scratch / folder).mkdir(parents=True)
        (scratch / "run.json").write_bytes(msgjson.encode(facts))
        return cls(scratch, facts)

    @classmethod
    def load(cls, scratch: Path) -> Run:
        """The run whose scratch folder this is.

        Raises:
            StagingMissing: no run was begun here, or it has ended.
        """
        try:
            return cls(scratch, msgjson.decode((scratch / "run.json").read_bytes(), type=RunFacts))
        except (FileNotFoundError, NotADirectoryError):
            raise StagingMissing(str(scratch)) from None

    @property
    def graph(self) -> Path:
        """The working copy of the graph."""
        return self.scratch / GRAPH_FILE

    @property
    def pending(self) -> Path:
        """The file with evidence set aside by failed runs, which the next run decides before its first step."""
        return pending_path(self.scratch)

    def set_aside(self, decisions: pl.DataFrame) -> None:
        """Keeps decisions (columns DECISION) for the next run."""
        earlier = [conform(pl.read_parquet(self.pending, glob=False), DECISION)] if self.pending.exists() else []
        draft = self.pending.with_suffix(".new")
        pl.concat([*earlier, conform(decisions, DECISION)]).write_parquet(draft)
        sync_path(draft)
        draft.replace(self.pending)
        sync_path(self.pending.parent)

    def take_pending(self) -> None:
        """Decides what failed runs set aside.

        A damaged file is renamed to `….damaged`: what it named is found again when a step fails with it.
        """
        if self.pending.exists():
            try:
                pending = conform(pl.read_parquet(self.pending, glob=False), DECISION)
            except (pl.exceptions.PolarsError, pl.exceptions.PanicException, FrameMismatch):
                self.pending.rename(self.pending.with_name(f"{self.pending.name}.damaged"))
            else:
                self.decide(SET_ASIDE, pending)

    def forget_pending(self) -> None:
        """Removes what `take_pending` has decided, once it is recorded."""
        if self.decisions(SET_ASIDE).height:
            self.pending.unlink(missing_ok=True)

    def enter(self, step: str) -> None:
        """Marks a step as begun, so that the next run sees where this one died."""
        (self.scratch / STEP_FILE).write_text(step)

    @property
    def entered(self) -> str | None:
        """The step that is marked as begun: the one in which this run's process died, if it is gone."""
        mark = self.scratch / STEP_FILE
        return mark.read_text(errors="replace") if mark.exists() else None

    def leave(self) -> None:
        """Takes the mark away: the step ended, or raised an error."""
        (self.scratch / STEP_FILE).unlink(missing_ok=True)

    @property
    def is_planned(self) -> bool:
        """Whether the run must match a plan."""
        return (self.scratch / PLAN_FILE).exists()

    def reuse_base(self) -> None:
        """Marks the run as one that takes the state of its base over: nothing is placed or folded."""
        (self.scratch / REUSES_BASE_FILE).touch()

    @property
    def reuses_base(self) -> bool:
        """Whether the run takes the state of its base over."""
        return (self.scratch / REUSES_BASE_FILE).exists()

    def keep(self, step: str, result: StepResult, seconds: float) -> None:
        """Keeps a step's decisions and counts beside the graph, for the end of the run.

        Keeping them again, as a retried step does, replaces what was kept.
        """
        self.decide(step, result.decisions if result.decisions is not None else empty(DECISION))
        note = {"seconds": round(seconds, 3), "counts": dict(result.counts)}
        (self.scratch / "notes" / f"{step}.json").write_text(json.dumps(note))

    def decide(self, step: str, decisions: pl.DataFrame) -> None:
        """Keeps a step's decisions (columns DECISION), so that later folds of the run apply them."""
        conform(decisions, DECISION).write_parquet(self.scratch / "decisions" / f"{step}.parquet")

    def keep_table(self, name: str, frame: pl.DataFrame) -> None:
        """Keeps a frame that later steps read beside the graph."""
        frame.write_parquet(self.scratch / "tables" / f"{name}.parquet")

    def table(self, name: str, schema: Schema) -> pl.DataFrame:
        """A kept frame, with exactly these columns.

        Raises:
            StagingMissing: the step that keeps it has not run.
        """
        path = self.scratch / "tables" / f"{name}.parquet"
        if not path.exists():
            raise StagingMissing(str(path))
        return conform(pl.read_parquet(path, glob=False), schema)

    def has_table(self, name: str) -> bool:
        """Whether a frame of this name was kept."""
        return (self.scratch / "tables" / f"{name}.parquet").exists()

    def keep_import(self, report: dict[str, Any]) -> None:
        """Keeps what the import at the run's beginning reported."""
        (self.scratch / "import.json").write_text(json.dumps(report))

    def imported(self) -> dict[str, Any]:
        """What the import at the run's beginning reported."""
        path = self.scratch / "import.json"
        return dict(json.loads(path.read_text())) if path.exists() else {}

    def keep_checks(self, verdicts: list[dict[str, Any]]) -> None:
        """Keeps verdicts of checks, beside those of others: at least name, passed, severity."""
        together = {verdict["name"]: verdict for verdict in [*self.checks(), *verdicts]}
        (self.scratch / "checks.json").write_text(json.dumps([*together.values()]))

    def checks(self) -> list[dict[str, Any]]:
        """The verdicts of the checks, in their order."""
        path = self.scratch / "checks.json"
        return list(json.loads(path.read_text())) if path.exists() else []

    def end(self) -> None:
        """Removes the scratch folder, and what is remembered of earlier deaths."""
        close_kept(self.scratch)
        shutil.rmtree(self.scratch, ignore_errors=True)
        deaths_path(self.scratch).unlink(missing_ok=True)

    def notes(self) -> dict[str, dict[str, Any]]:
        """Seconds and counts by step, in the order in which the steps ended."""
        files = sorted((self.scratch / "notes").glob("*.json"), key=lambda file: file.stat().st_mtime_ns)
        return {file.stem: json.loads(file.read_text()) for file in files}

    def decisions(self, *steps: str, but: str | None = None) -> pl.DataFrame:
        """What the named steps (or all, or all but one) decided so far in this run (columns DECISION)."""
        files = [self.scratch / "decisions" / f"{step}.parquet" for step in steps]
        files = files or sorted((self.scratch / "decisions").glob("*.parquet"), key=lambda f: f.stat().st_mtime_ns)
        found = [file for file in files if file.exists() and file.stem != but]
        read = [pl.read_parquet(found, glob=False)] if found else []  # all at once: most hold few rows
        return pl.concat([empty(DECISION), *read])

    def transitions(self, first_seq: int) -> pl.DataFrame:
        """All decisions as rows of the ledger (columns TRANSITIONS), numbered from `first_seq`."""
        return conform(
            self.decisions().with_columns(
                seq=pl.int_range(first_seq, first_seq + pl.len(), dtype=pl.Int64),
                shard=pl.lit(self.facts.shard),
                run_id=pl.lit(self.facts.run_id),
                at=pl.lit(self.facts.decided_at or self.facts.now),
                policy=pl.lit(self.policy.digest()),
            ),
            TRANSITIONS,
        )


def pending_path(scratch: Path) -> Path:
    """The file with evidence of a shard that failed runs set aside and that no run has recorded yet."""
    return scratch.with_name(f"{scratch.name}.{SET_ASIDE}.parquet")


def deaths_path(scratch: Path) -> Path:
    """The file with the steps in which the processes of a shard's last runs died, one a line."""
    return scratch.with_name(f"{scratch.name}.deaths")


def died_in(scratch: Path) -> list[str]:
    """The steps in which the last runs died one after another, newest last; notes the death of the last one.

    Call it before the next run begins, since that clears the scratch folder.
    """
    mark, noted = scratch / STEP_FILE, deaths_path(scratch)
    if not mark.exists():
        return []
    earlier = noted.read_text(errors="replace").splitlines() if noted.exists() else []
    deaths = [*earlier, mark.read_text(errors="replace")]
    noted.write_text("\n".join(deaths))
    mark.unlink()
    return deaths
