"""Gates as asset checks: they judge the working graph after its last step, and refuse or warn before it is published.

All gates are judged together, so that a refused night names everything that has to be looked at.
"""

from collections.abc import Iterable, Mapping

import dagster as dg

from memstate_core.night.gates.acceptance import Acceptance, acceptance
from memstate_core.night.gates.suite import judge_run
from memstate_core.night.gates.verdict import GATES, Verdict
from memstate_core.state.process.interrupts import delayed_interrupts
from memstate_pipeline.partitions import shard_of_check
from memstate_pipeline.resources import ACCEPT_TAG, BY_TAG, TRIAL_TAG, WHY_TAG, StoreResource

_FROM_TAGS = "the run's tags"


def gate_checks() -> dg.AssetChecksDefinition:
    """The gates of the nightly run."""
    specs = [
        dg.AssetCheckSpec(name, asset="forgetting", blocking=True, description=f"Gate: {text}.")
        for name, text in GATES.items()
    ]

    @dg.multi_asset_check(specs=specs, name="gates")
    def gates(context: dg.AssetCheckExecutionContext, store: StoreResource) -> Iterable[dg.AssetCheckResult]:
        run, tags = store.run(shard_of_check(context)), context.run.tags
        with delayed_interrupts():
            judged = judge_run(store.store, run, accepted_in(tags), on_trial=TRIAL_TAG in tags)
        verdicts = {verdict.gate: verdict for verdict in judged}
        for name in GATES:
            yield _result(name, verdicts.get(name))
        run.keep_checks([verdict.to_json() for verdict in judged])

    return gates


def acceptance_tags(given: Acceptance | None) -> dict[str, str]:
    """The tags of a run in which a person accepts gates."""
    if given is None:
        return {}
    return {ACCEPT_TAG: ",".join(given.gates), WHY_TAG: given.why, BY_TAG: given.by}


def accepted_in(tags: Mapping[str, str]) -> Acceptance | None:
    """What the tags of a run accept.

    Raises:
        AcceptanceInvalid: a name is no gate, or there is no reason.
    """
    names = [name.strip() for name in tags.get(ACCEPT_TAG, "").split(",") if name.strip()]
    return acceptance(names, tags.get(WHY_TAG), tags.get(BY_TAG, _FROM_TAGS))


def _result(name: str, verdict: Verdict | None) -> dg.AssetCheckResult:
    if verdict is None:
        return dg.AssetCheckResult(check_name=name, asset_key="forgetting", passed=True, metadata={"severity": "off"})
    shown = verdict.to_json()
    again = (
        "run `memstate maintain --accept CHECK --why TEXT`, or the job with the tags memstate/accept and memstate/why"
    )
    metadata = {key: shown[key] for key in ("found", "expected", "look_at", "accepted") if shown[key] is not None}
    return dg.AssetCheckResult(
        check_name=name,
        asset_key="forgetting",
        passed=verdict.passed,
        severity=dg.AssetCheckSeverity[verdict.rank],
        metadata=metadata | ({"let_through_once": again} if verdict.is_refusing else {}),
    )
