"""C5: active topics of each scope stay within the policy's bound, and archived topics can be restored completely.

Pins win over the bound: a night leaves no more active topics than the bound, or than are pinned where those are
more. A correction archives nothing, so until the next night each topic may exceed that which was pinned, unpinned,
restored or unmerged by hand since the last one: no bound stands in the way of undoing a decision (law L4).
"""

from __future__ import annotations

import polars as pl

from memstate_core.night.checks.check import Check, check, violating
from memstate_core.night.checks.checked_state import CheckedState
from memstate_core.night.checks.features import features
from memstate_core.night.checks.query_soundness import outdated
from memstate_core.night.checks.recorded import manual
from memstate_core.state.fold.decisions import PINNED, RESTORED, UNMERGED, UNPINNED


def bounded_state(checked: CheckedState) -> Check:
    """The bound holds in the graph; archived topics keep the newest values that evidence states."""
    topics, most = checked.graph.topics, checked.recorded.policy.max_active_topics
    active = topics.filter(pl.col("state") == "active")
    crowded = active.filter(pl.len().over("scope") > most)
    archived = topics.filter(pl.col("state") == "archived")["id"]
    lost = pl.concat(outdated(checked, archived))
    return check("C5", [
        violating(_over(checked, crowded), "scope", f"over the bound of {most} active topics"),
        violating(lost, "subject", "an archived topic cannot come back as it was"),
    ])  # fmt: skip


def _over(checked: CheckedState, crowded: pl.DataFrame) -> pl.DataFrame:
    """Scopes with more active topics than the bound, or the last night's pins, and what moved since (column scope).

    A topic that was pinned then, and moved since, counts as moved; as both if it was unpinned.
    """
    if crowded.is_empty():
        return crowded.select("scope")
    moved, pinned = _moved_by_hand(checked), features(checked).filter("pinned")["topic_id"]
    by_night = pl.concat([pinned.filter(~pinned.is_in(moved["topic_id"].implode())), _of(moved, UNPINNED)])
    counts = crowded.group_by("scope").agg(
        _active=pl.len().cast(pl.Int64), _pinned=_among(by_night), _moved=_among(moved["topic_id"])
    )
    room = pl.max_horizontal(pl.lit(checked.recorded.policy.max_active_topics), "_pinned") + pl.col("_moved")
    return counts.filter(pl.col("_active") > room)


def _among(ids: pl.Series) -> pl.Expr:
    return pl.col("id").is_in(ids.implode()).sum().cast(pl.Int64)


def _moved_by_hand(checked: CheckedState) -> pl.DataFrame:
    """Topics that a person moved since the last night, and how (columns topic_id, kind)."""
    moved = manual(checked.recorded.since_night).filter(pl.col("kind").is_in([PINNED, UNPINNED, RESTORED, UNMERGED]))
    return moved.select("kind", topic_id=checked.derived.answering(pl.col("topic_id"))).unique()


def _of(moved: pl.DataFrame, kind: str) -> pl.Series:
    return moved.filter(pl.col("kind") == kind)["topic_id"]
