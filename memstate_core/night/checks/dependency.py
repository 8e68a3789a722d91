"""C3: all topics that depend on a change over extension edges in force wait for review, by the ledger's decisions.

The search is breadth first over numbered topics (scipy), from what the last run changed (`changes`), whether it
recorded that or not. Reviews that it ended are looked at by `review_ends`.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from scipy.sparse import csr_array

from memstate_core.night.checks.changes import changes_of_references, changes_since, recorded_changes
from memstate_core.night.checks.check import Check, check, violating
from memstate_core.night.checks.checked_state import CheckedState, Published
from memstate_core.night.checks.recorded import Recorded
from memstate_core.night.checks.review_ends import groundless_ends, unsure
from memstate_core.state.fold import decisions as kinds

_DOWN = ("has_detail", "has_subtopic")
_UP = ("part_of", "extends", "derives")
_PAYLOAD = pl.Struct({"cause_topic_id": pl.String, "hops": pl.Int64})


def dependency_consistency(checked: CheckedState, base: Published | None = None, missing: str | None = None) -> Check:
    """The queue matches the recorded decisions, and contains every dependent of the last run's changes.

    Args:
        checked: the state.
        base: the snapshot that the run started from.
        missing: why there is none to compare with, if the ledger records one.
    """
    queue, changed, referring = _queue(checked.recorded), recorded_changes(checked), changes_of_references(checked)
    if base is not None:
        changed = pl.concat([changed, changes_since(checked, base)]).unique()
    found = [*_against_record(checked, queue), *_unqueued(checked, queue, changed, referring)]
    notes = [f"changes that no decision names not checked against the base: {missing}"] if missing else []
    ended = groundless_ends(checked, None if base is None else base.tables, pl.concat([changed, referring]))
    why = unsure(checked.recorded, missing)
    if ended.height and why:
        return check("C3", found, [*notes, f"ends of reviews not checked against the base: {why}"])
    return check("C3", [*found, violating(ended, "topic_id", "its review ended, though it did not change")], notes)


def _queue(recorded: Recorded) -> pl.DataFrame:
    """The queue as recorded (columns topic_id, cause_topic_id, hops, at)."""
    rows = recorded.transitions.filter(pl.col("kind").is_in([kinds.REVIEW_QUEUED, kinds.REVIEW_ENDED])).sort("seq")
    last = rows.unique("topic_id", keep="last", maintain_order=True).filter(pl.col("kind") == kinds.REVIEW_QUEUED)
    payload = pl.col("payload_json").str.json_decode(_PAYLOAD).struct
    cause, hops = payload.field("cause_topic_id"), payload.field("hops")
    return last.select("topic_id", "at", "seq", cause_topic_id=cause, hops=hops)


def _against_record(checked: CheckedState, queue: pl.DataFrame) -> list[pl.DataFrame]:
    waiting = checked.graph.reviews
    living = checked.graph.living.select("id")
    due = queue.join(living, left_on="topic_id", right_on="id", how="semi")
    both = waiting.join(due, on="topic_id", suffix="_as_recorded")
    pairs = (("cause_topic_id", "cause_topic_id_as_recorded"), ("hops", "hops_as_recorded"), ("queued_at", "at"))
    other = pl.any_horizontal(pl.col(here).ne_missing(pl.col(there)) for here, there in pairs)
    return [
        violating(waiting.join(due, on="topic_id", how="anti"), "topic_id", "it waits for review without a decision"),
        violating(
            due.join(waiting, on="topic_id", how="anti"), "topic_id", "it was queued for review and does not wait"
        ),
        violating(both.filter(other), "topic_id", "it waits for another reason than was recorded"),
    ]


def _unqueued(
    checked: CheckedState, queue: pl.DataFrame, changed: pl.Series, referring: pl.Series
) -> list[pl.DataFrame]:
    policy = checked.recorded.policy
    reached = pl.DataFrame(schema={"topic_id": pl.String, "hops": pl.Int64})
    if len(changed):
        reached = _reached(checked.edges_in_force, changed, policy.dependency_max_hops)
    scopes = checked.graph.living.select("scope", topic_id="id")
    due = reached.join(scopes, on="topic_id")
    moved = due.filter(pl.col("topic_id").is_in(referring.implode()))
    missed = due.join(queue, on="topic_id", how="anti").join(moved, on="topic_id", how="anti")
    fresh = queue.join(checked.recorded.last, on="seq", how="semi").join(scopes, on="topic_id")
    full = fresh.group_by("scope").agg(pl.len(), farthest=pl.col("hops").max())
    missed = missed.join(full.filter(pl.col("len") >= policy.dependency_max_topics), on="scope", how="left")
    missed = missed.filter((pl.col("hops") < pl.col("farthest")).fill_null(True))
    return [violating(missed, "topic_id", "depends on a change and is not queued for review")]


def _reached(edges: pl.DataFrame, changed: pl.Series, most_hops: int) -> pl.DataFrame:
    """Topics that depend on changed ones and are not among them, with their distance (columns topic_id, hops)."""
    down = edges.filter(pl.col("kind").is_in(_DOWN)).select(base="from_id", dependent="to_id")
    up = edges.filter(pl.col("kind").is_in(_UP)).select(base="to_id", dependent="from_id")
    pairs = pl.concat([down, up]).unique()
    ids = pl.concat([pairs["base"], pairs["dependent"], changed]).unique().sort()
    one, other = ids.search_sorted(pairs["base"]), ids.search_sorted(pairs["dependent"])
    towards = csr_array((np.ones(pairs.height, np.int64), (other, one)), shape=(len(ids), len(ids)))
    hops = np.full(len(ids), -1, np.int64)
    hops[ids.search_sorted(changed).to_numpy()] = 0
    for hop in range(1, most_hops + 1):
        fresh = (towards @ (hops == hop - 1).astype(np.int64) > 0) & (hops < 0)
        if not fresh.any():
            break
        hops[fresh] = hop
    found = pl.DataFrame({"topic_id": ids, "hops": hops})
    return found.filter(pl.col("hops") > 0)
