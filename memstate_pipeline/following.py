"""The home of a daemon whose runs are executed by workers: it follows the store at the URL.

A run that this machine executes begins with the state at the URL anyway. Where workers execute them, sensors, pages and
notifications here would know old nights alone, and a dump in this inbox would wait for ever.
"""

from __future__ import annotations

import dagster as dg

from memstate_core.model.errors import MemstateError
from memstate_core.night.checkout.note import new_note, read_checkout, store_url
from memstate_core.night.checkout.pull import pull
from memstate_core.night.checkout.send import has_input
from memstate_core.run.store import Store
from memstate_pipeline.writers import refresh

_UNFINISHED = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


def follow(store: Store, instance: dg.DagsterInstance) -> str:
    """Brings the home to the state at the URL if workers execute the runs of an instance; says what was done.

    Input that waits here alone is sent, unless a run is queued or in progress, which would find the lease taken.
    """
    url = store_url(store)
    if not url or isinstance(instance.run_launcher, dg.DefaultRunLauncher):
        return "runs are executed here, from the state at the URL"
    try:
        note = read_checkout(store.home) or new_note(url)
        is_idle = not instance.get_runs(dg.RunsFilter(statuses=_UNFINISHED), limit=1)
        if is_idle and has_input(store.home, note):
            refresh(store, "daemon")
        else:
            pull(store)
    except MemstateError as error:
        return error.message
    done = read_checkout(store.home)
    return f"this home has state {0 if done is None or done.state is None else done.state.number:,} of {url}"


def checkout_sensor(store: Store) -> list[dg.SensorDefinition]:
    """Follows the store at the URL, if there is one."""
    if not store_url(store):
        return []

    @dg.sensor(name="checkout", minimum_interval_seconds=60, default_status=dg.DefaultSensorStatus.RUNNING)
    def checkout(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        return dg.SkipReason(follow(store, context.instance))

    return [checkout]
