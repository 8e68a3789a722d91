"""What a night takes in before it looks at a shard: dumps, findings of the checkers, accesses, writes of replicas.

Input belongs to no shard until it is in the ledger, so this is done for all of them at once. Repeating it changes
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from memstate_core.ingest import unreported
from memstate_core.ingest.accesses.collect import AccessReport, collect_accesses
from memstate_core.ingest.inbox import import_inbox
from memstate_core.ingest.report import ImportReport
from memstate_core.night.verification.record import hand_over_findings
from memstate_core.run.store import Store
from memstate_pipeline.publication import fetch_writes, release_writes


@dataclass(frozen=True)
class TakenIn:
    """What became of the input.

    Attributes:
        imported: the report of the inbox.
        accesses: that of the access journal.
        problems: why writes of replicas were not fetched, or could not be removed where they were.
    """

    imported: ImportReport
    accesses: AccessReport
    problems: tuple[str, ...]


def take_in(store: Store, run_id: str, now: datetime, tags: Mapping[str, str]) -> TakenIn:
    """Imports all input into the ledger; the caller holds the store's lock.

    Reports are kept until the page of a night covers them.

    Args:
        store: the store.
        run_id: the run id of the rows.
        now: the time of the import.
        tags: the tags of the run; a trial, or a run that is held to a plan, fetches nothing.

    Raises:
        StoreLocked: another process held the ledger's lock for longer than the wait allows.
    """
    home, ledger, settings, problems = store.home, store.ledger, store.settings, list[str]()
    if (unfetched := fetch_writes(store, tags)) is not None:
        problems.append(f"what replicas accepted is not fetched: {unfetched}")
    imported = import_inbox(home, ledger, settings, now=now, run_id=run_id)
    if hand_over_findings(store, now):
        imported = imported.followed_by(import_inbox(home, ledger, settings, now=now, run_id=run_id))
    unreported.keep(home.imports, run_id, imported)
    accesses = collect_accesses(home, ledger, settings, now, run_id)
    unreported.keep_errors(home.imports, f"{run_id}-accesses", accesses.errors)
    if (unreleased := release_writes(store, tags)) is not None:
        problems.append(f"what replicas accepted stays in the inbox at the URL: {unreleased}")
    return TakenIn(imported, accesses, tuple(problems))
