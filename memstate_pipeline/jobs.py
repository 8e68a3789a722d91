"""Jobs: the nightly run, the import of the inbox, verification, retention, compaction. Each holds the lock."""

from __future__ import annotations

import dagster as dg

from memstate_core.run.store import Store
from memstate_pipeline.compaction import compact
from memstate_pipeline.imports import read_inbox
from memstate_pipeline.nights import IMPORT_INBOX, MAX_RUNTIME_TAG, NIGHTLY, WHOLE_RUN
from memstate_pipeline.retention import remove_old
from memstate_pipeline.verification import verify_served

VERIFY_STORE, RETENTION, COMPACTION = "verify_store", "retention", "compaction"


def limit(store: Store) -> dict[str, str]:
    """The run tags that limit how long a run of the store may take (`schedule.max_run_hours`)."""
    return {MAX_RUNTIME_TAG: str(round(store.settings.schedule.max_run_hours * 3600))}


def nightly_job(store: Store) -> dg.UnresolvedAssetJobDefinition:
    """All assets of a shard."""
    return dg.define_asset_job(
        NIGHTLY,
        selection=dg.AssetSelection.all(),
        executor_def=dg.in_process_executor,
        tags=WHOLE_RUN | limit(store),
        description="Import the inbox, fold, embed, merge, forget, check, publish, report.",
    )


def import_job(store: Store) -> dg.JobDefinition:
    """The import of the inbox."""

    @dg.job(name=IMPORT_INBOX, executor_def=dg.in_process_executor, tags=limit(store))
    def import_inbox() -> None:
        """Import the inbox into the ledger; the next nightly run places the new evidence."""
        read_inbox()

    return import_inbox


def verify_job(store: Store) -> dg.JobDefinition:
    """The verification of what is served."""

    @dg.job(name=VERIFY_STORE, executor_def=dg.in_process_executor, tags=limit(store))
    def verify_store() -> None:
        """Verify what every shard serves, and fold the ledger again; a failure names what does not hold."""
        verify_served()

    return verify_store


def retention_job(store: Store) -> dg.JobDefinition:
    """The removal of what the settings no longer keep."""

    @dg.job(name=RETENTION, executor_def=dg.in_process_executor, tags=limit(store))
    def retention() -> None:
        """Remove old report pages, records of runs and dumps that were read; the log names them."""
        remove_old()

    return retention


def compaction_job(store: Store) -> dg.JobDefinition:
    """The compaction and vacuum of the ledger."""

    @dg.job(name=COMPACTION, executor_def=dg.in_process_executor, tags=limit(store))
    def compaction() -> None:
        """Join small files of the ledger and remove what nothing reads; the fold of the ledger stays the same."""
        compact()

    return compaction
