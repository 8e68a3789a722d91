"""Asset checks: the correctness conditions, which stop a run before it publishes, gates, and warnings.

C1 to C6 are ERROR and blocking: if one finds violations, the served snapshot stays. Gates have the severity of their
setting (`memstate_pipeline.gates`). Everything else is WARN. A check that raises an unforeseen error is contained like
a step: evidence with which it raises it is set aside.
"""

from collections.abc import Iterable, Iterator

import dagster as dg
import polars as pl

from memstate_core.forget.bound import over_bound_warnings, scopes_over_bound
from memstate_core.ingest.inbox import failed_files
from memstate_core.ingest.quarantine import open_count
from memstate_core.model.text import iso
from memstate_core.night.checks.check import Check
from memstate_core.night.checks.suite import CONDITIONS, conditions
from memstate_core.night.set_aside import contained
from memstate_core.run.run import Run
from memstate_core.run.store import Store
from memstate_core.state.current import served_where_sound
from memstate_core.state.interrupts import delayed_interrupts
from memstate_pipeline.gates import gate_checks
from memstate_pipeline.markdown import as_markdown
from memstate_pipeline.nights import last_night
from memstate_pipeline.partitions import shard_of_check
from memstate_pipeline.resources import StoreResource

DUMPS_READABLE = "dumps_readable"
_UNPUBLISHED = (dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED)


def asset_checks() -> list[dg.AssetChecksDefinition]:
    """The checks of the nightly run."""
    specs = [
        dg.AssetCheckSpec(name, asset="forgetting", blocking=True, description=text)
        for name, text in CONDITIONS.items()
    ]

    @dg.multi_asset_check(specs=specs, name="correctness_conditions")
    def correctness_conditions(
        context: dg.AssetCheckExecutionContext, store: StoreResource
    ) -> Iterable[dg.AssetCheckResult]:
        run = store.run(shard_of_check(context))
        with delayed_interrupts(), contained(store.store, run, "correctness_conditions"):
            found = conditions(store.store, run)
        yield from _results(found, run)

    @dg.asset_check(asset="evidence", name=DUMPS_READABLE, blocking=True)
    def dumps_readable(context: dg.AssetCheckExecutionContext, store: StoreResource) -> dg.AssetCheckResult:
        """Every dump was read to its end; it warns as long as others wait in inbox/failed.

        As a warning it never stops a run; it blocks so that the run's scratch folder exists while it runs.
        """
        errors, failed = store.run(shard_of_check(context)).imported().get("errors", []), failed_files(store.store.home)
        return dg.AssetCheckResult(
            passed=not errors and not failed,
            severity=dg.AssetCheckSeverity.WARN,
            metadata={
                "errors": dg.MetadataValue.json(errors),
                "failed_files": dg.MetadataValue.json(failed[:20]),
                "quarantined_open": open_count(store.store.ledger),
            },
        )

    @dg.asset_check(asset="forgetting", name="pins_within_bound", blocking=True)
    def pins_within_bound(context: dg.AssetCheckExecutionContext, store: StoreResource) -> dg.AssetCheckResult:
        """Every scope is within max_active_topics; pinned topics, which are never archived, may exceed it.

        As a warning it never stops a run; it blocks so that the run's scratch folder exists while it runs.
        """
        run = store.run(shard_of_check(context))
        with delayed_interrupts(), contained(store.store, run, "pins_within_bound"):
            over = scopes_over_bound(run)
        warnings = over_bound_warnings(over.head(20), run.policy)
        return dg.AssetCheckResult(
            passed=over.is_empty(),
            severity=dg.AssetCheckSeverity.WARN,
            metadata={"scopes": over.height, "warnings": dg.MetadataValue.json(warnings)},
        )

    @dg.asset_check(asset="maintenance_report", name="other_shards_published")
    def other_shards_published(context: dg.AssetCheckExecutionContext, store: StoreResource) -> dg.AssetCheckResult:
        """The last night of every other shard published; without this, the failure of one hides behind the next."""
        shards = _shards(context, store.store)
        return dg.AssetCheckResult(
            passed=all(shard["failed run"] is None for shard in shards),
            severity=dg.AssetCheckSeverity.WARN,
            metadata={"shards": dg.MetadataValue.md(as_markdown(pl.DataFrame(shards, infer_schema_length=None)))},
        )

    return [correctness_conditions, gate_checks(), dumps_readable, pins_within_bound, other_shards_published]


def _shards(context: dg.AssetCheckExecutionContext, store: Store) -> list[dict[str, str | None]]:
    """What each shard serves, of what logical time, and its last night, if that failed and is not the run itself."""
    served = {snapshot.manifest.shard: snapshot for snapshot in served_where_sound(store.home, store.shards)[0]}
    last = {shard: last_night(context.instance, shard) for shard in store.shards}
    return [
        {
            "shard": shard,
            "snapshot": served[shard].name if shard in served else None,
            "now": iso(served[shard].manifest.now) if shard in served else None,
            "failed run": run.run_id if run is not None and run.status in _UNPUBLISHED else None,
        }
        for shard, run in last.items()
    ]


def _results(found: dict[str, Check], run: Run) -> Iterator[dg.AssetCheckResult]:
    verdicts = []
    for name, check in found.items():
        verdicts.append({"name": name, "passed": check.passed, "severity": "ERROR"})
        yield dg.AssetCheckResult(
            check_name=name,
            asset_key="forgetting",
            passed=check.passed,
            severity=dg.AssetCheckSeverity.ERROR,
            metadata={
                "violations": check.violations.height,
                "rows": dg.MetadataValue.md(as_markdown(check.violations.head(20))),
            },
        )
    run.keep_checks(verdicts)
