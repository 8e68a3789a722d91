"""Verification between nights, as its schedule asks for it: the same as `memstate verify`.

It holds the lock of the store, so that no night publishes between the reading of a snapshot and of the ledger.
"""

import dagster as dg

from memstate_core.model.errors import StoreNotFound
from memstate_core.night.verify import Verdict, verify_store
from memstate_pipeline.assets.common import WRITER_POOL
from memstate_pipeline.resources import StoreResource


@dg.op(pool=WRITER_POOL)
def verify_served(context: dg.OpExecutionContext, store: StoreResource) -> None:
    """Verifies every shard's served snapshot against its files and the ledger.

    Raises:
        Failure: something does not hold; it names what.
    """
    try:
        found = verify_store(store.store)
    except StoreNotFound:
        context.log.info("nothing is published yet")
        return
    failed = [_named(name, verdict) for name, verdicts in found.items() for verdict in verdicts if not verdict.passed]
    if failed:
        description = f"{len(failed)} of the verdicts failed; run `memstate verify` for all of them"
        raise dg.Failure(description, metadata={"failed": dg.MetadataValue.json(failed)}, allow_retries=False)
    context.log.info(f"verified: {', '.join(found)}")


def _named(name: str, verdict: Verdict) -> str:
    return f"{name}: {verdict.name}: {verdict.detail}"
