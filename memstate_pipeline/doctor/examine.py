"""All examinations of an installation and a store."""

from __future__ import annotations

from datetime import datetime

from memstate_core.model.errors import MemstateError
from memstate_core.run.home_path import home_path
from memstate_core.run.store import open_store
from memstate_pipeline.doctor import data, installation
from memstate_pipeline.doctor.checkout import remote_store
from memstate_pipeline.doctor.encoder import model
from memstate_pipeline.doctor.engines import engines
from memstate_pipeline.doctor.finding import Finding
from memstate_pipeline.doctor.notifications import notifications


def examine(given_home: str | None, now: datetime) -> list[Finding]:
    """Examines everything; settings that cannot be loaded are a finding, too.

    Args:
        given_home: the folder of the store, as given; None for the default.
        now: the machine's time.
    """
    root = home_path(given_home)
    findings = [installation.packages(), installation.disk(root)]
    try:
        store = open_store(root)
    except MemstateError as error:
        return [*findings, Finding("settings", False, str(error))]
    findings += [
        installation.settings(store),
        model(store),
        installation.extractor(store),
        installation.writable(store),
        installation.lock(store),
        remote_store(store),
        data.served_snapshots(store, now),
        data.ledger(store),
        data.refused_input(store),
        data.backup(store),
        data.publication(store),
        data.remote_inbox(store, now),
        notifications(store),
        *engines(store),
    ]
    if not root.exists():
        return findings
    from memstate_pipeline.doctor.runs import run_findings  # which imports Dagster

    return [*findings, *run_findings(store, now)]
