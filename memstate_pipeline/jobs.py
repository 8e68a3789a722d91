"""Jobs: the nightly run, and the import of the inbox alone. Both write, so each runs in one process."""

from __future__ import annotations

import dagster as dg

from memstate_pipeline.imports import read_inbox

NIGHTLY, IMPORT_INBOX = "nightly_maintenance", "import_inbox"


def nightly_job() -> dg.UnresolvedAssetJobDefinition:
    """All assets of a shard."""
    return dg.define_asset_job(
        NIGHTLY,
        selection=dg.AssetSelection.all(),
        executor_def=dg.in_process_executor,
        description="Import the inbox, fold, embed, merge, forget, check, publish, report.",
    )


def import_job() -> dg.JobDefinition:
    """The import of the inbox."""

    @dg.job(name=IMPORT_INBOX, executor_def=dg.in_process_executor)
    def import_inbox() -> None:
        """Import the inbox into the ledger; the next nightly run places the new evidence."""
        read_inbox()

    return import_inbox
