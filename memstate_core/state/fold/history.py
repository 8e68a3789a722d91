"""Revision histories: assertions in the order of valid time, with equal neighbours combined.

The values of a field are ordered by (valid_from, observed_at, first evidence id, position), so a late
observation lands in its place in the history and never becomes current (law L7), and the result does not
depend on the order in which evidence arrived (L2). With the policy `conflict_rule = "confidence"` the
confidence comes before the time of observation; an assertion without one counts as the least confident.

Title, summary and kind follow one rule, whether a topic was merged or not: the newest by valid time, at
equal times the longer text (in characters), then the greater evidence id.

Where several values of a field have the same valid time, the newest revision names the others as its rivals. An
assertion with a later valid time ends the conflict, whether its value is new or the same.
"""

from __future__ import annotations

from datetime import datetime

import polars as pl

from memstate_core.model.frames import empty, project
from memstate_core.model.graph_tables import FIELDS, REVISIONS
from memstate_core.model.ids import uuid_expr
from memstate_core.policy.settings import Policy
from memstate_core.state.fold.strength import strength
from memstate_core.state.fold.usage_events import field_events

SLOT = ["topic_id", "part", "name"]
"""Key of a history: a field of a topic, or one of the topic's own parts (title, summary, topic_kind)."""

_MOMENT = [*SLOT, "valid_from"]


def in_order(assertions: pl.DataFrame, policy: Policy) -> pl.DataFrame:
    """Assertions sorted by slot and, within it, from oldest to newest.

    Args:
        assertions: columns ASSERTIONS.
        policy: its `conflict_rule` orders the values of a field that became true at the same time.

    Returns:
        The assertions with `_first` (first evidence id) and `_precedence` (float; decides between equal
        valid times before the time of observation: characters, confidence, or one value for all).
    """
    is_field = pl.col("part") == "field"
    by_rule = pl.col("confidence").fill_null(-1.0) if policy.conflict_rule == "confidence" else pl.lit(0.0)
    ranked = assertions.with_columns(
        _first=pl.col("evidence_ids").list.first(),
        _precedence=pl.when(is_field).then(by_rule).otherwise(pl.col("length").cast(pl.Float64)),
        _observed=pl.when(is_field).then("observed_at"),
    )
    return ranked.sort(*_MOMENT, "_precedence", "_observed", "_first", "position").drop("_observed")


def revisions(ordered: pl.DataFrame) -> pl.DataFrame:
    """Histories (columns REVISIONS) from ordered assertions.

    A run of equal consecutive values is one revision: it began when the first of them became true, its
    evidence is that of all, its confidence the highest of them.
    """
    numbered = ordered.with_columns(_run=(~repeated()).cum_sum())
    columns = ("value_json", "field_type", "valid_from", "provenance", "why_changed", "impact_expected")
    runs = numbered.group_by("_run", maintain_order=True).agg(
        pl.col(*SLOT, *columns, "_first", "position").first(),
        recorded_at=pl.col("recorded_at").min(),
        confidence=pl.col("confidence").max(),
        evidence_ids=pl.col("evidence_ids").list.explode(keep_nulls=False, empty_as_null=False).unique().sort(),
    )
    newest_first = pl.int_range(pl.len()).reverse().over(SLOT)
    identity = uuid_expr("revision", pl.col("part"), pl.col("name"), pl.col("_first"), pl.col("position"))
    identified = runs.with_columns(rank=newest_first, id=identity)
    return project(
        identified.join(_rivals(numbered, identified), on="_run", how="left", maintain_order="left"),
        REVISIONS,
        nulls=("summarises",),
    )


def repeated() -> pl.Expr:
    """Whether an assertion repeats the value before it in its slot, in the order of `in_order`."""
    same_slot = pl.all_horizontal(pl.col(name) == pl.col(name).shift() for name in SLOT)
    return (same_slot & (pl.col("value_json") == pl.col("value_json").shift())).fill_null(False)


def fields(
    ordered: pl.DataFrame,
    histories: pl.DataFrame,
    used: pl.DataFrame,
    half_lives: pl.DataFrame,
    policy: Policy,
    until: datetime | None = None,
) -> pl.DataFrame:
    """The fields that have histories (columns FIELDS; references as given, salience still null).

    A field's type is that of its current revision. Its reference is the newest one given: an observation
    without a reference keeps it, one with null clears it.

    Args:
        ordered: assertions as `in_order` gives them.
        histories: what `revisions` makes of them.
        used: accesses of topics and fields (`memstate_core.state.fold.usage_events`).
        half_lives: columns topic_id, half_life (days).
        policy: weighs evidence, and bounds the change of half-lives.
        until: ignore events of salience after this moment.
    """
    own = pl.col("part") == "field"
    key = ["topic_id", "name"]
    contradicted = pl.when(pl.col("settled_at").is_null()).then(pl.col("rivals").list.len())
    current = histories.filter(own & (pl.col("rank") == 0)).select(
        *key, "field_type", conflicts=contradicted.fill_null(0)
    )
    given = ordered.filter(own & pl.col("ref_given"))
    references = given.group_by(key, maintain_order=True).agg(pl.col("ref_topic_id").last())
    said = ordered.filter(own).select(*key, at="observed_at")
    said = said if until is None else said.filter(pl.col("at") <= until)
    events = field_events(said, used, policy)
    strengths = strength(events.join(half_lives, on="topic_id"), key, policy)
    identity = uuid_expr("field", *(pl.col(name) for name in key))
    joined = current.join(references, on=key, how="left").join(strengths, on=key, how="left")
    return project(joined.with_columns(id=identity), FIELDS, nulls=("ref_state", "salience", "detached"))


def topic_parts(histories: pl.DataFrame) -> pl.DataFrame:
    """The current title, summary and kind of topics.

    Returns:
        Columns topic_id and, of title, summary and topic_kind, those that any of the topics has.
    """
    current = histories.filter((pl.col("part") == "topic") & (pl.col("rank") == 0))
    text = pl.col("value_json").str.json_decode(pl.String)
    return current.select("topic_id", "name", value=text).pivot("name", index="topic_id", values="value")


def conflicts(fields: pl.DataFrame) -> int:
    """How many fields (columns FIELDS) have a current value that others contradict."""
    return fields.filter(pl.col("conflicts") > 0).height


def _rivals(numbered: pl.DataFrame, runs: pl.DataFrame) -> pl.DataFrame:
    """The values that contradict the last run at a valid time with several values (columns _run, rivals, settled_at).

    Only moments with more than one value are looked at, and those are few.
    """
    tied = _tied(numbered)
    if tied.is_empty():
        return empty({"_run": numbered.schema["_run"], **{name: REVISIONS[name] for name in ("rivals", "settled_at")}})
    values = _contested(numbered, tied)
    shown = pl.col("_run") == pl.col("_shown")
    leads = values.filter(shown & pl.col("exclusive")).select("_shown", "_precedence")
    others = values.filter(~shown & pl.col("exclusive")).join(leads, on=["_shown", "_precedence"], how="semi")
    named = others.join(runs.select("_run", "id"), on="_run").sort("_run", descending=True)
    rivals = named.group_by(_run="_shown").agg(pl.col("valid_from").first(), rivals="id")
    later = numbered.join(rivals.select("_run", _at="valid_from"), on="_run").filter(
        pl.col("valid_from") > pl.col("_at")
    )
    settled = later.group_by("_run").agg(settled_at=pl.col("valid_from").min())
    return rivals.select("_run", "rivals").join(settled, on="_run", how="left")


def _tied(numbered: pl.DataFrame) -> pl.DataFrame:
    """The valid times with several values (columns _MOMENT)."""
    at_once = pl.all_horizontal(pl.col(name) == pl.col(name).shift() for name in _MOMENT)
    tied = numbered.filter((at_once & (pl.col("_run") != pl.col("_run").shift())).fill_null(False))
    return tied.select(_MOMENT).unique()


def _contested(numbered: pl.DataFrame, tied: pl.DataFrame) -> pl.DataFrame:
    """Values at valid times with several: the last run of each, its precedence, and the run that is shown."""
    contested = numbered.join(tied, on=_MOMENT, how="semi")
    marked = contested.with_columns(_shown=pl.col("_run").max().over(_MOMENT))
    return marked.group_by(*_MOMENT, "_shown", "value_json").agg(
        pl.col("_run").max(), pl.col("_precedence").max(), pl.col("exclusive").all()
    )
