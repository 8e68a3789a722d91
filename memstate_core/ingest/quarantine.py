"""Dealing with refused rows: listing, replaying and dismissing them.

Invariant: the quarantine itself only grows. That a row was dealt with is a row of its own (`quarantine_actions`), so
nothing that was refused is ever lost, and a row that is refused again with another dump stays dealt with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import polars as pl

from memstate_core.ingest.bisection import guilty_rows
from memstate_core.ingest.deduplication import CONFLICT, NEW, Deduplication
from memstate_core.ingest.evidence_frame import evidence_frame, identity_frame
from memstate_core.ingest.raw_rows import RawRow
from memstate_core.ingest.reasons import Reason
from memstate_core.ingest.unforeseen import described, is_unforeseen, raises_unforeseen
from memstate_core.ingest.validation.batch import validate_batch, without_erased
from memstate_core.ingest.validation.quarantine import Refusal
from memstate_core.ingest.validation.timestamps import Clock
from memstate_core.ingest.validation.validate import Rules
from memstate_core.model.frames import project
from memstate_core.model.ids import sha256_text
from memstate_core.model.ledger_tables import QUARANTINE_ACTIONS
from memstate_core.model.observation import Observation
from memstate_core.policy.settings import Settings
from memstate_core.state.ledger.erased_observations import Erased
from memstate_core.state.ledger.ledger import Ledger

DISMISSED, REPLAYED = "dismissed", "replayed"
OPEN = "open"
ACTIONS = "quarantine_actions"
_KEYS = frozenset(Observation.__struct_fields__)


@dataclass(frozen=True)
class Replayed:
    """The outcome of a replay.

    Attributes:
        accepted: rows that became evidence.
        duplicate: rows whose content the ledger had already.
        refused: the rows that are refused again, with the reason (columns quarantine_id, reason, detail).
    """

    accepted: int
    duplicate: int
    refused: pl.DataFrame


def quarantined(ledger: Ledger) -> pl.LazyFrame:
    """The refused rows, the newest first.

    Returns:
        Columns QUARANTINE; `state`: open, replayed or dismissed; `why`: the reason for which a row was dismissed.
    """
    last = ledger.scan(ACTIONS).sort("at").unique("quarantine_id", keep="last")
    done = last.select("quarantine_id", state="action", why="reason")
    rows = ledger.scan("quarantine").unique("quarantine_id", keep="first", maintain_order=True)
    known = rows.join(done, on="quarantine_id", how="left", maintain_order="left")
    return known.with_columns(pl.col("state").fill_null(OPEN)).sort(
        "imported_at", "file", "line", descending=[True, False, False], maintain_order=True
    )


def open_count(ledger: Ledger) -> int:
    """How many refused rows nobody has dealt with."""
    done = ledger.scan(ACTIONS).select("quarantine_id")
    ids = ledger.scan("quarantine").select("quarantine_id").unique()
    return int(ids.join(done, on="quarantine_id", how="anti").select(pl.len()).collect().item())


def dismiss(ledger: Ledger, rows: pl.DataFrame, why: str, now: datetime, run_id: str) -> int:
    """Records that open rows need nothing more.

    Args:
        ledger: the ledger.
        rows: some of `quarantined`.
        why: the reason to record.
        now: the time to record.
        run_id: the command.

    Returns:
        How many rows were open.
    """
    with ledger.writing(f"quarantine {run_id}"):
        still = _still_open(ledger, rows)
        _record(ledger, still["quarantine_id"], DISMISSED, why, now, run_id)
    return still.height


def replay(
    ledger: Ledger, settings: Settings, rows: pl.DataFrame, default_scope: str, now: datetime, run_id: str
) -> Replayed:
    """Imports open rows again under today's settings, as observations; rows that are refused again stay open.

    A row that raises an unforeseen error is refused, and keeps no other row out.

    Args:
        ledger: the ledger.
        settings: the home's settings.
        rows: some of `quarantined`.
        default_scope: the scope of rows that name none.
        now: the time of the import.
        run_id: the command.
    """
    rules, longest = Rules(default_scope, Clock.at(now, settings)), settings.ingest.max_line_mib << 20
    with ledger.writing(f"quarantine {run_id}"):
        still = _still_open(ledger, rows)
        accepted, refusals = _Replay(ledger, rules, longest, now, run_id).take(_raw_rows(still))
        refused = _refused(still["quarantine_id"], refusals)
        done = still.join(refused, on="quarantine_id", how="anti", maintain_order="left")["quarantine_id"]
        _record(ledger, done, REPLAYED, None, now, run_id)
    return Replayed(accepted, len(done) - accepted, refused)


class _Replay:
    """Appends rows to the ledger, whose lock is held, without those that are refused.

    Args:
        ledger: the ledger.
        rules: rules for every row.
        longest: most bytes of a row.
        now: the time of the import.
        run_id: the run id of the evidence.
    """

    def __init__(self, ledger: Ledger, rules: Rules, longest: int, now: datetime, run_id: str) -> None:
        self._deduplication, self._erased = Deduplication(ledger), Erased(ledger.root)
        self._rules, self._longest, self._now, self._run_id = rules, longest, now, run_id

    def take(self, rows: list[RawRow]) -> tuple[int, list[Refusal]]:
        """Appends what is valid; returns how many rows became evidence, and the refusals."""
        try:
            return self._append(rows)
        except BaseException as error:
            if not is_unforeseen(error):
                raise
            guilty = guilty_rows(rows, self._fails)
            if not guilty:
                raise
            detail = f"importing failed with it: {described(error)}"
        lines = {row.line for row in guilty}
        accepted, refusals = self._append([row for row in rows if row.line not in lines])
        return accepted, [*refusals, *(Refusal(row, Reason.UNFORESEEN_ERROR, detail) for row in guilty)]

    def _append(self, rows: list[RawRow]) -> tuple[int, list[Refusal]]:
        evidence, refusals = self._prepared(rows)
        return self._deduplication.append_new(evidence), refusals

    def _prepared(self, rows: list[RawRow]) -> tuple[pl.DataFrame, list[Refusal]]:
        """The new observations among rows (columns EVIDENCE), and the refusals."""
        batch = without_erased(validate_batch(rows, self._rules, self._longest), self._erased)
        status = self._deduplication.classify(identity_frame(batch.records))
        new = [batch.records[at] for at in (status == NEW).arg_true()]
        conflicts = map(batch.conflict, (status == CONFLICT).arg_true())
        return evidence_frame(new, self._now, self._run_id), [*batch.refusals, *conflicts]

    def _fails(self, rows: list[RawRow]) -> bool:
        """Whether rows raise an unforeseen error, tried on an empty ledger in a folder of its own."""

        def store() -> None:
            with TemporaryDirectory() as folder:
                Ledger(Path(folder)).append("evidence", self._prepared(rows)[0], "trial")

        return raises_unforeseen(store)


def _still_open(ledger: Ledger, rows: pl.DataFrame) -> pl.DataFrame:
    done = ledger.scan(ACTIONS).select("quarantine_id").collect()
    return rows.join(done, on="quarantine_id", how="anti", maintain_order="left")


def _raw_rows(rows: pl.DataFrame) -> list[RawRow]:
    """The rows as they were read, numbered from 1; with the reason where they cannot be observations."""
    columns = rows.select("raw", "raw_bytes", "reason").iter_rows()
    return [_raw_row(line, *cells) for line, cells in enumerate(columns, 1)]


def _raw_row(line: int, raw: bytes, length: int, reason: str) -> RawRow:
    if reason == Reason.SET_ASIDE:
        detail = "it was accepted already, and set aside by a run; `memstate undo ID` readmits it"
        return RawRow(line, raw, length, reason=Reason.SET_ASIDE, detail=detail)
    if length > len(raw):
        detail = f"only the first {len(raw):,} of its {length:,} bytes were kept; import the file again"
        return RawRow(line, raw, length, reason=Reason.LINE_TOO_LONG, detail=detail)
    unknown = _unknown_keys(raw)
    if unknown:
        detail = (
            f"it has {', '.join(unknown[:5])}, so it may be of another format than observations; import the file again"
        )
        return RawRow(line, raw, length, reason=Reason.UNKNOWN_WORD, detail=detail)
    return RawRow(line, raw, length)


def _unknown_keys(raw: bytes) -> list[str]:
    """Keys that no observation has; none if the row is no JSON object, which its validation says better."""
    try:
        return sorted(msgspec.json.decode(raw, type=dict[str, msgspec.Raw]).keys() - _KEYS)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return []


def _refused(ids: pl.Series, refusals: Sequence[Refusal]) -> pl.DataFrame:
    found = [(ids[each.row.line - 1], each.reason.value, each.detail) for each in refusals]
    schema = dict.fromkeys(("quarantine_id", "reason", "detail"), pl.String)
    return pl.DataFrame(found, schema=schema, orient="row")


def _record(ledger: Ledger, ids: pl.Series, action: str, why: str | None, now: datetime, run_id: str) -> None:
    if ids.is_empty():
        return
    rows = ids.to_frame("quarantine_id").with_columns(
        action=pl.lit(action), reason=pl.lit(why, pl.String), at=pl.lit(now), run_id=pl.lit(run_id)
    )
    batch = sha256_text("\n".join([run_id, action, *ids]))
    ledger.append(ACTIONS, project(rows, QUARANTINE_ACTIONS), f"{ACTIONS}/{batch}")
