"""Evidence that a run cannot digest is found by bisection and set aside, so that no accepted row stops the nights.

When a step or a check fails on an unforeseen error or on its memory budget, the steps are replayed without part of the
new evidence until the rows are found with which they fail and without which they do not. Setting them aside is a
decision: the next run takes it before its first step and records it when it publishes, a rebuild honours it, and
`memstate undo EVIDENCE_ID` undoes it. The rows stay in the ledger; the quarantine lists them with the reason.

Nothing here runs unless a step has failed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

import polars as pl

from memstate_core.ingest.reasons import Reason, shortened
from memstate_core.model.errors import EvidenceSetAside
from memstate_core.model.frames import DECISION, QUARANTINE, project
from memstate_core.model.ids import uuid_expr
from memstate_core.night.replay import dies, fails
from memstate_core.night.unforeseen import described, is_unforeseen
from memstate_core.run.begin import base_links
from memstate_core.run.run import Run
from memstate_core.run.store import Store
from memstate_core.run.view import shard_evidence
from memstate_core.state.decisions import SET_ASIDE

MOST_REPLAYS = 200
"""Replays of one search; after that, rows are set aside by groups that fail together."""

DEATHS = 2
"""A step that killed the process this many times in a row is searched; once may be a power cut."""

Fails = Callable[[pl.Series], bool]
_NAME = "evidence_id"
_QUARANTINE_ID = uuid_expr("quarantine", pl.lit(SET_ASIDE), pl.col(_NAME))


@contextmanager
def contained(store: Store, run: Run, step: str) -> Iterator[None]:
    """Runs a step or a check of a run; if it fails with some evidence, sets that aside.

    Raises:
        EvidenceSetAside: the step failed with some evidence, which the next run leaves out.
    """
    run.enter(step)
    try:
        yield
    except BaseException as error:
        run.leave()
        if not is_unforeseen(error):
            raise
        problem = described(error)
        guilty = set_aside_guilty(store, run, step, problem, killed=isinstance(error, MemoryError))
        if guilty.is_empty():
            raise
        raise EvidenceSetAside(run.facts.shard, step, guilty.to_list(), problem) from error
    run.leave()


def set_aside_after_deaths(store: Store, run: Run, deaths: Sequence[str]) -> bool:
    """Sets evidence aside if the last runs died in the same step because of it, and returns whether it did.

    Args:
        store: the store.
        run: a run that has begun.
        deaths: the steps in which the last runs died, newest last (`memstate_core.run.run.died_in`).
    """
    if len(deaths) < DEATHS or len({*deaths[-DEATHS:]}) > 1:
        return False
    problem = f"it killed the process of {len(deaths)} runs"
    return set_aside_guilty(store, run, deaths[-1], problem, killed=True).len() > 0


def set_aside_guilty(store: Store, run: Run, step: str, problem: str, *, killed: bool = False) -> pl.Series:
    """Finds the evidence with which a step of a run fails, and sets it aside from the next run on.

    Args:
        store: the store.
        run: the run whose step failed.
        step: the step.
        problem: the error, for the record.
        killed: the step killed its process, so replay it in others.

    Returns:
        The ids of the evidence, empty if the failure does not come from evidence.
    """
    attempt = dies if killed else fails
    every = shard_evidence(store.ledger, run, [_NAME])[_NAME].sort()
    new = every.filter(~every.is_in(base_links(store, run)[_NAME].implode()))
    for suspects in (new, every):
        tried = _Replays(lambda held_back: attempt(store, run, step, held_back), suspects)
        if suspects.len() and tried.fails_with(suspects) and not tried.fails_with(suspects.clear()):
            guilty = tried.guilty(suspects)
            _keep(store, run, guilty, f"step {step} failed with it: {shortened(problem)}")
            return guilty
    return new.clear()


class _Replays:
    """Attempts with parts of the suspects, each with everything else held back."""

    def __init__(self, attempt: Fails, suspects: pl.Series) -> None:
        self._attempt, self._suspects, self._left = attempt, suspects, MOST_REPLAYS

    def fails_with(self, rows: pl.Series) -> bool:
        self._left -= 1
        return self._attempt(self._suspects.filter(~self._suspects.is_in(rows.implode())))

    def guilty(self, suspects: pl.Series) -> pl.Series:
        """The rows to set aside so that the others pass, found by halving."""
        return self._search(suspects.clear(), suspects)[0]

    def _search(self, good: pl.Series, rows: pl.Series) -> tuple[pl.Series, pl.Series]:
        """The guilty among rows that fail together with good ones, and all that pass together."""
        if rows.len() == 1 or self._left <= 0:
            return rows, good
        found = []
        for half in (rows[: rows.len() // 2], rows[rows.len() // 2 :]):
            both = pl.concat([good, half])
            if self.fails_with(both):
                guilty, good = self._search(good, half)
                found.append(guilty)
            else:
                good = both
        return pl.concat(found) if found else rows.clear(), good


def _keep(store: Store, run: Run, guilty: pl.Series, reason: str) -> None:
    columns = ["evidence_id", "scope", "payload_json", "source_uri", "content_sha256"]
    rows = shard_evidence(store.ledger, run, columns).filter(pl.col(_NAME).is_in(guilty.implode())).sort(_NAME)
    named = rows.with_columns(
        kind=pl.lit(SET_ASIDE), evidence_ids=pl.concat_list(_NAME), reason=pl.lit(reason), payload_json=pl.lit("{}")
    )
    run.set_aside(project(named, DECISION, nulls=["topic_id"]))
    _quarantine(store, run, rows.with_columns(reason=pl.lit(reason)))


def quarantine_set_aside(store: Store, run: Run) -> None:
    """Lists the evidence that a run sets aside in the quarantine, where it is missing there.

    It is missing if a plan set the evidence aside, since the run of the plan failed on a clone.
    """
    decided = run.decisions(SET_ASIDE).select("reason", evidence_id="evidence_ids").explode(_NAME)
    if decided.is_empty():
        return
    columns = [_NAME, "payload_json", "source_uri", "content_sha256"]
    found = store.ledger.scan("evidence", run.facts.evidence_version).join(decided.lazy(), on=_NAME).sort(_NAME)
    rows = found.select("reason", *columns).collect().with_columns(quarantine_id=_QUARANTINE_ID)
    listed = store.ledger.scan("quarantine").select("quarantine_id").collect()
    missing = rows.join(listed, on="quarantine_id", how="anti")
    if missing.height:
        _quarantine(store, run, missing)


def _quarantine(store: Store, run: Run, rows: pl.DataFrame) -> None:
    with store.ledger.writing(f"run {run.facts.run_id}, setting evidence aside"):
        version = 1 + (store.ledger.last_transaction("quarantine", SET_ASIDE) or 0)
        store.ledger.append("quarantine", _refusals(rows, run.facts.now, run.facts.run_id), SET_ASIDE, version)


def _refusals(rows: pl.DataFrame, now: datetime, run_id: str) -> pl.DataFrame:
    raw = pl.col("payload_json").fill_null("")
    return project(
        rows.with_columns(
            quarantine_id=_QUARANTINE_ID,
            file=pl.coalesce("source_uri", pl.lit("evidence")),
            line=pl.lit(0, pl.Int64),
            reason=pl.lit(Reason.SET_ASIDE.value),
            detail=pl.format("evidence {}: {}", _NAME, "reason"),
            raw=raw.cast(pl.Binary),
            raw_bytes=raw.str.len_bytes().cast(pl.Int64),
            raw_sha256="content_sha256",
            imported_at=pl.lit(now),
            run_id=pl.lit(run_id),
        ),
        QUARANTINE,
    )
