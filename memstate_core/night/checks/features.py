"""Topic features for rules and thresholds, recomputed as of the moment at which the ladder decided.

Evidence, accesses and salience come from the ledger; titles, kinds, fields and edges, which the ladder does not
change, from the graph. A salience of the graph that agrees with the ledger's is used unchanged, so that a
comparison with a threshold does not depend on the last digit.
"""

from __future__ import annotations

import polars as pl

from memstate_core.model.text import iso_expr
from memstate_core.night.checks.checked_state import CheckedState
from memstate_core.night.checks.derived import in_force
from memstate_core.policy.overrides import value_for
from memstate_core.state.fold import decisions as kinds

AGREES = 1e-6
_DAYS = 86_400_000_000
_DOWN, _UP = ("has_detail", "has_subtopic"), ("part_of", "extends", "derives")
EXTENSION = (*_DOWN, *_UP)


def features(checked: CheckedState) -> pl.DataFrame:
    """One row for each living topic, sorted by id.

    Returns:
        Columns topic_id, the columns that rules and their events name, was (the state before the run's
        ladder), pinned, held, action and rule (what governs it, or null), and the thresholds of the ladder.
    """
    policy, now = checked.recorded.policy, checked.recorded.now
    known = _known(checked)
    active = pl.col("state") == "active"
    counted = known.with_columns(
        scope_type=pl.col("scope").str.split(":").list.first(),
        active=active.sum().cast(pl.Int64).over("scope"),
        age_days=(pl.lit(now) - pl.col("created_at")).dt.total_microseconds() / _DAYS,
        idle_days=(pl.lit(now) - pl.col("reinforced_at")).dt.total_microseconds() / _DAYS,
        theta_summarise=value_for("summarise_salience_threshold", policy),
        theta_detach=value_for("detach_salience_threshold", policy),
        theta_archive=value_for("forget_salience_threshold", policy),
    )
    counted = counted.with_columns(pressure=pl.col("active") >= policy.topic_count_soft_limit)
    return _governed(_related(counted, checked.edges_in_force), checked)


def field_features(checked: CheckedState, topics: pl.DataFrame) -> pl.DataFrame:
    """One row for each field of a living topic: its salience, its revisions in full, and the topic's features."""
    behind = checked.compressed.group_by("topic_id", "name").agg(_behind=pl.len())
    whole = checked.graph.revisions.filter((pl.col("part") == "field") & pl.col("summarises").is_null())
    shown = whole.group_by("topic_id", "name").agg(_shown=pl.len())
    rows = checked.levels[1].select("topic_id", "name", _due="salience")
    rows = rows.join(checked.graph.fields.select("topic_id", "name", "salience"), on=["topic_id", "name"])
    for counts in (behind, shown):
        rows = rows.join(counts, on=["topic_id", "name"], how="left")
    rows = rows.with_columns(
        salience=_confirmed(), revisions=pl.col("_behind").fill_null(0) + pl.col("_shown").fill_null(0)
    )
    own = topics.select("topic_id", "action", "pinned", "held", "pressure", "theta_summarise", "theta_detach")
    return rows.select("topic_id", "name", "salience", "revisions").join(own, on="topic_id")


def _confirmed() -> pl.Expr:
    agrees = (pl.col("salience") - pl.col("_due")).abs() <= AGREES
    return pl.when(agrees.fill_null(False)).then("salience").otherwise("_due")


def _known(checked: CheckedState) -> pl.DataFrame:
    recorded, derived = checked.recorded, checked.derived
    before = recorded.before().transitions.sort("seq")
    archived = in_force(before, ["topic_id"], kinds.ARCHIVED, kinds.RESTORED)["topic_id"].implode()
    pins = in_force(before, ["topic_id"], kinds.PINNED, kinds.UNPINNED)
    pinned = pins.select(derived.answering(pl.col("topic_id")))["topic_id"].implode()
    read = recorded.fresh_accesses.filter(~pl.col("failed"))
    accessed = read.select(derived.answering(pl.col("topic_id")))["topic_id"]
    levels = checked.levels[0].rename({"salience": "_due"}).drop("failed_salience")
    topics = checked.graph.living.select("id", "scope", "title", "topic_kind", "salience", "failed_salience")
    fields = checked.graph.fields.group_by("topic_id").agg(fields=pl.len().cast(pl.Int64))
    rows = topics.rename({"id": "topic_id"}).join(levels, on="topic_id").join(fields, on="topic_id", how="left")
    ids = pl.col("topic_id")
    kind_pinned = pl.col("topic_kind").is_in(recorded.policy.spared_kinds).fill_null(False)
    rows = rows.with_columns(
        salience=_confirmed(),
        fields=pl.col("fields").fill_null(0),
        has_new_evidence=ids.is_in(_with_new_evidence(checked).implode()),
        accessed=ids.is_in(accessed.implode()),
        pinned=ids.is_in(pinned) | kind_pinned,
        held=ids.is_in(_held(rows, before).implode()),
        was=pl.when(ids.is_in(archived)).then(pl.lit("archived")).otherwise(pl.lit("active")),
    )
    back = (pl.col("was") == "archived") & ~(pl.col("has_new_evidence") | pl.col("accessed"))
    return rows.with_columns(state=pl.when(back).then(pl.lit("archived")).otherwise(pl.lit("active"))).sort("topic_id")


def _with_new_evidence(checked: CheckedState) -> pl.Series:
    placed = checked.recorded.last.filter(pl.col("kind").is_in(["placed", kinds.SEGMENT_PLACED]))
    fresh = placed.select(evidence_id=pl.col("evidence_ids").explode(empty_as_null=True)).drop_nulls()
    return checked.derived.homes.join(fresh, on="evidence_id", how="semi")["topic_id"].unique()


def _held(topics: pl.DataFrame, before: pl.DataFrame) -> pl.Series:
    """Topics that were restored manually and have had no event since."""
    since = pl.col("payload_json").str.json_path_match("$.last_event_at")
    marked = before.select("topic_id", _since=since).drop_nulls()
    last = marked.unique("topic_id", keep="last", maintain_order=True)
    both = topics.join(last, on="topic_id")
    return both.filter(iso_expr(pl.col("reinforced_at")) == pl.col("_since"))["topic_id"]


def _related(topics: pl.DataFrame, edges: pl.DataFrame) -> pl.DataFrame:
    active = topics.filter(pl.col("state") == "active")["topic_id"].implode()
    starts, ends = pl.col("from_id").is_in(active), pl.col("to_id").is_in(active)
    bases = [
        edges.filter(pl.col("kind").is_in(_UP) & starts)["to_id"],
        edges.filter(pl.col("kind").is_in(_DOWN) & ends)["from_id"],
    ]
    superseded = edges.filter((pl.col("kind") == "supersedes") & starts)["to_id"]
    ids = pl.col("topic_id")
    return topics.with_columns(
        depended_on=ids.is_in(pl.concat(bases).implode()), redundant=ids.is_in(superseded.implode())
    )


def _governed(topics: pl.DataFrame, checked: CheckedState) -> pl.DataFrame:
    rule, action = pl.lit(None, pl.String), pl.lit(None, pl.String)
    for candidate in reversed(checked.recorded.policy.ladder_rules):
        fits = candidate.fits()
        rule = pl.when(fits).then(pl.lit(candidate.name)).otherwise(rule)
        action = pl.when(fits).then(pl.lit(candidate.do)).otherwise(action)
    ruled = topics.with_columns(rule=rule, action=action)
    return ruled.with_columns(pinned=pl.col("pinned") | (pl.col("action") == "pin").fill_null(False))
