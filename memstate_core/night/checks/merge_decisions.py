"""C2 for merges: both ends share a scope, and a probability or a verdict justifies each merge of the last run.

A decision records the mean probability of a topic with the others of its group, and the logit of the strongest
such pair. A topic stays in a group only if the mean is at least one half, and a group needs a pair that reaches
`merge_probability`, or the probability of the merge rule that applies. What else a merge of a run needs is checked by
`kept_apart`, `merge_figures`, `merged_levels` and `confirming_answers`.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from memstate_core.model.verdicts import DIFFERENT, SAME, SKIP
from memstate_core.night.checks.asked_probability import asked_probability
from memstate_core.night.checks.check import violating
from memstate_core.night.checks.checked_state import CheckedState
from memstate_core.night.checks.confirming_answers import unconfirmed
from memstate_core.night.checks.derived import followed, in_force, merges_in_force
from memstate_core.night.checks.kept_apart import kept_apart
from memstate_core.night.checks.merge_figures import overrated
from memstate_core.night.checks.merged_levels import misjudged
from memstate_core.night.checks.merged_topics import MergedTopics, merged_topics
from memstate_core.night.checks.recorded_comparisons import comparisons, models
from memstate_core.state.fold import decisions as kinds

_LINKAGE = 0.5
_ROUNDING = 1e-9
_PAYLOAD = pl.Struct({
    "survivor": pl.String, "probability": pl.Float64, "weight": pl.Float64, "actor": pl.String,
    "a": pl.String, "b": pl.String, "verdict": pl.String, "confirmed_by": pl.Int64,
})  # fmt: skip


def merge_violations(checked: CheckedState) -> list[pl.DataFrame]:
    """Merges in force across scopes, and merges of the last run without a justification."""
    last = _decoded(checked.recorded.last)
    merged = last.filter(pl.col("kind") == kinds.MERGED)
    found = _scopes(checked)
    if merged.is_empty():
        return found
    judged = _decoded(checked.recorded.transitions)
    by_run = merged.filter(pl.col("actor").is_null())
    return [
        *found,
        *_by_run(by_run, checked),
        violating(_unjudged(merged, last), "topic_id", "merged by a person without a verdict that says so"),
        violating(_asleep(merged, checked), "topic_id", "merged though it was archived"),
        violating(_torn(judged, checked), "a", "merged with a topic that a person judged different"),
    ]


def _by_run(merged: pl.DataFrame, checked: CheckedState) -> list[pl.DataFrame]:
    if merged.is_empty():
        return []
    topics, last = merged_topics(merged, checked), checked.recorded.last
    (pairs, compared), fitted = comparisons(merged, last), models(merged, last)
    return [
        *_automatic(merged, topics, checked),
        *kept_apart(topics),
        *overrated(merged, compared, fitted),
        *misjudged(pairs, compared, topics, fitted),
        *unconfirmed(merged, checked.recorded.transitions),
    ]


def _decoded(rows: pl.DataFrame) -> pl.DataFrame:
    own = rows.filter(pl.col("kind").is_in([kinds.MERGED, kinds.JUDGED])).sort("seq")
    payload = pl.col("payload_json").fill_null("{}").str.json_decode(_PAYLOAD)
    return own.select("seq", "kind", "scope", "topic_id", _payload=payload).unnest("_payload")


def _scopes(checked: CheckedState) -> list[pl.DataFrame]:
    scopes = checked.graph.topics.select("id", "scope")
    merges = checked.derived.merges.rename({"scope": "_recorded"})
    ends = merges.join(scopes.rename({"scope": "_dropped"}), left_on="dropped", right_on="id", how="left")
    both = ends.join(scopes.rename({"scope": "_survivor"}), left_on="survivor", right_on="id", how="left")
    odd = (pl.col("_dropped") != pl.col("_survivor")) | (pl.col("_recorded") != pl.col("_survivor"))
    return [violating(both.filter(odd.fill_null(False)), "dropped", "merged with a topic of another scope")]


def _automatic(merged: pl.DataFrame, topics: MergedTopics, checked: CheckedState) -> list[pl.DataFrame]:
    sure = 1 / (1 + (-pl.col("weight")).exp())
    groups = merged.group_by("survivor").agg(
        _surest=sure.max(),
        _lowest=pl.col("probability").min(),
        _odd=pl.col("probability").is_null().any(),
    )
    asked = asked_probability(topics, checked.graph.topics.select("id", "scope"), checked.recorded.policy)
    groups = groups.with_columns(topic_id=topics.before.answering(pl.col("survivor")))
    groups = groups.join(topics.members, on="topic_id", how="left").join(asked, on="into", how="left")
    weak = ~(pl.col("_surest") >= pl.col("asked") - _ROUNDING).fill_null(False)
    weak = weak | pl.col("_odd") | ~(pl.col("_lowest") >= _LINKAGE - _ROUNDING).fill_null(False)
    return [violating(groups.filter(weak), "survivor", "a merge that the policy's probability does not ask for")]


def _unjudged(merged: pl.DataFrame, last: pl.DataFrame) -> pl.DataFrame:
    """Merges by a person whose ends no verdicts of the same run connect."""
    by_hand = merged.filter(pl.col("actor").is_not_null())
    same = last.filter((pl.col("kind") == kinds.JUDGED) & (pl.col("verdict") == SAME))
    ids = pl.concat([same["a"], same["b"], by_hand["topic_id"], by_hand["survivor"]]).drop_nulls().unique().sort()
    ends = (ids.search_sorted(same["a"]), ids.search_sorted(same["b"]))
    joined = coo_array((np.ones(same.height), ends), shape=(len(ids), len(ids)))
    parts = connected_components(joined, directed=False)[1] if len(ids) else []
    group = pl.DataFrame({"id": ids, "_group": parts}, schema={"id": pl.String, "_group": pl.Int64})
    both = by_hand.join(group, left_on="topic_id", right_on="id", how="left")
    both = both.join(group, left_on="survivor", right_on="id", how="left", suffix="_into")
    return both.filter(pl.col("_group").ne_missing(pl.col("_group_into")))


def _asleep(merged: pl.DataFrame, checked: CheckedState) -> pl.DataFrame:
    before = checked.recorded.before().transitions.sort("seq")
    archived = in_force(before, ["topic_id"], kinds.ARCHIVED, kinds.RESTORED)["topic_id"].implode()
    return merged.filter(pl.col("topic_id").is_in(archived) | pl.col("survivor").is_in(archived))


def _torn(judged: pl.DataFrame, checked: CheckedState) -> pl.DataFrame:
    """Pairs last judged different by a person that the last run's merges joined (column a)."""
    verdicts = judged.filter((pl.col("kind") == kinds.JUDGED) & (pl.col("verdict") != SKIP))
    apart = verdicts.unique(["a", "b"], keep="last").filter(pl.col("verdict") == DIFFERENT)
    before, _ = followed(merges_in_force(checked.recorded.before().transitions))
    return apart.filter(_joined(checked.derived.survivors) & ~_joined(before)).select("a")


def _joined(survivors: pl.DataFrame) -> pl.Expr:
    one, other = (pl.col(end).replace(survivors["dropped"], survivors["survivor"]) for end in ("a", "b"))
    return one == other
