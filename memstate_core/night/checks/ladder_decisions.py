"""C2 for the ladder: a threshold, the bound or a rule that applied at the time justifies each step of the last run.

Manual steps need no other justification.
"""

from __future__ import annotations

import polars as pl

from memstate_core.night.checks.check import violating
from memstate_core.night.checks.checked_state import CheckedState
from memstate_core.night.checks.eviction_curves import unexplained
from memstate_core.night.checks.features import AGREES, EXTENSION, features, field_features
from memstate_core.state.fold import decisions as kinds

_KINDS = (
    kinds.ARCHIVED, kinds.RESTORED, kinds.DETACHED, kinds.ATTACHED, kinds.SUMMARISED, kinds.EXPANDED,
)  # fmt: skip
_PAYLOAD = pl.Struct({
    "salience": pl.Float64, "by": pl.String, "keep": pl.Int64, "actor": pl.String, "fields": pl.List(pl.String),
    "edges": pl.List(pl.Struct({"to": pl.String, "kind": pl.String})),
})  # fmt: skip
_TIER = pl.when("held").then(3).when("depended_on").then(2).when("redundant").then(0).otherwise(1)
"""Eviction order over the bound, lowest tier first."""
FITTED_FROM = 100
"""From as many accesses a curve fitted to them may decide the order within a tier."""


def ladder_violations(checked: CheckedState) -> list[pl.DataFrame]:
    """Steps of the ladder in the last run that policy did not ask for."""
    steps = recorded_steps(checked.recorded.last)
    if steps.is_empty():
        return []
    topics = features(checked)
    decided = steps.filter(pl.col("actor").is_null())
    fields = field_features(checked, topics)
    return [
        violating(
            decided.join(topics, on="topic_id", how="anti"), "topic_id", "a step of the ladder for no living topic"
        ),
        *_archived(decided, topics, checked),
        *_restored(decided, topics),
        *_fields(decided, fields, checked),
        *_edges(decided, topics),
    ]


def recorded_steps(rows: pl.DataFrame) -> pl.DataFrame:
    """Recorded steps of the ladder with their payload."""
    own = rows.filter(pl.col("kind").is_in(_KINDS)).sort("seq")
    payload = pl.col("payload_json").fill_null("{}").str.json_decode(_PAYLOAD)
    return own.select("seq", "kind", "topic_id", _payload=payload).unnest("_payload")


def _archived(decided: pl.DataFrame, topics: pl.DataFrame, checked: CheckedState) -> list[pl.DataFrame]:
    rows = decided.filter(pl.col("kind") == kinds.ARCHIVED).rename({"salience": "_recorded"})
    known = rows.drop("fields", "edges").join(topics, on="topic_id")
    limit = pl.when("redundant").then("theta_detach").otherwise("theta_archive")
    spared = pl.col("pinned") | pl.col("held") | pl.col("accessed") | pl.col("action").is_not_null()
    asked = (
        pl.when(pl.col("by") == "threshold")
        .then(pl.col("pressure") & (pl.col("salience") < limit) & ~spared)
        .when(pl.col("by") == "rule")
        .then((pl.col("action") == "archive") & ~pl.col("pinned"))
        .otherwise((pl.col("by") == "bound") & ~pl.col("pinned"))
    )
    misstated = (pl.col("_recorded") - pl.col("salience")).abs() > AGREES
    return [
        violating(known.filter(~asked.fill_null(False)), "topic_id", "archived though policy does not ask for it"),
        violating(known.filter(misstated.fill_null(True)), "topic_id", "archived with another salience than it had"),
        violating(_needed(known, topics, checked), "topic_id", "archived though a topic that stays depends on it"),
        *_bound(known, decided, topics, checked),
    ]


def _needed(archived: pl.DataFrame, topics: pl.DataFrame, checked: CheckedState) -> pl.DataFrame:
    faded = archived.filter(pl.col("by") == "threshold")
    limit = pl.when("redundant").then("theta_detach").otherwise("theta_archive")
    stays = topics.filter(pl.col("state") == "active").join(archived, on="topic_id", how="anti")
    stays = stays.filter(pl.col("salience") >= limit).select("topic_id")
    edges = checked.edges_in_force
    down = edges.filter(pl.col("kind").is_in(["has_detail", "has_subtopic"])).select(base="from_id", on="to_id")
    up = edges.filter(pl.col("kind").is_in(["part_of", "extends", "derives"])).select(base="to_id", on="from_id")
    held = pl.concat([down, up]).join(stays, left_on="on", right_on="topic_id", how="semi")
    return faded.join(held, left_on="topic_id", right_on="base", how="semi")


def _bound(
    archived: pl.DataFrame, decided: pl.DataFrame, topics: pl.DataFrame, checked: CheckedState
) -> list[pl.DataFrame]:
    """The bound archived no more topics than were over it, in the order of their tiers and, within one, salience.

    It also keeps topics archived that would be restored, which is no decision; such topics do not stay.
    """
    restored = decided.filter(pl.col("kind") == kinds.RESTORED)["topic_id"].implode()
    marked = topics.filter(pl.col("state") == "active").join(
        archived.select("topic_id", by="by"), on="topic_id", how="left"
    )
    marked = marked.with_columns(_tier=_TIER)
    bound = (pl.col("by") == "bound").fill_null(False)
    stays = pl.col("by").is_null() & ~pl.col("pinned")
    stays = stays & ((pl.col("was") == "active") | pl.col("topic_id").is_in(restored))
    scopes = marked.group_by("scope").agg(
        _taken=bound.sum().cast(pl.Int64),
        _surplus=(pl.col("by").is_null() | bound).sum().cast(pl.Int64) - checked.recorded.policy.max_active_topics,
        _highest=pl.col("_tier").filter(bound).max(),
        _lowest=pl.col("_tier").filter(stays).min(),
    )
    return [
        violating(
            scopes.filter((pl.col("_taken") > 0) & (pl.col("_taken") > pl.col("_surplus"))),
            "scope",
            "more topics were archived than are over the bound",
        ),
        violating(
            scopes.filter(pl.col("_highest") > pl.col("_lowest")),
            "scope",
            "the bound took topics that leave after others",
        ),
        violating(_stronger(marked, bound, stays, checked), "scope", "the bound took topics that others leave before"),
    ]


def _stronger(marked: pl.DataFrame, bound: pl.Expr, stays: pl.Expr, checked: CheckedState) -> pl.DataFrame:
    """Scopes in which the bound took a topic and left one of the same tier that leaves before it (column scope).

    Topics leave by ascending salience; in scopes whose order may follow a curve fitted to accesses, by ascending rank
    of such a curve.
    """
    if not marked.select(bound.any()).item():
        return marked.select("scope").clear()
    tiers = marked.group_by("scope", "_tier").agg(
        _most=pl.col("salience").filter(bound).max(), _least=pl.col("salience").filter(stays).min()
    )
    wrong = tiers.filter(pl.col("_most") > pl.col("_least") + AGREES)
    asked = checked.recorded.accesses.filter(~pl.col("failed"))
    accessed = asked.select(checked.derived.answering(pl.col("topic_id")), "at")
    fitted = accessed.join(marked, on="topic_id").group_by("scope").len().filter(pl.col("len") >= FITTED_FROM)
    curved = marked.join(wrong, on="scope", how="semi").join(fitted, on="scope", how="semi")
    plain = wrong.join(fitted, on="scope", how="anti").select("scope")
    return pl.concat([plain, unexplained(curved, accessed, bound, stays, checked)])


def _restored(decided: pl.DataFrame, topics: pl.DataFrame) -> list[pl.DataFrame]:
    known = decided.filter(pl.col("kind") == kinds.RESTORED).select("topic_id", "by").join(topics, on="topic_id")
    by_access = (pl.col("by") == "access") & pl.col("accessed")
    asked = pl.when(pl.col("by") == "evidence").then("has_new_evidence").otherwise(by_access)
    return [
        violating(
            known.filter(~((pl.col("was") == "archived") & asked).fill_null(False)),
            "topic_id",
            "restored though neither evidence nor an access names it",
        )
    ]


def _fields(decided: pl.DataFrame, fields: pl.DataFrame, checked: CheckedState) -> list[pl.DataFrame]:
    rows = decided.explode("fields", empty_as_null=True).drop_nulls("fields").drop("salience")
    known = rows.rename({"fields": "name"}).join(fields, on=["topic_id", "name"])
    keep = checked.recorded.policy.summary_keep_revisions
    open_to = ~pl.col("pinned") & ~pl.col("held")
    free, action = pl.col("action").is_null(), pl.col("action")
    faint, low = pl.col("salience") < pl.col("theta_detach"), pl.col("salience") < pl.col("theta_summarise")
    long = pl.col("revisions") > keep + 1
    detach = (action.eq_missing(pl.lit("detach")) | (free & faint & pl.col("pressure"))) & open_to
    ruled = action.eq_missing(pl.lit("summarise"))
    shorten = (ruled | (free & low)) & long & open_to
    wrong = {
        kinds.DETACHED: (~detach, "a field was detached though policy does not ask for it"),
        kinds.ATTACHED: (
            detach | (faint & ~pl.col("pinned")),
            "a field was attached though it is still below its threshold",
        ),
        kinds.SUMMARISED: (
            ~shorten | pl.col("keep").ne_missing(pl.lit(keep)),
            "a history was summarised though policy does not ask for it",
        ),
        kinds.EXPANDED: (
            shorten | (long & ~ruled & low),
            "a history was expanded though it is still below its threshold",
        ),
    }
    return [
        violating(known.filter((pl.col("kind") == kind) & bad), "topic_id", text) for kind, (bad, text) in wrong.items()
    ]


def _edges(decided: pl.DataFrame, topics: pl.DataFrame) -> list[pl.DataFrame]:
    rows = decided.explode("edges", empty_as_null=True).filter(pl.col("edges").is_not_null()).drop("salience")
    edge = pl.col("edges").struct
    rows = rows.with_columns(to_id=edge.field("to"), _of=edge.field("kind"))
    ends = topics.select("topic_id", "salience", "pinned", "held", "action", "pressure", "theta_detach")
    both = rows.join(ends, on="topic_id").join(
        ends.select(to_id="topic_id", _salience="salience", _pinned="pinned", _held="held"), on="to_id"
    )
    salience = pl.min_horizontal("salience", "_salience")
    kept = pl.col("pinned") | pl.col("_pinned")
    faint = salience < pl.col("theta_detach")
    asked = (pl.col("action") == "detach").fill_null(False) | (pl.col("action").is_null() & faint & pl.col("pressure"))
    detach = asked & ~kept & ~(pl.col("held") | pl.col("_held")) & ~pl.col("_of").is_in(EXTENSION)
    cut, tied = pl.col("kind") == kinds.DETACHED, pl.col("kind") == kinds.ATTACHED
    return [
        violating(both.filter(cut & ~detach), "topic_id", "an edge was detached though policy does not ask for it"),
        violating(
            both.filter(tied & (detach | (faint & ~kept))),
            "topic_id",
            "an edge was attached though it is still below its threshold",
        ),
    ]
