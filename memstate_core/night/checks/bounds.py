"""C5: active topics of each scope stay within the policy's bound, and what was archived is all there to come back.

Pins win over the bound: a night leaves no more active topics than the bound, or than are pinned where those are
more. A correction archives nothing, so there pinned topics are not counted, nor those that were ever unpinned.
"""

from __future__ import annotations

import polars as pl

from memstate_core.night.checks.check import Check, check, violating
from memstate_core.night.checks.derived import standing
from memstate_core.night.checks.features import features
from memstate_core.night.checks.query_soundness import outdated
from memstate_core.night.checks.subject import Subject
from memstate_core.state.decisions import PINNED, UNPINNED


def bounded_state(subject: Subject) -> Check:
    """The bound holds in the graph; archived topics keep the newest values that evidence states."""
    topics, most = subject.graph.topics, subject.recorded.policy.max_active_topics
    active = topics.filter(pl.col("state") == "active")
    crowded = active.filter(pl.len().over("scope") > most)
    archived = topics.filter(pl.col("state") == "archived")["id"]
    lost = pl.concat(outdated(subject, archived))
    return check("C5", [
        violating(_over(subject, crowded), "scope", f"over the bound of {most} active topics"),
        violating(lost, "subject", "an archived topic cannot come back as it was"),
    ])  # fmt: skip


def _over(subject: Subject, crowded: pl.DataFrame) -> pl.DataFrame:
    """Scopes with more active topics than the bound and pins allow (column scope)."""
    if crowded.is_empty():
        return crowded.select("scope")
    most, by_hand = pl.lit(subject.recorded.policy.max_active_topics), _is_correction(subject)
    pinned = _pinned_at_any_time(subject) if by_hand else features(subject).filter("pinned")["topic_id"]
    marked = pl.col("id").is_in(pinned.implode())
    counts = crowded.group_by("scope").agg(_active=pl.len().cast(pl.Int64), _pinned=marked.sum().cast(pl.Int64))
    room = most + pl.col("_pinned") if by_hand else pl.max_horizontal(most, "_pinned")
    return counts.filter(pl.col("_active") > room)


def _is_correction(subject: Subject) -> bool:
    """Whether a person decided what the last run records; a night records no such decision."""
    actor = pl.col("payload_json").str.json_path_match("$.actor")
    return not subject.recorded.last.filter(actor == "person").is_empty()


def _pinned_at_any_time(subject: Subject) -> pl.Series:
    """Topics that a decision, their kind or the condition of a rule pins, and those that were ever unpinned."""
    rows, policy = subject.recorded.transitions.sort("seq"), subject.recorded.policy
    pins = standing(rows, ["topic_id"], PINNED, UNPINNED)["topic_id"]
    ever = rows.filter(pl.col("kind") == UNPINNED)["topic_id"].drop_nulls()
    ids = pl.DataFrame({"id": pl.concat([pins, ever])}).select(subject.derived.answering(pl.col("id")))["id"]
    ruled = [rule.holds() for rule in policy.rules if rule.do == "pin"]
    kind = pl.col("topic_kind").is_in(policy.pinned_kinds).fill_null(False)
    found = features(subject).filter(pl.any_horizontal(*ruled, kind))["topic_id"]
    return pl.concat([ids, ever, found])
