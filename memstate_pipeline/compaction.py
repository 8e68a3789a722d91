"""Compaction of the ledger, as its schedule asks for it: the same as `memstate compact`.

It holds the lock of the store, so nights wait for it.
"""

from datetime import UTC, datetime

import dagster as dg

from memstate_core.night.compaction import compact_ledger
from memstate_pipeline.assets.common import WRITER_POOL
from memstate_pipeline.resources import StoreResource


@dg.op(pool=WRITER_POOL)
def compact(context: dg.OpExecutionContext, store: StoreResource) -> None:
    """Compacts the ledger, and logs what became of each table."""
    done = compact_ledger(store.store, datetime.now(UTC))
    store.commit()
    for table, (before, after) in done.joined.items():
        context.log.info(f"{table}: joined {before} data files to {after}")
    for table, found in done.vacuumed.items():
        context.log.info(
            f"{table}: removed {found.files} superseded files, {found.freed:,} bytes; {found.waiting:,} bytes wait for "
            f"readers, {found.pinned:,} bytes are of kept snapshots"
        )
    context.log.info(f"the ledger folds to the same state as before: {dict(done.states)}")
