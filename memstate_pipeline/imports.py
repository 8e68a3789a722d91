"""Importing the inbox between nights, as the sensor asks for it.

No run of a shard begins: only the ledger grows, and the next night places the new evidence. What was quarantined or
could not be read shows on the asset `evidence`, and the page of the next night covers it.
"""

import dagster as dg

from memstate_core.ingest import unreported
from memstate_core.ingest.inbox import failed_files, import_inbox
from memstate_core.ingest.report import ImportReport
from memstate_core.model.quantity import quantity
from memstate_core.run.store import Store
from memstate_pipeline.assets.common import WRITER_POOL
from memstate_pipeline.assets.ingest import logical_now
from memstate_pipeline.checks import DUMPS_READABLE
from memstate_pipeline.resources import StoreResource

EVIDENCE = dg.AssetKey("evidence")


@dg.op(pool=WRITER_POOL)
def read_inbox(context: dg.OpExecutionContext, store: StoreResource) -> None:
    """Imports the inbox into the ledger and reports the result on the asset `evidence`."""
    opened, run_id = store.store, context.run_id
    report = import_inbox(opened.home, opened.ledger, opened.settings, now=logical_now(context), run_id=run_id)
    unreported.keep(opened.home.imports, run_id, report)
    store.commit()
    report_import(context, opened, report)


def report_import(context: dg.OpExecutionContext, store: Store, report: ImportReport) -> None:
    """Reports an import of the inbox on the asset `evidence`."""
    failed = failed_files(store.home)
    errors = [error.message for error in report.errors]
    counts = {name: getattr(report, name) for name in unreported.COUNTS}
    metadata = {**counts, "reasons": dg.MetadataValue.json(dict(report.reasons))}
    metadata["unreadable"] = dg.MetadataValue.json(errors)
    context.log_event(dg.AssetObservation(EVIDENCE, metadata=metadata))
    context.instance.report_runless_asset_event(
        dg.AssetCheckEvaluation(
            check_name=DUMPS_READABLE,
            asset_key=EVIDENCE,
            passed=not errors and not failed,
            severity=dg.AssetCheckSeverity.WARN,
            metadata={"errors": dg.MetadataValue.json(errors), "failed_files": dg.MetadataValue.json(failed[:20])},
        )
    )
    if report.quarantined or errors:
        refused = quantity(report.quarantined, "rows quarantined")
        context.log.warning(f"{refused}, {quantity(len(errors), 'files not read to their end')}")
