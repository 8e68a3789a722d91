"""The shards of a store with several, each as an asset of its own, with freshness and a check of its own.

Dagster keeps freshness and the last verdict of a check by asset, not by partition, so what one shard published would
hide that another did not. These assets are made by no step: the night that publishes a shard records that, and a sensor
records the verdict of each shard's last night. A store with one shard has none of them; there `snapshot` is the shard.
"""

import json
from collections.abc import Mapping

import dagster as dg
from dagster import MetadataValue

from memstate_core.model.errors import MemstateError
from memstate_core.run.store import Store
from memstate_core.state.current import current_snapshot
from memstate_pipeline.nights import last_night
from memstate_pipeline.report.page import report_paths
from memstate_pipeline.steps import pages_of

CHECK = "last_night_published"
_FOLDER = "served"
_ABOUT = "The last night of this shard published, and what the shard serves can be read."
_ENDED = (dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED)


def shard_asset(shard: str) -> dg.AssetKey:
    """The asset of a shard."""
    return dg.AssetKey([_FOLDER, shard])


def shard_specs(store: Store, fresh: dg.FreshnessPolicy) -> list[dg.AssetSpec]:
    """The assets of the shards, if there are several."""
    return [
        dg.AssetSpec(
            shard_asset(shard),
            deps=["snapshot"],
            description=f"What shard {shard} serves, recorded by each of its nights that publishes.",
            group_name="publish",
            kinds={"kuzu"},
            owners=store.settings.ui.owners,
            freshness_policy=fresh,
        )
        for shard in _several(store)
    ]


def shard_checks(store: Store) -> list[dg.AssetChecksDefinition]:
    """The check of each of these assets; it can be run from its page, beside what the sensor records."""
    return [_check(store, shard) for shard in _several(store)]


def shards_sensor(store: Store) -> list[dg.SensorDefinition]:
    """Records the verdict of a shard when it changes; the cursor is what was recorded last."""

    @dg.sensor(name="shards", minimum_interval_seconds=30, default_status=dg.DefaultSensorStatus.RUNNING)
    def shards(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        before: dict[str, str] = json.loads(context.cursor or "{}")
        found = {shard: _verdict(store, context.instance, shard) for shard in store.shards}
        now = {shard: _recorded(verdict) for shard, verdict in found.items() if verdict}
        events = [verdict for shard, verdict in found.items() if verdict and now[shard] != before.get(shard)]
        skipped = None if events else "no shard has another verdict than before"
        return dg.SensorResult(asset_events=events, cursor=json.dumps(now), skip_reason=skipped)

    return [shards] if _several(store) else []


def record_published(
    context: dg.AssetExecutionContext, store: Store, shard: str, metadata: "Mapping[str, dg.RawMetadataValue]"
) -> None:
    """Records in the run that publishes a shard that it did."""
    if shard in _several(store):
        context.log_event(dg.AssetMaterialization(shard_asset(shard), metadata=metadata))


def _several(store: Store) -> list[str]:
    return list(store.shards) if len(store.shards) > 1 else []


def _check(store: Store, shard: str) -> dg.AssetChecksDefinition:
    @dg.asset_check(asset=shard_asset(shard), name=CHECK, description=_ABOUT)
    def published(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        verdict = _verdict(store, context.instance, shard)
        if verdict is None:
            return dg.AssetCheckResult(passed=True, description="no night of this shard has ended yet")
        return dg.AssetCheckResult(passed=verdict.passed, severity=verdict.severity, metadata=verdict.metadata)

    return published


def _verdict(store: Store, instance: dg.DagsterInstance, shard: str) -> dg.AssetCheckEvaluation | None:
    """The verdict of a shard; None before its first night ended."""
    run, served = last_night(instance, shard, _ENDED), _served(store, shard)
    if run is None:
        return None
    passed = run.status is dg.DagsterRunStatus.SUCCESS and "unreadable" not in served
    page, data = report_paths(store.home.reports, run.run_id, shard)
    shown = {**pages_of(page, store.settings.ui.api_url), **_reason(data.read_bytes())} if data.exists() else {}
    metadata = {"last night": MetadataValue.dagster_run(run.run_id), "status": run.status.value, **shown, **served}
    return dg.AssetCheckEvaluation(
        asset_key=shard_asset(shard),
        check_name=CHECK,
        passed=passed,
        metadata={name: _shown(value) for name, value in metadata.items()},
        severity=dg.AssetCheckSeverity.ERROR,
    )


def _recorded(verdict: dg.AssetCheckEvaluation) -> str:
    """What is compared to see whether a verdict has changed."""
    return "; ".join(f"{name}: {value.value}" for name, value in sorted(verdict.metadata.items()))


def _shown(value: object) -> MetadataValue:
    return value if isinstance(value, MetadataValue) else MetadataValue.text(str(value))


def _served(store: Store, shard: str) -> Mapping[str, str]:
    try:
        snapshot = current_snapshot(store.home, shard)
    except MemstateError as error:
        return {"unreadable": error.message}
    return {} if snapshot is None else {"serves": snapshot.name}


def _reason(report: bytes) -> Mapping[str, str]:
    """Why a night failed, as its page says: the class of the error, and the checks."""
    try:
        document = json.loads(report)
    except ValueError:
        return {}
    failed = ", ".join(check["name"] for check in document.get("checks") or [] if not check["passed"])
    error = (document.get("error") or {}).get("type")
    return ({"error": error} if error else {}) | ({"failed checks": failed} if failed else {})
