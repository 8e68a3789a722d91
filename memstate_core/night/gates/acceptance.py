"""Acceptances: a person lets a night through gates that it fails, for one run, with a reason.

Each is a decision of the run, so the ledger records it with the publication. Correctness conditions and damage are
never accepted: what they refuse is wrong, not unexpected.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import polars as pl

from memstate_core.model.errors import AcceptanceInvalid
from memstate_core.model.frames import empty, project
from memstate_core.model.ledger_tables import DECISION
from memstate_core.night.gates.verdict import GATES, Verdict
from memstate_core.state.fold.decisions import ACCEPTED


@dataclass(frozen=True)
class Acceptance:
    """What a person accepts in one run.

    Attributes:
        gates: the names of the gates.
        why: the reason.
        by: who accepts.
    """

    gates: tuple[str, ...]
    why: str
    by: str


def acceptance(gates: Sequence[str], why: str | None, by: str) -> Acceptance | None:
    """An acceptance as it was given; None where none was given.

    Raises:
        AcceptanceInvalid: a name is no gate, there is no reason, or there is a reason for nothing.
    """
    reason = (why or "").strip()
    if unknown := [name for name in gates if name not in GATES]:
        raise AcceptanceInvalid(f"{unknown[0]!r} is no gate", list(GATES))
    if gates and not reason:
        raise AcceptanceInvalid(f"{', '.join(gates)} accepted without a reason", list(GATES))
    if why is not None and not gates:
        raise AcceptanceInvalid("a reason without a gate to accept", list(GATES))
    return Acceptance(tuple(dict.fromkeys(gates)), reason, by) if gates else None


def accepting(verdicts: Iterable[Verdict], given: Acceptance | None) -> list[Verdict]:
    """The verdicts, with the accepted failures of gates that would refuse the night marked as such."""
    if given is None:
        return list(verdicts)
    accepted = f"{given.by}: {given.why}"
    return [
        replace(verdict, accepted=accepted) if verdict.is_refusing and verdict.gate in given.gates else verdict
        for verdict in verdicts
    ]


def acceptance_decisions(verdicts: Iterable[Verdict], given: Acceptance | None) -> pl.DataFrame:
    """The accepted failures as decisions (columns DECISION)."""
    rows = [{"gate": v.gate, "found": v.found, "expected": v.expected} for v in verdicts if v.accepted is not None]
    if given is None or not rows:
        return empty(DECISION)
    payload = pl.struct("gate", "found", "expected", by=pl.lit(given.by)).struct.json_encode()
    decided = pl.DataFrame(rows).with_columns(kind=pl.lit(ACCEPTED), payload_json=payload, reason=pl.lit(given.why))
    none = pl.lit([], pl.List(pl.String))
    return project(decided.with_columns(evidence_ids=none), DECISION, nulls=("scope", "topic_id"))
