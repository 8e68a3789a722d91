"""States to check from data in memory: a graph, a stream of observations, decisions."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl

from memstate_core.model.frames import empty
from memstate_core.model.ledger_tables import ACCESSES, TRANSITIONS
from memstate_core.model.step_frames import ALIASES, EVIDENCE_TOPIC
from memstate_core.night.checks.checked_state import COMPRESSED, CheckedState, Tables, read_tables
from memstate_core.night.checks.recorded import EVIDENCE_COLUMNS, Recorded
from memstate_core.policy.settings import Policy
from memstate_core.state.graph import open_graph
from tests.core.frames import filled
from tests.core.strategies import BUFFER_MIB, day


def tables(path: Path) -> Tables:
    with open_graph(path, read_only=True, buffer_mib=BUFFER_MIB) as graph:
        return read_tables(graph)


def transitions(decisions: pl.DataFrame, policy: Policy, first: int = 0) -> pl.DataFrame:
    """Decisions (columns DECISION) as the ledger records them."""
    numbered = decisions.with_columns(
        seq=pl.int_range(first, first + pl.len(), dtype=pl.Int64),
        shard=pl.lit("s0"),
        run_id=pl.lit("run"),
        at=pl.lit(day(10)),
        policy=pl.lit(policy.digest()),
    )
    return filled(numbered, TRANSITIONS)


def checked_state_of(
    graph: Path,
    evidence: pl.DataFrame,
    decisions: pl.DataFrame,
    last: pl.DataFrame | None = None,
    *,
    policy: Policy | None = None,
    now: datetime | None = None,
    accesses: pl.DataFrame | None = None,
    fresh: pl.DataFrame | None = None,
    **beside: Any,
) -> CheckedState:
    """A graph with the ledger's record of it.

    Args:
        graph: the graph's file.
        evidence: columns EVIDENCE.
        decisions: of earlier runs (columns DECISION).
        last: of the last run; none without it.
        policy: that of the run.
        now: its logical time.
        accesses: all of them.
        fresh: those that the base did not have.
        beside: compressed, aliases and held, as stored beside the graph.
    """
    ruling = policy or Policy()
    earlier = transitions(decisions, ruling)
    own = transitions(decisions.clear() if last is None else last, ruling, earlier.height)
    recorded = Recorded(
        shard="s0",
        now=now or day(10),
        policy=ruling,
        transitions=pl.concat([earlier, own]),
        last=own,
        since_night=own,
        evidence=evidence.select(EVIDENCE_COLUMNS),
        accesses=empty(ACCESSES) if accesses is None else accesses,
        fresh_accesses=empty(ACCESSES) if fresh is None else fresh,
        base=None,
        unseen=pl.concat([earlier, own]),
    )
    given = {"compressed": empty(COMPRESSED), "aliases": empty(ALIASES), "held": empty(EVIDENCE_TOPIC)} | beside
    return CheckedState(recorded, tables(graph), **given)
