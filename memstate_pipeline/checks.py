"""Asset checks: the correctness conditions, which stop a run before it publishes, gates, and warnings.

C1 to C6 are ERROR and blocking: if one finds violations, the served snapshot stays. Gates have the severity of their
setting (`memstate_pipeline.gates`). Everything else is WARN. A check that raises an unforeseen error is contained like
a step: evidence with which it raises it is set aside.
"""

from collections.abc import Iterable, Iterator

import dagster as dg

from memstate_core.forget.bound import over_bound_warnings, scopes_over_bound
from memstate_core.ingest.inbox import failed_files
from memstate_core.ingest.quarantine import open_count
from memstate_core.night.checks.check import Check
from memstate_core.night.checks.suite import CONDITIONS, conditions
from memstate_core.night.set_aside import contained
from memstate_core.run.run import Run
from memstate_core.state.process.interrupts import delayed_interrupts
from memstate_pipeline.gates import gate_checks
from memstate_pipeline.markdown import as_markdown
from memstate_pipeline.partitions import shard_of_check
from memstate_pipeline.resources import StoreResource

DUMPS_READABLE = "dumps_readable"


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
        with delayed_interrupts(), contained(store.store, run, "correctness_conditions", store.held):
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
        with delayed_interrupts(), contained(store.store, run, "pins_within_bound", store.held):
            over = scopes_over_bound(run)
        warnings = over_bound_warnings(over.head(20), run.policy)
        return dg.AssetCheckResult(
            passed=over.is_empty(),
            severity=dg.AssetCheckSeverity.WARN,
            metadata={"scopes": over.height, "warnings": dg.MetadataValue.json(warnings)},
        )

    return [correctness_conditions, gate_checks(), dumps_readable, pins_within_bound]


def _results(found: dict[str, Check], run: Run) -> Iterator[dg.AssetCheckResult]:
    verdicts = []
    for name, check in found.items():
        verdicts.append({"name": name, "passed": check.passed, "severity": "ERROR"})
        yield dg.AssetCheckResult(
            check_name=name,
            asset_key="forgetting",
            passed=check.passed,
            severity=dg.AssetCheckSeverity.ERROR,
            metadata={"violations": check.violations.height, **_rows(check)},
        )
    run.keep_checks(verdicts)


def _rows(check: Check) -> dict[str, dg.MetadataValue]:
    """The first violations; nothing without one, since Dagster would hide that behind a button."""
    found = check.violations.head(20)
    return {} if found.is_empty() else {"rows": dg.MetadataValue.md(as_markdown(found))}
