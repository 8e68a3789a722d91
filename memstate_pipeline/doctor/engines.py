"""Examinations of what machines share to run nights: the database of Dagster's history, and a broker or a cluster.

They look where the environment of this machine, or its `dagster.yaml`, names one. No password is shown.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from memstate_core.night.checkout.note import store_url
from memstate_core.night.erasure.run_database import POSTGRES_VARIABLE, SETTINGS_NAME
from memstate_core.run.store import Store
from memstate_pipeline.doctor.cluster import cluster
from memstate_pipeline.doctor.finding import Finding
from memstate_pipeline.instance_settings import (
    BROKER_VARIABLE,
    RESULTS_VARIABLE,
    WORKER,
    missing,
    named,
    replaces,
)
from memstate_pipeline.pod_settings import IMAGE_VARIABLE, LAUNCHER

PATIENCE_SECONDS = 5
_ADVICE = "start it, or correct the variable"


def engines(store: Store, environ: Mapping[str, str] = os.environ) -> list[Finding]:
    """The findings on database, broker and cluster; none where none is set."""
    folder = Path(environ.get("DAGSTER_HOME") or store.home.dagster)
    settings = folder / SETTINGS_NAME
    kept = settings.read_text() if settings.is_file() else ""
    given = (POSTGRES_VARIABLE, BROKER_VARIABLE, IMAGE_VARIABLE)
    wanted = {*named(kept), *(name for name in given if environ.get(name))}
    in_pods = LAUNCHER in kept or IMAGE_VARIABLE in wanted
    executed = [_pods(store, settings, kept, environ)] if in_pods else []
    if POSTGRES_VARIABLE not in wanted:
        unused = [] if LAUNCHER in kept else [name for name in given if name in wanted]
        return [_without_database(name) for name in unused] or executed
    if BROKER_VARIABLE in (named(kept) if in_pods else wanted):
        executed.append(_broker(store, settings, kept, environ))
    return [_database(settings, kept, environ), *executed]


def _without_database(variable: str) -> Finding:
    name, who = ("broker", "workers") if variable == BROKER_VARIABLE else ("kubernetes", "pods")
    return Finding(name, True, f"${variable} is not used: {who} need a history that they share, ${POSTGRES_VARIABLE}")


def _pods(store: Store, settings: Path, kept: str, environ: Mapping[str, str]) -> Finding:
    """Whether the cluster lets pods be made, and whether these would have this store."""
    found = cluster(kept, environ)
    if not found.ok:
        return found
    unused = "" if LAUNCHER in kept else _unused(IMAGE_VARIABLE, settings, kept, environ)
    more = unused or _without_url(store, "pod")
    return Finding(found.name, not more, f"{found.detail}{more}")


def _database(settings: Path, kept: str, environ: Mapping[str, str]) -> Finding:
    """Whether the database answers, and whether the settings use it."""
    if lacks := missing([POSTGRES_VARIABLE], environ):
        return Finding("database", False, lacks)
    from sqlalchemy import create_engine
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import SQLAlchemyError

    try:
        url = make_url(environ[POSTGRES_VARIABLE])
        with create_engine(url, connect_args={"connect_timeout": PATIENCE_SECONDS}).connect():
            pass
    except (SQLAlchemyError, ValueError) as error:  # what is no address may hold a password
        problem = next(iter(str(getattr(error, "orig", "")).splitlines()), "it is no address of a database")
        return Finding("database", False, f"${POSTGRES_VARIABLE}: {problem}; {_ADVICE}")
    place = url.render_as_string(hide_password=True)
    is_named = f"{url.host}" in kept and f"{url.database}" in kept  # in the settings that a Helm chart wrote
    unused = "" if is_named else _unused(POSTGRES_VARIABLE, settings, kept, environ)
    return Finding("database", not unused, f"{place} answers{unused}")


def _broker(store: Store, settings: Path, kept: str, environ: Mapping[str, str]) -> Finding:
    """Whether the broker answers, and workers at it."""
    if lacks := missing([BROKER_VARIABLE, RESULTS_VARIABLE], environ):
        return Finding("broker", False, lacks)
    from celery import Celery
    from kombu.exceptions import KombuError

    try:
        with Celery(broker=environ[BROKER_VARIABLE], set_as_current=False) as app:
            with app.connection_for_write(connect_timeout=PATIENCE_SECONDS) as connection:
                place = connection.as_uri()
                connection.ensure_connection(max_retries=1, timeout=PATIENCE_SECONDS)
            workers = len(app.control.ping(timeout=1.0))
    except (KombuError, OSError, ImportError, LookupError, ValueError) as error:  # the last three: no such transport
        return Finding("broker", False, f"${BROKER_VARIABLE}: {next(iter(str(error).splitlines()), '')}; {_ADVICE}")
    unused = _unused(BROKER_VARIABLE, settings, kept, environ) or _unfit(store, workers)
    return Finding("broker", not unused, f"{place} answers; workers: {workers}{unused}")


def _unused(variable: str, settings: Path, kept: str, environ: Mapping[str, str]) -> str:
    """What to do if Dagster does not use what a variable names, and will not by itself."""
    if not kept or variable in named(kept) or replaces(kept, environ):
        return ""
    return f"; Dagster does not use it, since {settings} was edited: name {{env: {variable}}} there, or remove the file"


def _unfit(store: Store, workers: int) -> str:
    """Why no night, or none of this store, would be made by the workers."""
    return _without_url(store, "worker") or ("" if workers else f": start one with `{WORKER}`")


def _without_url(store: Store, who: str) -> str:
    if store_url(store):
        return ""
    return f"; store.url is not set, so each {who} would write a store of its own: set it on all machines"
