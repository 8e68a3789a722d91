"""C3: all topics that depend on a change over extension edges in force wait for review, by the ledger's decisions.

The search is breadth first over numbered topics (scipy), from the changes that the last run recorded. Reviews that it
ended are looked at by `review_ends`.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from scipy.sparse import csr_array

from memstate_core.night.checks.check import Check, check, violating
from memstate_core.night.checks.checked_state import CheckedState, Tables
from memstate_core.night.checks.derived import derive
from memstate_core.night.checks.recorded import Recorded
from memstate_core.night.checks.review_ends import groundless_ends, unsure
from memstate_core.state.fold import decisions as kinds

_DOWN = ("has_detail", "has_subtopic")
_UP = ("part_of", "extends", "derives")
_CHANGED = ("topic_created", "topic_updated", kinds.MERGED, kinds.UNMERGED, kinds.MOVED)
_BY_HAND = (kinds.PINNED, kinds.UNPINNED, kinds.RESTORED)
_FIELDS_BY_HAND = (kinds.ATTACHED, kinds.EXPANDED)
"""Changes of a topic where they name fields of it; an edge that is attached again changes none of its ends."""
_PAYLOAD = pl.Struct({
    "survivor": pl.String, "others": pl.List(pl.String), "was": pl.String, "actor": pl.String,
    "fields": pl.List(pl.String), "cause_topic_id": pl.String, "hops": pl.Int64,
})  # fmt: skip


def dependency_consistency(checked: CheckedState, base: Tables | None = None, missing: str | None = None) -> Check:
    """The queue matches the recorded decisions, and contains every dependent of the last run's changes.

    Args:
        checked: the state.
        base: the tables of the snapshot that the run started from.
        missing: why there are none to compare with, if the ledger records a base.
    """
    queue, changed, referring = _queue(checked.recorded), _changes(checked), _by_reference(checked)
    found = [*_against_record(checked, queue), *_unqueued(checked, queue, changed, referring)]
    ended = groundless_ends(checked, base, pl.concat([changed, referring]))
    why = unsure(checked.recorded, missing)
    if ended.height and why:
        return check("C3", found, [f"ends of reviews not checked against the base: {why}"])
    return check("C3", [*found, violating(ended, "topic_id", "its review ended, though it did not change")])


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


def _changes(checked: CheckedState) -> pl.Series:
    """Topics that the last run's decisions changed."""
    rows = checked.recorded.last.filter(pl.col("kind").is_in([*_CHANGED, *_BY_HAND, *_FIELDS_BY_HAND]))
    payload = pl.col("payload_json").fill_null("{}").str.json_decode(_PAYLOAD)
    rows = rows.select("kind", "topic_id", _payload=payload).unnest("_payload")
    rows = rows.filter(pl.col("kind").is_in(_CHANGED) | pl.col("actor").is_not_null())
    rows = rows.filter(~pl.col("kind").is_in(_FIELDS_BY_HAND) | pl.col("fields").is_not_null())
    named = [rows["topic_id"], rows["survivor"], rows["was"], rows["others"].explode(empty_as_null=True)]
    ids = pl.DataFrame({"id": pl.concat(named).drop_nulls()})
    answering = ids.select(checked.derived.answering(pl.col("id")))["id"]
    return pl.concat([answering, _moved(checked)]).unique()


def _moved(checked: CheckedState) -> pl.Series:
    """Topics whose evidence changed because merges were undone."""
    if checked.recorded.last.filter(pl.col("kind") == kinds.UNMERGED).is_empty():
        return pl.Series(dtype=pl.String)
    before, now = derive(checked.recorded.before()).homes, checked.derived.homes
    key = ["evidence_id", "topic_id"]
    moved = [now.join(before, on=key, how="anti"), before.join(now, on=key, how="anti")]
    return pl.concat(moved)["topic_id"].unique()


def _by_reference(checked: CheckedState) -> pl.Series:
    """Topics that a merge or its undo changed because one of their fields refers to a merged or unmerged topic."""
    merged = checked.recorded.last.filter(pl.col("kind").is_in([kinds.MERGED, kinds.UNMERGED]))
    payload = pl.col("payload_json").str.json_decode(_PAYLOAD).struct
    parts = merged.select("topic_id", survivor=payload.field("survivor"), others=payload.field("others"))
    ids = pl.concat([parts["topic_id"], parts["survivor"], parts["others"].explode(empty_as_null=True)]).drop_nulls()
    ends = pl.DataFrame({"id": ids}).select(checked.derived.answering(pl.col("id")))["id"]
    referring = pl.col("ref_topic_id").is_in(pl.concat([ids, ends, _moved(checked)]).unique().implode())
    return checked.graph.fields.filter(referring)["topic_id"].unique()


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
