"""Reads recorded decisions: the transitions that a fold needs, as frames.

A fold never repeats a decision of a model or a policy; it reads the recorded one here.
"""

from __future__ import annotations

import polars as pl

from memstate_core.model.frames import Schema, empty, project
from memstate_core.model.ledger_tables import DECISION
from memstate_core.model.step_frames import PAIRS, SEGMENTS
from memstate_core.model.verdicts import SAME, SKIP
from memstate_core.state.fold.identity import survivors

SEGMENT_PLACED, MERGED, UNMERGED, ARCHIVED, RESTORED = (
    "segment_placed",
    "merged",
    "unmerged",
    "archived",
    "restored",
)
DETACHED, ATTACHED, SUMMARISED, EXPANDED = "detached", "attached", "summarised", "expanded"
PINNED, UNPINNED = "pinned", "unpinned"
MOVED = "moved"
KEPT_APART = "kept_apart"
"""Two topics that a merge which a rollback undid had joined; to a search it is what `UNMERGED` is."""
JUDGED, PAIR_SUGGESTED, PAIR_WITHDRAWN, MATCH_MODEL = "judged", "pair_suggested", "pair_withdrawn", "match_model_fitted"
REVIEW_QUEUED, REVIEW_ENDED, PUBLISHED = "review_queued", "review_ended", "published"
SET_ASIDE, READMITTED = "set_aside", "readmitted"
"""Evidence or accesses left out of runs because one failed with them, and readmitted; `SET_ASIDE` is a step too."""
PERSON = "person"
"""The actor of decisions that a person took."""
UNREAD = "reshard"
"""The actor of `SET_ASIDE` rows that a shard had not read when the number of shards changed, though another had: the
first night reads them."""
ACCEPTED = "accepted"
"""A gate whose failure a person accepted in a run; it changes no state. Its name is a step too."""
RESHARDED = "resharded"
"""A change of the number of shards, once for each new shard (`{from, to, actor}`, no scope), and once for each scope of
it whose topics the next night compares again. It changes no state."""
CORRECTIONS = "corrections"
"""The step that holds manual actions; every other step of its run follows it."""

_SEGMENT_PAYLOAD = pl.Struct(
    {name: SEGMENTS[name] for name in SEGMENTS if name not in ("topic_id", "scope", "evidence_ids")}
)
_SEGMENT_DEFAULTS: dict[str, object] = {"provenance": "import", "fields": [], "links": []}
_MERGE_PAYLOAD = pl.Struct({"survivor": pl.String, "dropped_title": pl.String, "dropped_kind": pl.String})
_MERGES = dict.fromkeys(("survivor", "dropped_title", "dropped_kind", "scope", "dropped"), pl.String)
_UNDO_PAYLOAD = pl.Struct({"survivor": pl.String, "weight": pl.Float64, "others": pl.List(pl.String)})
_VERDICT_COLUMNS = ("verdict", "_at")
_PAIR_PAYLOAD = pl.Struct(
    {
        "a": pl.String,
        "b": pl.String,
        "verdict": pl.String,
        "probability": pl.Float64,
        "weight": pl.Float64,
        "value": pl.Float64,
        "pair_kind": pl.String,
        "features": PAIRS["features"],
    }
)
_JUDGEMENTS: Schema = dict.fromkeys(("a", "b", "verdict"), pl.String)
_PAIR: Schema = dict.fromkeys(("a", "b", "scope"), pl.String)
_UNDONE: Schema = {**_PAIR, "weight": pl.Float64, "evidence_ids": pl.List(pl.String)}
_FIGURES: Schema = dict.fromkeys(("probability", "weight", "value"), pl.Float64)
_SUGGESTIONS: Schema = {**_PAIR, **_FIGURES, "pair_kind": pl.String, "features": PAIRS["features"]}


def set_aside(decisions: pl.DataFrame) -> pl.Series:
    """The ids of the evidence and of the accesses that are set aside; their forms differ, so no two are equal.

    Args:
        decisions: recorded decisions in their order (at least columns kind and evidence_ids).
    """
    rows = decisions.filter(pl.col("kind").is_in([SET_ASIDE, READMITTED])).select("kind", id="evidence_ids")
    if rows.is_empty():
        return pl.Series("id", [], pl.String)
    last = rows.explode("id").group_by("id", maintain_order=True).agg(pl.col("kind").last())
    return last.filter(pl.col("kind") == SET_ASIDE)["id"]


def segment_decisions(segments: pl.DataFrame) -> pl.DataFrame:
    """Segments as decisions (columns DECISION), with everything that a model contributed."""
    payload = pl.struct(field.name for field in _SEGMENT_PAYLOAD.fields).struct.json_encode()
    return project(segments.with_columns(kind=pl.lit(SEGMENT_PLACED), payload_json=payload), DECISION)


def segments(decisions: pl.DataFrame) -> pl.DataFrame:
    """The recorded segments (columns SEGMENTS); columns that earlier versions did not record have their defaults."""
    rows = decisions.filter(pl.col("kind") == SEGMENT_PLACED).drop("reason")
    if rows.is_empty():
        return empty(SEGMENTS)
    decoded = rows.with_columns(_payload=pl.col("payload_json").str.json_decode(_SEGMENT_PAYLOAD)).unnest("_payload")
    given = [pl.col(name).fill_null(pl.lit(value, SEGMENTS[name])) for name, value in _SEGMENT_DEFAULTS.items()]
    return project(decoded.with_columns(given), SEGMENTS)


def merges(decisions: pl.DataFrame) -> pl.DataFrame:
    """Merges in force, in the order in which they were decided.

    Returns:
        Columns dropped, survivor (as decided, not yet followed through later merges), dropped_title,
        dropped_kind, scope.
    """
    rows = decisions.filter(pl.col("kind").is_in([MERGED, UNMERGED]))
    if rows.is_empty():
        return empty(_MERGES)
    last = rows.group_by("topic_id", maintain_order=True).last().filter(pl.col("kind") == MERGED)
    decoded = last.with_columns(_payload=pl.col("payload_json").str.json_decode(_MERGE_PAYLOAD))
    return decoded.unnest("_payload").rename({"topic_id": "dropped"}).select(_MERGES.keys())


def separations(merges: pl.DataFrame) -> pl.DataFrame:
    """Decisions (columns DECISION) that undo merges whose ends belong to different scopes.

    Args:
        merges: rows of `merges`.
    """
    payload = pl.struct("survivor", actor=pl.lit("placements")).struct.json_encode()
    columns = {"kind": pl.lit(UNMERGED), "topic_id": pl.col("dropped"), "payload_json": payload}
    reason = pl.lit("one of its topics belongs to another scope")
    none = pl.lit([], pl.List(pl.String))
    return project(merges.with_columns(**columns, reason=reason, evidence_ids=none), DECISION)


def judgements(decisions: pl.DataFrame) -> pl.DataFrame:
    """The last verdict on each pair of topics.

    A `skip` does not replace an earlier verdict. A verdict `same` holds until a merge of one of its two topics is
    undone.

    Returns:
        Columns a, b (a < b), verdict (same, different, skip), in the order in which pairs were first judged.
    """
    numbered = decisions.with_row_index("_at")
    rows = numbered.filter(pl.col("kind") == JUDGED)
    if rows.is_empty():
        return empty(_JUDGEMENTS)
    judged = _decoded(rows, _PAIR_PAYLOAD)
    latest = [
        pl.coalesce(pl.col(name).filter(pl.col("verdict") != SKIP).last(), pl.col(name).last())
        for name in _VERDICT_COLUMNS
    ]
    last = judged.group_by("a", "b", maintain_order=True).agg(latest)
    freed = numbered.filter(pl.col("kind") == UNMERGED).group_by("topic_id").agg(pl.col("_at").max())
    followed = survivors(merges(decisions))
    roots = {end: pl.col(end).replace(followed["dropped"], followed["survivor"]) for end in ("a", "b")}
    since = last.join(freed, left_on="a", right_on="topic_id", how="left", suffix="_a")
    since = since.join(freed, left_on="b", right_on="topic_id", how="left", suffix="_b")
    parted = pl.max_horizontal("_at_a", "_at_b").fill_null(0) > pl.col("_at")
    ended = (pl.col("verdict") == SAME) & (roots["a"] != roots["b"]) & parted
    return since.filter(~ended).select(_JUDGEMENTS.keys())


def undone(decisions: pl.DataFrame) -> pl.DataFrame:
    """Pairs of topics whose last merge was undone, and the other pairs that were separated with it.

    Returns:
        Columns a, b (a < b: the dropped topic, and the survivor or another topic that was merged with both), scope,
        weight (the logit of the merge, null for a manual merge without one), evidence_ids (the evidence of the
        merged topic when the merge was undone: any other evidence of either topic is newer).
    """
    rows = decisions.filter(pl.col("kind").is_in([MERGED, UNMERGED, KEPT_APART]))
    if rows.is_empty():
        return empty(_UNDONE)
    rows = _decoded(rows, _UNDO_PAYLOAD)
    others = pl.col("others").fill_null(pl.lit([], pl.List(pl.String)))
    rows = rows.with_columns(other=pl.concat_list("survivor", others)).explode("other", empty_as_null=True)
    ends = {"a": pl.min_horizontal("topic_id", "other"), "b": pl.max_horizontal("topic_id", "other")}
    last = rows.with_columns(**ends).group_by("a", "b", maintain_order=True).last()
    return last.filter(pl.col("kind") != MERGED).select(_UNDONE.keys())


def suggestions(decisions: pl.DataFrame) -> pl.DataFrame:
    """Pairs that wait for a verdict: suggested, and neither withdrawn, judged, nor merged since.

    A verdict `skip` leaves a pair waiting.

    Returns:
        Columns a, b (a < b), scope, probability, weight, value (what an answer is worth, by which pairs are ordered),
        pair_kind, features.
    """
    rows = decisions.filter(pl.col("kind").is_in([PAIR_SUGGESTED, PAIR_WITHDRAWN, JUDGED]))
    if rows.is_empty():
        return empty(_SUGGESTIONS)
    rows = _decoded(rows, _PAIR_PAYLOAD).filter(pl.col("verdict").is_null() | (pl.col("verdict") != SKIP))
    last = rows.group_by("a", "b", maintain_order=True).last().filter(pl.col("kind") == PAIR_SUGGESTED)
    gone = merges(decisions)["dropped"].implode()
    waiting = last.filter(~pl.col("a").is_in(gone) & ~pl.col("b").is_in(gone))
    return waiting.select(_SUGGESTIONS.keys())


def _decoded(rows: pl.DataFrame, payload: pl.Struct) -> pl.DataFrame:
    return rows.with_columns(_payload=pl.col("payload_json").str.json_decode(payload)).unnest("_payload")
