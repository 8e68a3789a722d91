"""Commits of validated batches to the ledger, without the rows that raise an unforeseen error.

Invariant: no row keeps others out of the ledger. Where a batch fails, its files are committed by halves, and the guilty
rows of a single file are found by bisection and refused (`unforeseen_error`). Where that fails too, the rows of the
batch are left out and the file has failed. An error that comes without the rows is not theirs, and is raised.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from itertools import accumulate, chain, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import polars as pl

from memstate_core.ingest.api_files import accepted_at
from memstate_core.ingest.bisection import guilty_rows
from memstate_core.ingest.deduplication import CONFLICT, NEW, Deduplication
from memstate_core.ingest.dumps import READ_ERRORS, unreadable
from memstate_core.ingest.evidence_frame import evidence_frame, identity_frame
from memstate_core.ingest.file_progress import FileProgress
from memstate_core.ingest.raw_rows import RawRow
from memstate_core.ingest.reasons import Reason
from memstate_core.ingest.unforeseen import described, is_unforeseen, raises_unforeseen
from memstate_core.ingest.validation.batch import ValidatedBatch, validate_batch, without_erased
from memstate_core.ingest.validation.quarantine import Refusal, quarantine_frame
from memstate_core.ingest.validation.validate import Rules
from memstate_core.model.frames import empty
from memstate_core.model.ledger_tables import EVIDENCE, QUARANTINE
from memstate_core.state.ledger.erased_observations import Erased
from memstate_core.state.ledger.ledger import Ledger


class _Prepared(NamedTuple):
    """What a batch adds to the ledger.

    Attributes:
        evidence: its new observations (columns EVIDENCE).
        quarantine: its refused rows (columns QUARANTINE).
        results: number of new rows and the refusals of each file.
        kept: what each file adds to `FileProgress.kept`.
    """

    evidence: pl.DataFrame
    quarantine: pl.DataFrame
    results: list[tuple[int, list[Refusal]]]
    kept: list[Counter[str]]


class BatchImport:
    """Commits the batches of one import; its view of the ledger is shared by all of them.

    Args:
        ledger: receives evidence and refusals; its lock is taken for each batch.
        rules: rules for every row of the import.
        longest: most bytes of a row; longer ones arrive truncated.
        now: the time of the import.
        run_id: the run id of the rows.
    """

    def __init__(self, ledger: Ledger, rules: Rules, longest: int, now: datetime, run_id: str) -> None:
        self._ledger, self._deduplication = ledger, Deduplication(ledger)
        self._rules, self._longest = rules, longest
        self._now, self._run_id = now, run_id

    def load(self) -> None:
        """Reads what the ledger holds, so that a process which dies of that dies before a file is begun."""
        with self._ledger.writing(f"import {self._run_id}"):
            self._deduplication.load()

    def take(self, files: Sequence[FileProgress]) -> None:
        """Commits the pending rows of some files as one batch, and releases them.

        Raises:
            Exception: an unforeseen error that comes without the rows too, or with any write to the ledger.
        """
        pending = [file for file in files if file.rows]
        if not pending:
            return
        try:
            self._commit(pending)
        except BaseException as error:
            if not is_unforeseen(error):
                raise
            problem = error
        else:
            return
        if len(pending) == 1:
            self._take_without_guilty(pending[0], problem)
        else:
            half = len(pending) // 2
            self.take(pending[:half])
            self.take(pending[half:])

    def _take_without_guilty(self, file: FileProgress, error: BaseException) -> None:
        """Commits the pending rows of a file without those that raise an unforeseen error."""
        detail = f"importing failed with it: {described(error)}"
        try:
            if guilty := guilty_rows(file.rows, partial(self._fails, file)):
                self._commit([file], [Refusal(row, Reason.UNFORESEEN_ERROR, detail) for row in guilty])
                return
        except BaseException as another:
            if not is_unforeseen(another):
                raise
            error = another
        else:
            if self._fails(file, []) or not self._takes_writes():
                raise error
        file.fail(unreadable(file.path, error, file.rows[0].line - 1))

    def _commit(self, files: Sequence[FileProgress], refused: Sequence[Refusal] = ()) -> None:
        """Commits pending rows, of which some are refused already."""
        left_out = {id(refusal.row) for refusal in refused}
        validated = [self._validated(file, [row for row in file.rows if id(row) not in left_out]) for file in files]
        with self._ledger.writing(f"import {self._run_id}"):
            erased = Erased(self._ledger.root)  # another process may have erased since this import began
            batch = self._prepared(files, [without_erased(each, erased) for each in validated], refused)
            written = self._deduplication.append_new(batch.evidence) > 0
            self._deduplication.quarantine(batch.quarantine)
        for file, (new, refusals), kept in zip(files, batch.results, batch.kept, strict=True):
            file.kept.update(kept)
            file.settle(written * new, refusals)

    def _validated(self, file: FileProgress, rows: list[RawRow]) -> ValidatedBatch:
        """Validates rows of a file; an error of the system is recorded as the failure of the file."""
        try:
            return validate_batch(rows, self._rules, self._longest)
        except READ_ERRORS as error:
            if is_unforeseen(error):
                raise
            file.fail(unreadable(file.path, error, file.rows[0].line - 1))
            return ValidatedBatch([], [], [])

    def _prepared(
        self, files: Sequence[FileProgress], validated: Sequence[ValidatedBatch], refused: Sequence[Refusal] = ()
    ) -> _Prepared:
        """Compares a batch with the ledger; writes nothing."""
        records = list(chain.from_iterable(each.records for each in validated))
        status = self._deduplication.classify(identity_frame(records))
        arrived = list(chain.from_iterable(map(self._arrived, files, validated)))
        new = (status == NEW).arg_true()
        evidence = evidence_frame([records[at] for at in new], self._now, self._run_id, [arrived[at] for at in new])
        frames, results, kept = [empty(QUARANTINE)], [], []
        ends = list(accumulate((len(each.records) for each in validated), initial=0))
        for file, each, (start, end) in zip(files, validated, pairwise(ends), strict=True):
            mine = status[start:end]
            conflicts = [each.conflict(at) for at in (mine == CONFLICT).arg_true()]
            refusals = [*refused, *each.refusals, *conflicts]
            quarantined, more = file.kept_refusals(refusals)
            frames.append(quarantine_frame(quarantined, file.path.name, self._now, self._run_id))
            results.append((int((mine == NEW).sum()), refusals))
            kept.append(more)
        return _Prepared(evidence, pl.concat(frames), results, kept)

    def _arrived(self, file: FileProgress, found: ValidatedBatch) -> list[datetime]:
        """When each record of a file arrived."""
        return accepted_at(file.path.name, [row.line for row in found.origins], self._now)

    def _fails(self, file: FileProgress, rows: list[RawRow]) -> bool:
        """Whether rows raise an unforeseen error, stored in an empty ledger in a folder of its own."""

        def store() -> None:
            batch = self._prepared([file], [validate_batch(rows, self._rules, self._longest)])
            with TemporaryDirectory() as folder:
                trial = Ledger(Path(folder))
                trial.append("evidence", batch.evidence, "trial")
                trial.append("quarantine", batch.quarantine, "trial")

        return raises_unforeseen(store)

    def _takes_writes(self) -> bool:
        """Whether the ledger accepts an empty batch, so that its failure comes from the rows."""

        def write_nothing() -> None:
            with self._ledger.writing(f"import {self._run_id}, probe"):
                version = 1 + (self._ledger.last_transaction("evidence", "probe") or 0)
                self._ledger.append("evidence", empty(EVIDENCE), "probe", version)

        return not raises_unforeseen(write_nothing)
