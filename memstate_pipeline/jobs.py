"""Jobs: the whole nightly run, and reading the inbox alone. Both write, so both run in one process."""

from __future__ import annotations

import dagster as dg

NIGHTLY, IMPORT_INBOX = "nightly_maintenance", "import_inbox"


def jobs() -> list[dg.UnresolvedAssetJobDefinition]:
    """The jobs of the store."""
    return [
        dg.define_asset_job(
            NIGHTLY,
            selection=dg.AssetSelection.all(),
            executor_def=dg.in_process_executor,
            description="Import the inbox, fold, embed, merge, forget, check, publish, report.",
        ),
        dg.define_asset_job(
            IMPORT_INBOX,
            selection=dg.AssetSelection.assets("evidence"),
            executor_def=dg.in_process_executor,
            description="Read the inbox into the ledger; the next nightly run takes it from there.",
        ),
    ]
