"""Judges a night by the gates: pure functions from measurements and limits to verdicts."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

import polars as pl

from memstate_core.model.quantity import quantity
from memstate_core.night.gates.measure import Night
from memstate_core.night.gates.verdict import Verdict
from memstate_core.policy.sections.gates import GateSettings, Severity

Finding = tuple[bool, str, str]
"""Whether a gate passes, what was found, and what was expected."""

_FIRST = "nothing was served before"
_OF_LOSS = ("shrinkage", "scope_vanished", "recall")
_SHOWN = 5


def judge(night: Night, limits: GateSettings) -> list[Verdict]:
    """The verdicts on a night, by the gates that are on."""
    severities: dict[str, Severity] = {name: getattr(limits, name) for name in _JUDGES}
    if night.sets_aside:
        severities |= {name: "warn" for name in _OF_LOSS if severities[name] == "error"}
    if night.recall.problem is not None and severities["recall"] == "error":
        severities["recall"] = "warn"
    judged = [name for name, severity in severities.items() if severity != "off"]
    found = {name: _JUDGES[name][0](night, limits) for name in judged}
    return [Verdict(name, severities[name], *found[name], look_at=_JUDGES[name][1]) for name in judged]


def not_measured(problem: str) -> list[Verdict]:
    """The verdicts on a night that could not be measured: each gate fails, and warns only."""
    expected = "a night that can be measured"
    return [Verdict(name, "warn", False, problem, expected, look_at=look_at) for name, (_, look_at) in _JUDGES.items()]


def _false_merges(night: Night, limits: GateSettings) -> Finding:
    merges, wrong = night.merge_probabilities.len(), float((1 - night.merge_probabilities).sum())
    share = _percent(wrong, merges)
    within = share <= limits.expected_false_merges_percent or wrong <= limits.expected_false_merges_min
    found = f"{wrong:.2f} of {merges:,} merges expected to be false ({share:.1f} %)"
    expected = f"at most {limits.expected_false_merges_percent:g} % (gates.expected_false_merges_percent)"
    return within, found, f"{expected} or {limits.expected_false_merges_min:g} (gates.expected_false_merges_min)"


def _shrinkage(night: Night, limits: GateSettings) -> Finding:
    topics, evidence = limits.shrinkage_topics_percent, limits.shrinkage_evidence_percent
    expected = f"at most {topics:g} % fewer topics (gates.shrinkage_topics_percent)"
    expected += f" and {evidence:g} % less evidence (gates.shrinkage_evidence_percent)"
    before, kept = night.active_before, night.active + night.gone_by_policy.height
    fallen = _fall(before, kept), _fall(night.evidence_before, night.evidence)
    judged = [(before, fallen[0], topics), (night.evidence_before, fallen[1], evidence)]
    within = not any(size >= limits.compared_from and fall > limit for size, fall, limit in judged)
    found = f"{fallen[0]:.1f} % fewer topics ({night.losses()}), {fallen[1]:.1f} % less evidence; {_change(night)}"
    return within, found if night.has_base else _FIRST, expected


def _growth(night: Night, limits: GateSettings) -> Finding:
    factor, least = limits.growth_factor, limits.compared_from
    pairs = [(night.active_before, night.active), (night.evidence_before, night.evidence)]
    within = not any(before >= least and now > factor * before for before, now in pairs)
    return within, _change(night) if night.has_base else _FIRST, f"at most {factor:g} times (gates.growth_factor)"


def _quarantine(night: Night, limits: GateSettings) -> Finding:
    share = _percent(night.refused, night.read)
    within = share <= limits.quarantine_share_percent or night.refused <= limits.quarantine_share_min
    expected = f"at most {limits.quarantine_share_percent:g} % (gates.quarantine_share_percent)"
    found = f"{night.refused:,} of {night.read:,} rows refused since the last report ({share:.1f} %)"
    return within, found, f"{expected} or {limits.quarantine_share_min:,} (gates.quarantine_share_min)"


def _scopes(night: Night, limits: GateSettings) -> Finding:
    del limits  # one vanished scope is enough
    before = night.topics.filter(pl.col("was").is_not_null()).group_by(scope="was").agg(topics=pl.len())
    served = night.topics.filter(pl.col("state") == "active")
    left = before.join(served, on="scope", how="anti")
    unexplained = night.topics.join(night.gone_by_policy, on="id", how="anti").select(scope="was").unique()
    vanished = left.join(unexplained, on="scope", how="semi").sort("scope")
    named = ", ".join(f"{scope} had {topics:,}" for scope, topics in vanished.head(_SHOWN).iter_rows())
    more = f" and {vanished.height - _SHOWN:,} more" * (vanished.height > _SHOWN)
    counted = f"{vanished.height:,} of {before.height:,} scopes without active topics"
    by_policy = left.height - vanished.height
    explained = f"; {by_policy:,} more by an unchanged policy" * bool(by_policy)
    found = counted + (f" ({named}{more})" if named else "") + explained
    return vanished.is_empty(), found, "none, or archived or merged by an unchanged policy"


def _duration(night: Night, limits: GateSettings) -> Finding:
    seconds, past = sum(night.seconds.values()), _comparable(night)
    expected = f"at most {limits.duration_factor:g} times (gates.duration_factor) the median of"
    if len(past) < limits.duration_min_nights:
        few = f"{limits.duration_min_nights} past nights (gates.duration_min_nights)"
        return True, f"{seconds:.1f} s, {quantity(len(past), 'past nights')} on record", f"{expected} {few}"
    usual = median(past)
    within = seconds <= max(limits.duration_factor * usual, limits.duration_min_seconds)
    return within, f"{seconds:.1f} s, median {usual:.1f} s", f"{expected} {len(past)} past nights"


def _recall(night: Night, limits: GateSettings) -> Finding:
    loss, expected = night.recall, f"at most {limits.max_recall_loss:g} points lost (gates.max_recall_loss)"
    if loss.problem is not None:
        return False, f"not measured: {loss.problem}", expected
    if not loss.questions:
        return True, "no questions", expected
    asked = f"recall of {quantity(loss.questions, 'questions')}"
    found = f"{asked} {loss.before:.1f} % in what is served, {loss.after:.1f} % now{loss.examples()}"
    return loss.points <= limits.max_recall_loss, found, expected


def _comparable(night: Night) -> list[float]:
    """The seconds that past nights took for the steps of this one."""
    return [sum(past[step] for step in night.seconds) for past in night.past if night.seconds.keys() <= past.keys()]


def _change(night: Night) -> str:
    topics = f"active topics {night.active_before:,} before, {night.active:,} now"
    return f"{topics}; evidence {night.evidence_before:,} before, {night.evidence:,} now"


def _fall(before: int, now: int) -> float:
    return max(0.0, _percent(before - now, before))


def _percent(part: float, whole: float) -> float:
    return 100.0 * part / whole if whole else 0.0


_JUDGES: dict[str, tuple[Callable[[Night, GateSettings], Finding], str]] = {
    "expected_false_merges": (_false_merges, "`memstate plan` lists the merges with their probabilities"),
    "shrinkage": (
        _shrinkage,
        "`memstate plan` lists every action of the night, `memstate quarantine list` the rows set aside",
    ),
    "growth": (_growth, "`memstate plan` counts what is created, inbox/processed holds what was imported"),
    "quarantine_share": (_quarantine, "`memstate quarantine list` shows the refused rows with their reasons"),
    "scope_vanished": (
        _scopes,
        "`memstate plan` lists what is archived or set aside, `memstate quarantine list` the rows set aside",
    ),
    "recall": (_recall, "`memstate plan` lists every action of the night, `memstate topic ID` shows a topic as served"),
    "duration": (_duration, "`memstate ui` and the reports have the seconds of each step"),
}
