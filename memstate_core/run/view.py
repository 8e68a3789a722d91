"""A run's view of the ledger: the evidence at its pinned version, and all decisions up to this step."""

from __future__ import annotations

from functools import partial

import polars as pl

from memstate_core.model.frames import empty
from memstate_core.model.ledger_tables import ACCESSES, DECISION, EVIDENCE
from memstate_core.model.scope import scopes_of_shard
from memstate_core.run.run import Run
from memstate_core.state.fold import decisions as decided
from memstate_core.state.fold.rollbacks import ROLLED_BACK, in_effect
from memstate_core.state.fold.shard_history import of_shard
from memstate_core.state.ledger.ledger import Ledger

UNUSED = ("payload_json", "content_sha256", "source_uri")


def shard_evidence(
    ledger: Ledger, run: Run, columns: list[str] | None = None, among: pl.Series | None = None
) -> pl.DataFrame:
    """The shard's evidence at the version that the run pinned, without what is set aside.

    It has the columns EVIDENCE, or those named; the rows are all, or those with the ids `among`.

    Payload, digest and source are left out unless named: no step reads them.
    """
    facts = run.facts
    if facts.evidence_version is None:
        return pl.DataFrame(schema={name: EVIDENCE[name] for name in columns or EVIDENCE})
    table = ledger.scan("evidence", facts.evidence_version)
    if facts.shards > 1:
        scopes = table.select(pl.col("scope").unique().sort()).collect()["scope"]
        table = table.filter(pl.col("scope").is_in(scopes_of_shard(scopes, facts.shard, facts.shards).implode()))
    if among is not None:
        table = table.filter(pl.col("evidence_id").is_in(among.implode()))
    left_out = left_out_rows(ledger, run)
    if left_out.len():
        table = table.filter(~pl.col("evidence_id").is_in(left_out.implode()))
    wanted = columns or [name for name in EVIDENCE if name not in UNUSED]
    return table.select(wanted).collect()


def left_out_rows(ledger: Ledger, run: Run) -> pl.Series:
    """The ids of evidence and accesses that were set aside by earlier runs and by this one."""
    kinds = pl.col("kind").is_in([decided.SET_ASIDE, decided.READMITTED, ROLLED_BACK])
    version, shard = run.facts.transitions_version, run.facts.shard
    read = partial(_recorded, ledger, run, kinds)
    recorded = read() if version is None else ledger.kept("transitions", version, f"set aside in {shard}", read)
    own = run.decisions(decided.SET_ASIDE, decided.CORRECTIONS)
    either = recorded.height + own.height
    return decided.set_aside(_followed_by(recorded, own) if either else own)


def shard_accesses(ledger: Ledger, run: Run) -> pl.DataFrame:
    """Accesses at the version that the run pinned (columns ACCESSES), of all shards, without what is set aside."""
    if run.facts.accesses_version is None:
        return empty(ACCESSES)
    rows = ledger.scan("accesses", run.facts.accesses_version)
    return rows.filter(~pl.col("access_id").is_in(left_out_rows(ledger, run).implode())).collect()


def decisions(ledger: Ledger, run: Run, *steps: str, but: str | None = None) -> pl.DataFrame:
    """Decisions of earlier runs, then those of this run's steps (all, the named ones, or all but one).

    What rollbacks undid is left out.

    Returns:
        Columns DECISION.
    """
    return numbered_decisions(ledger, run, *steps, but=but).select(DECISION.keys())


def numbered_decisions(ledger: Ledger, run: Run, *steps: str, but: str | None = None) -> pl.DataFrame:
    """The same with their numbers (columns seq and DECISION); those of this run follow the recorded ones."""
    return _numbered(_recorded(ledger, run, pl.lit(True)), run.decisions(*steps, but=but))


def _recorded(ledger: Ledger, run: Run, wanted: pl.Expr) -> pl.DataFrame:
    """Decisions of earlier runs in their order (columns seq and DECISION), those that rollbacks undid among them."""
    facts = run.facts
    if facts.transitions_version is None:
        return empty({"seq": pl.Int64, **DECISION})
    rows = of_shard(ledger.scan("transitions", facts.transitions_version), facts.shard).filter(wanted)
    return rows.sort("seq").select("seq", *DECISION).collect()


def _followed_by(recorded: pl.DataFrame, own: pl.DataFrame) -> pl.DataFrame:
    """The decisions in effect of earlier runs and of a run (columns DECISION)."""
    return _numbered(recorded, own).select(DECISION.keys())


def _numbered(recorded: pl.DataFrame, own: pl.DataFrame) -> pl.DataFrame:
    first = 1 + int(recorded.select(pl.col("seq").max().fill_null(0)).item())
    numbered = own.with_columns(seq=pl.int_range(first, first + pl.len(), dtype=pl.Int64))
    return in_effect(pl.concat([recorded, numbered.select("seq", *DECISION)]))
