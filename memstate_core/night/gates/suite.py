"""The gates on a run before it publishes."""

from __future__ import annotations

from dataclasses import replace

from memstate_core.ingest.unforeseen import described, is_unforeseen
from memstate_core.night.gates.acceptance import Acceptance, acceptance_decisions, accepting
from memstate_core.night.gates.judge import judge, not_measured
from memstate_core.night.gates.measure import measure
from memstate_core.night.gates.verdict import Verdict
from memstate_core.run.run import Run
from memstate_core.run.store import Store
from memstate_core.state.fold.decisions import ACCEPTED


def judge_run(store: Store, run: Run, given: Acceptance | None, *, on_trial: bool = False) -> list[Verdict]:
    """Judges a run and decides what is accepted; its publication records that.

    A measurement that fails on an unforeseen error refuses nothing: all gates warn, with the error.

    Args:
        store: the store.
        run: the run, whose working graph is complete.
        given: what a person accepts in this run.
        on_trial: nothing is served, so failures warn only.
    """
    try:
        verdicts = judge(measure(store, run), store.settings.gates)
    except BaseException as error:
        if not is_unforeseen(error):
            raise
        return not_measured(described(error))
    if on_trial:
        return [replace(verdict, severity="warn") for verdict in verdicts]
    verdicts = accepting(verdicts, given)
    run.decide(ACCEPTED, acceptance_decisions(verdicts, given))
    return verdicts
