"""C2 for merges that a run made by itself: none joins topics that evidence or an earlier decision keeps apart.

Topics are kept apart if both have keys and share none, if their kinds differ, or if a merge of the two was undone
since and neither new evidence nor a clearly higher weight frees them. Keys and kinds follow from the evidence as it was
when the run merged, what was undone from the decisions before it. Of the merge itself only the weight counts, as one of
two conditions that free an undone pair. Pairs that a person judged different are left to `merge_decisions`, which
looks at merges of people, too.
"""

from __future__ import annotations

import polars as pl

from memstate_core.model.text import normalised
from memstate_core.night.checks.check import violating
from memstate_core.night.checks.derived import Derived
from memstate_core.night.checks.merged_topics import MergedTopics
from memstate_core.state.fold import decisions as kinds

_RENEWED = 2.0
"""How much the weight of a merge must exceed that of the undone one."""
_UNDONE = pl.Struct({"survivor": pl.String, "others": pl.List(pl.String), "weight": pl.Float64})


def kept_apart(topics: MergedTopics) -> list[pl.DataFrame]:
    """Merges that join topics which are kept apart, a violation for each topic that survives.

    Args:
        topics: the topics of the last run's own merges.
    """
    kinds = topics.kinds.with_columns(normalised(pl.col("value")))
    found = {
        "a run merged topics that have keys and share none": _without_common(_values(topics.keys)),
        "a run merged topics of different kinds": _without_common(_values(kinds)),
        "a run merged again what was undone, and nothing is new": _undone(topics),
    }
    return [violating(rows, "into", text) for text, rows in found.items()]


def _values(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.group_by("into", "topic_id").agg(values=pl.col("value").unique().sort())


def _without_common(sides: pl.DataFrame) -> pl.DataFrame:
    """Merged topics of which two have values and none in common (column into)."""
    each = sides.select("into", "values").unique().with_row_index("side")
    pairs = each.join(each, on="into", suffix="_b").filter(pl.col("side") < pl.col("side_b"))
    return pairs.filter(pl.col("values").list.set_intersection("values_b").list.len() == 0)


def _undone(topics: MergedTopics) -> pl.DataFrame:
    """Merged pairs that were undone and that nothing frees (column into); of several undone merges, one is enough."""
    before, members = topics.before, topics.members
    parted = _parted(topics.earlier).with_columns(
        pl.col(end).replace(before.survivors["dropped"], before.survivors["survivor"]) for end in ("a", "b")
    )
    for end in ("a", "b"):
        own = members.select("topic_id", **{f"into_{end}": "into", f"weight_{end}": "weight"})
        parted = parted.join(own, left_on=end, right_on="topic_id")
    joined = parted.filter((pl.col("into_a") == pl.col("into_b")) & (pl.col("a") != pl.col("b")))
    joined = joined.with_row_index("row")
    least = pl.min_horizontal("weight_a", "weight_b")
    heavier = (least > pl.col("weight") + _RENEWED).fill_null(False)
    freed = pl.col("row").is_in(_renewed(joined, before).implode()) & heavier
    pairs = joined.group_by("into_a", one=pl.min_horizontal("a", "b"), other=pl.max_horizontal("a", "b"))
    return pairs.agg(freed=freed.any()).filter(~pl.col("freed")).select(into="into_a")


def _parted(earlier: pl.DataFrame) -> pl.DataFrame:
    """Pairs whose last merge was undone (columns a, b, weight, evidence_ids: those that both had then)."""
    rows = earlier.filter(pl.col("kind").is_in([kinds.MERGED, kinds.UNMERGED, kinds.KEPT_APART])).sort("seq")
    payload = pl.col("payload_json").str.json_decode(_UNDONE).struct
    others = pl.concat_list(
        payload.field("survivor"), payload.field("others").fill_null(pl.lit([], pl.List(pl.String)))
    )
    pairs = rows.select("kind", "topic_id", "evidence_ids", other=others, weight=payload.field("weight"))
    pairs = pairs.explode("other").drop_nulls("other")
    ends = {"a": pl.min_horizontal("topic_id", "other"), "b": pl.max_horizontal("topic_id", "other")}
    last = pairs.with_columns(**ends).unique(["a", "b"], keep="last", maintain_order=True)
    return last.filter(pl.col("kind") != kinds.MERGED).select("a", "b", "weight", "evidence_ids")


def _renewed(parted: pl.DataFrame, before: Derived) -> pl.Series:
    """The rows of undone pairs of which a topic has evidence since."""
    ends = parted.unpivot(["a", "b"], index="row", value_name="topic_id")
    known = parted.select("row", evidence_id="evidence_ids").explode("evidence_id")
    held = before.homes.select("evidence_id", "topic_id").join(ends, on="topic_id")
    return held.join(known, on=["row", "evidence_id"], how="anti")["row"]
