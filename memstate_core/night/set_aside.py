"""Rows that a run cannot digest are found by bisection and set aside, so that no accepted row stops the nights.

A row is a piece of evidence or an access. When a step or a check fails on an unforeseen error or on its memory budget,
the steps are replayed without part of the new rows until those are found with which they fail and without which they do
not. Setting them aside is a decision: the next run takes it before its first step and records it when it publishes, a
rebuild honours it, and `memstate undo ID` undoes it. The rows stay in the ledger; the quarantine lists them with the
reason.

Nothing here runs unless a step has failed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime
from functools import partial

import polars as pl

from memstate_core.ingest.bisection import guilty_rows
from memstate_core.ingest.reasons import Reason, shortened
from memstate_core.ingest.unforeseen import described, is_unforeseen
from memstate_core.model.errors import EvidenceSetAside
from memstate_core.model.frames import project
from memstate_core.model.ids import sha256_expr, uuid_expr
from memstate_core.model.ledger_tables import DECISION, QUARANTINE
from memstate_core.model.quantity import quantity
from memstate_core.model.text import iso_expr
from memstate_core.night.replay import STEPS, dies, fails
from memstate_core.run.begin import base_links, unread_accesses
from memstate_core.run.run import Run
from memstate_core.run.store import Store
from memstate_core.run.view import shard_accesses, shard_evidence
from memstate_core.state.fold.decisions import SET_ASIDE

DEATHS = 2
"""A step that killed the process this many times in a row is searched; once may be a power cut."""

_QUARANTINE_ID = uuid_expr("quarantine", pl.lit(SET_ASIDE), pl.col("id"))
_IS_ACCESS = pl.col("table") == "accesses"
_CONTENT = pl.struct("scope", "topic_id", "fields", "source", "failed", at=iso_expr(pl.col("at")))


Hold = Callable[[], AbstractContextManager[None]]
"""Makes a block that holds the store, so that it may write there."""


@contextmanager
def contained(store: Store, run: Run, step: str, hold: Hold = nullcontext) -> Iterator[None]:
    """Runs a step or a check of a run; if it fails with some rows, sets those aside.

    Args:
        store: the store.
        run: the run in progress.
        step: the step or check.
        hold: holds the store while rows are set aside, for a run that holds its shard alone.

    Raises:
        EvidenceSetAside: the step failed with some rows, which the next run leaves out.
    """
    run.enter(step)
    try:
        yield
    except BaseException as error:
        run.leave()
        if not is_unforeseen(error):
            raise
        problem = described(error)
        guilty = set_aside_guilty(store, run, step, problem, killed=isinstance(error, MemoryError), hold=hold)
        if guilty.is_empty():
            raise
        evidence, accesses = (guilty.filter(part)["id"].to_list() for part in (~_IS_ACCESS, _IS_ACCESS))
        raise EvidenceSetAside(run.facts.shard, step, evidence, accesses, problem) from error
    run.leave()


def set_aside_after_deaths(store: Store, run: Run, deaths: Sequence[str]) -> bool:
    """Sets rows aside if the last runs died in the same step because of it, and returns whether it did.

    Args:
        store: the store.
        run: a run that has begun.
        deaths: the steps in which the last runs died, newest last (`memstate_core.run.run.died_in`).
    """
    if len(deaths) < DEATHS or len({*deaths[-DEATHS:]}) > 1 or deaths[-1] not in STEPS:
        return False
    problem = f"it killed the process of {quantity(len(deaths), 'runs')}"
    return set_aside_guilty(store, run, deaths[-1], problem, killed=True).height > 0


def set_aside_guilty(
    store: Store, run: Run, step: str, problem: str, *, killed: bool = False, hold: Hold = nullcontext
) -> pl.DataFrame:
    """Finds the rows with which a step of a run fails, and sets them aside from the next run on.

    The rows that are new since the served snapshot are searched first, then all.

    Args:
        store: the store.
        run: the run whose step failed.
        step: the step.
        problem: the error, for the record.
        killed: the step killed its process, so replay it in others.
        hold: as for `contained`.

    Returns:
        The rows (columns id, table), empty if the failure does not come from rows.
    """
    attempt = partial(dies if killed else fails, store, run, step)
    for suspects in (_new_rows(store, run), _all_rows(store, run)):
        ids = suspects["id"].sort()
        if found := guilty_rows(ids.to_list(), partial(_fails_with, attempt, ids)):
            guilty = suspects.filter(pl.col("id").is_in(found))
            with hold():
                _keep(store, run, guilty["id"], f"step {step} failed with it: {shortened(problem)}")
            return guilty
    return pl.DataFrame(schema={"id": pl.String, "table": pl.String})


def _fails_with(attempt: Callable[[pl.Series], bool], ids: pl.Series, some: list[str]) -> bool:
    """Whether an attempt with some of the suspects fails, all others held back."""
    return attempt(ids.filter(~ids.is_in(some)))


def _all_rows(store: Store, run: Run) -> pl.DataFrame:
    return _rows(shard_evidence(store.ledger, run, ["evidence_id"]), shard_accesses(store.ledger, run))


def _new_rows(store: Store, run: Run) -> pl.DataFrame:
    evidence = shard_evidence(store.ledger, run, ["evidence_id"])
    new = evidence.join(base_links(store, run), on="evidence_id", how="anti")
    return _rows(new, unread_accesses(store, run))


def _rows(evidence: pl.DataFrame, accesses: pl.DataFrame) -> pl.DataFrame:
    """Evidence and accesses by id (columns id, table)."""
    pieces = evidence.select(id="evidence_id", table=pl.lit("evidence"))
    return pl.concat([pieces, accesses.unique("access_id").select(id="access_id", table=pl.lit("accesses"))])


def _keep(store: Store, run: Run, guilty: pl.Series, reason: str) -> None:
    rows = _described(store, run).filter(pl.col("id").is_in(guilty.implode())).collect().sort("id")
    rows = rows.with_columns(reason=pl.lit(reason))
    payload = pl.struct("table", "was").struct.json_encode()
    held = base_links(store, run).select(id="evidence_id", _held="topic_id")
    decided = rows.join(held, on="id", how="left", maintain_order="left").with_columns(
        was=pl.coalesce("_held", "was"), kind=pl.lit(SET_ASIDE), evidence_ids=pl.concat_list("id")
    )
    run.set_aside(project(decided.with_columns(payload_json=payload), DECISION, nulls=["topic_id"]))
    _quarantine(store, run, rows)


def _described(store: Store, run: Run) -> pl.LazyFrame:
    """All rows of the ledger that the run sees or sets aside, with their content as text.

    Columns id, table, scope, was (the topic of an access), payload_json, source_uri, content_sha256.
    """
    facts, none = run.facts, pl.lit(None, pl.String)
    columns = ["scope", "payload_json", "source_uri", "content_sha256"]
    evidence = store.ledger.scan("evidence", facts.evidence_version)
    rows = [evidence.select("scope", *columns[1:], id="evidence_id", table=pl.lit("evidence"), was=none)]
    if facts.accesses_version is not None:
        accesses = store.ledger.scan("accesses", facts.accesses_version).unique("access_id")
        content = accesses.with_columns(payload_json=_CONTENT.struct.json_encode(), source_uri=pl.lit("accesses"))
        hashed = content.with_columns(content_sha256=sha256_expr(pl.col("payload_json")))
        rows.append(hashed.select("scope", *columns[1:], id="access_id", table=pl.lit("accesses"), was="topic_id"))
    return pl.concat(rows)


def quarantine_set_aside(store: Store, run: Run) -> None:
    """Lists the rows that a run sets aside in the quarantine, where they are missing there.

    They are missing if a plan set them aside, since the run of the plan failed on a clone.
    """
    left_out = run.decisions(SET_ASIDE).filter(pl.col("kind") == SET_ASIDE)
    decided = left_out.select("reason", id="evidence_ids").explode("id")
    if decided.height:
        rows = _described(store, run).join(decided.lazy(), on="id").sort("id").collect()
        _quarantine(store, run, rows)


def _quarantine(store: Store, run: Run, rows: pl.DataFrame) -> None:
    """Lists rows in the quarantine that are not there yet; a run of another shard may have listed an access."""
    named = rows.with_columns(quarantine_id=_QUARANTINE_ID)
    if _unlisted(store, named).is_empty():
        return
    with store.ledger.writing(f"run {run.facts.run_id}, setting rows aside"):
        missing = _unlisted(store, named)  # now that no other shard's night adds any
        if missing.height:
            version = 1 + (store.ledger.last_transaction("quarantine", SET_ASIDE) or 0)
            store.ledger.append("quarantine", _refusals(missing, run.facts.now, run.facts.run_id), SET_ASIDE, version)


def _unlisted(store: Store, named: pl.DataFrame) -> pl.DataFrame:
    listed = store.ledger.scan("quarantine").select("quarantine_id").collect()
    return named.join(listed, on="quarantine_id", how="anti", maintain_order="left")


def _refusals(rows: pl.DataFrame, now: datetime, run_id: str) -> pl.DataFrame:
    raw = pl.col("payload_json").fill_null("")
    what = pl.when(_IS_ACCESS).then(pl.lit("access")).otherwise(pl.lit("evidence"))
    return project(
        rows.with_columns(
            file=pl.coalesce("source_uri", pl.lit("evidence")),
            line=pl.lit(0, pl.Int64),
            reason=pl.lit(Reason.SET_ASIDE.value),
            detail=pl.format("{} {}: {}", what, "id", "reason"),
            raw=raw.cast(pl.Binary),
            raw_bytes=raw.str.len_bytes().cast(pl.Int64),
            raw_sha256="content_sha256",
            imported_at=pl.lit(now),
            run_id=pl.lit(run_id),
        ),
        QUARANTINE,
    )
