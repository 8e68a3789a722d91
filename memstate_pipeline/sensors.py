"""Sensors: dumps in the inbox are imported into the ledger as they arrive, without waiting for the night."""

import dagster as dg

from memstate_core.ingest.dumps import dumps_in
from memstate_core.model.ids import sha256_text
from memstate_core.run.store import Store
from memstate_pipeline.jobs import IMPORT_INBOX


def inbox_sensor(store: Store) -> dg.SensorDefinition:
    """Requests one import for each new set of files, known by name, size and modification time."""

    @dg.sensor(job_name=IMPORT_INBOX, minimum_interval_seconds=30, default_status=dg.DefaultSensorStatus.RUNNING)
    def inbox() -> dg.RunRequest | dg.SkipReason:
        files = dumps_in(store.home.inbox) if store.home.inbox.exists() else []
        if not files:
            return dg.SkipReason(f"{store.home.inbox} holds no dumps")
        facts = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files]
        return dg.RunRequest(run_key=sha256_text(repr(facts)))

    return inbox
