"""The code location that Dagster loads, for the home in $MEMSTATE_HOME."""

from datetime import timedelta
from pathlib import Path

import dagster as dg

from memstate_core.run.home_path import home_path
from memstate_core.run.store import Store, open_store
from memstate_pipeline.assets.forget import forget_assets
from memstate_pipeline.assets.ingest import ingest_assets
from memstate_pipeline.assets.publish import publish_assets
from memstate_pipeline.assets.revise import revise_assets
from memstate_pipeline.assets.topics import topic_assets
from memstate_pipeline.checks import asset_checks
from memstate_pipeline.choose_shards import choice_sensors, choose_job
from memstate_pipeline.following import checkout_sensor
from memstate_pipeline.jobs import compaction_job, import_job, nightly_job, retention_job, verify_job
from memstate_pipeline.partitions import shard_partitions
from memstate_pipeline.resources import FrameIOManager, StoreResource
from memstate_pipeline.schedules import further_schedules, nightly_schedule
from memstate_pipeline.sensors import (
    dead_runs_sensor,
    failures_sensor,
    inbox_sensor,
    published_sensor,
    set_aside_sensor,
)
from memstate_pipeline.shards import shard_checks, shard_specs, shards_sensor
from memstate_pipeline.store_sensors import corrections_sensor, pressure_sensor, stale_sensor

GROUPS = (ingest_assets, topic_assets, revise_assets, forget_assets, publish_assets)
_WARNS_AT = 0.7
"""The share of `schedule.stale_hours` after which the asset is late; `schedule.skip_unchanged_days` is added to it."""


def build_defs(home: Path) -> dg.Definitions:
    """The definitions for one home.

    Raises:
        SettingsError: a setting of the home is not allowed.
    """
    store = open_store(home)
    partitions, hours = shard_partitions(store), store.settings.schedule.stale_hours
    skipped = timedelta(days=store.settings.schedule.skip_unchanged_days)
    fresh = dg.FreshnessPolicy.time_window(
        fail_window=skipped + timedelta(hours=hours), warn_window=skipped + timedelta(hours=_WARNS_AT * hours)
    )
    assets, nightly = [asset for group in GROUPS for asset in group(partitions)], nightly_job(store)
    jobs = (import_job, verify_job, retention_job, compaction_job)
    choosing = [choose_job(store)] if skipped else []
    return dg.Definitions(
        assets=[*dg.map_asset_specs(lambda spec: _described(spec, store, fresh), assets), *shard_specs(store, fresh)],
        asset_checks=[*asset_checks(), *shard_checks(store)],
        jobs=[nightly, *(job(store) for job in jobs), *choosing],
        schedules=[nightly_schedule(store), *further_schedules(store)],
        sensors=[
            inbox_sensor(store),
            set_aside_sensor(nightly),
            dead_runs_sensor(store),
            failures_sensor(store),
            published_sensor(store),
            pressure_sensor(store),
            stale_sensor(store),
            corrections_sensor(store),
            *shards_sensor(store),
            *checkout_sensor(store),
            *(sensor for job in choosing for sensor in choice_sensors(store, nightly, job)),
        ],
        executor=dg.in_process_executor,
        resources={"store": StoreResource(home=str(home)), "frames": FrameIOManager(home=str(home))},
    )


def _described(spec: dg.AssetSpec, store: Store, policy: dg.FreshnessPolicy) -> dg.AssetSpec:
    """An asset with its owners; `snapshot` with a freshness policy, unless each shard has its own."""
    owned = spec.replace_attributes(owners=store.settings.ui.owners)
    is_fresh = spec.key.path[-1] == "snapshot" and len(store.shards) == 1
    return owned.replace_attributes(freshness_policy=policy) if is_fresh else owned


@dg.definitions
def defs() -> dg.Definitions:
    """The definitions for the home in the environment."""
    return build_defs(home_path())
