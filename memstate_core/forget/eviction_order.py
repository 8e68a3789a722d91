"""In which order topics leave scopes over their bound: by salience, or by what the scope's own past teaches.

Where uses are on record, the curve under which the active set would have answered most of them orders the scope
(`memstate_core.forget.eviction_fit`). Salience and the thresholds of the ladder stay with the policy's half-life.
"""

from __future__ import annotations

from datetime import datetime

import polars as pl

from memstate_core.forget.eviction_fit import Curve, Fit, fit_curve, retention
from memstate_core.model.frames import ALIASES, LINKS, Schema, conform, empty
from memstate_core.policy.overrides import value_for
from memstate_core.policy.settings import Policy
from memstate_core.run.run import Run
from memstate_core.run.store import Store
from memstate_core.run.view import decisions, shard_accesses, shard_evidence
from memstate_core.state.decisions import merges
from memstate_core.state.identity import answering, survivors

_DAY = 86_400_000_000

ORDERS: Schema = {
    "scope": pl.String,
    "half_life_days": pl.Float64,
    "growth": pl.Float64,
    "hits": pl.Float64,
    "default_hits": pl.Float64,
    "requests": pl.Int64,
    "days": pl.Int64,
}
"""By which curve each scope over its bound is ordered, how many of the replayed uses it would have answered, and
how many the policy's own half-life would have."""


def ordered(store: Store, run: Run, topics: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Adds `retention` to the topics of a night, and answers by which curves (columns ORDERS).

    Args:
        store: the store.
        run: the run in progress.
        topics: what `standing` gives.
    """
    if not _over(topics, run.policy).height or run.facts.accesses_version is None:
        return topics.with_columns(retention="salience"), empty(ORDERS)
    observed = shard_evidence(store.ledger, run, ["evidence_id", "observed_at"])
    said = run.table("links", LINKS).join(observed, on="evidence_id").select("topic_id", at="observed_at")
    followed = survivors(merges(decisions(store.ledger, run)))
    uses = shard_accesses(store.ledger, run).filter(~pl.col("failed")).unique("access_id")
    used = uses.select(answering(pl.col("topic_id"), run.table("aliases", ALIASES), followed), "at")
    return by_the_past(topics, said, used, run.facts.now, run.policy)


def by_the_past(
    topics: pl.DataFrame, said: pl.DataFrame, used: pl.DataFrame, now: datetime, policy: Policy
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Adds `retention` to topics; the lowest of a scope leave first.

    Args:
        topics: what `standing_of` gives.
        said: what was said of topics (columns topic_id, at).
        used: how they were used, failures left out (the same columns).
        now: the time of the night.
        policy: gives the bound and the half-lives.

    Returns:
        The topics with `retention`, and the curves that were fitted (columns ORDERS).
    """
    over = _over(topics, policy)
    known = pl.concat([said.with_columns(used=pl.lit(False)), used.with_columns(used=pl.lit(True))])
    named = over.select("scope", "topic_id", half_life=value_for("salience_half_life_days", policy))
    events = named.join(known, on="topic_id").sort("scope", "topic_id", "at", "used")
    none = topics.clear().select("topic_id", _fitted=pl.lit(None, dtype=pl.Float64))
    found = [_of_scope(rows, now, policy) for rows in events.partition_by("scope", maintain_order=True)]
    better = pl.concat([none, *(rows for rows, _ in found)])
    plain = topics.with_columns(retention="salience").join(better, on="topic_id", how="left", maintain_order="left")
    fitted = plain.with_columns(retention=pl.coalesce("_fitted", "retention")).drop("_fitted")
    return fitted, pl.concat([empty(ORDERS), *(row for _, row in found)])


def _over(topics: pl.DataFrame, policy: Policy) -> pl.DataFrame:
    active = topics.filter(pl.col("state") == "active")
    return active.filter(pl.len().over("scope") > policy.max_active_topics)


def _of_scope(events: pl.DataFrame, now: datetime, policy: Policy) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The order of one scope (columns topic_id, _fitted; no rows where the default stands), and its curve."""
    topics = events["topic_id"].rle_id().cast(pl.Int64).to_numpy()
    times = (events["at"].dt.timestamp("us") / _DAY).to_numpy()
    today, half_life = now.timestamp() / 86_400, float(events.select(pl.col("half_life").median()).item())
    fit = fit_curve(topics, times, policy.max_active_topics, today, half_life, events["used"].to_numpy())
    ids = events["topic_id"].unique(maintain_order=True)
    if fit.curve == Curve(half_life, 1.0):
        ids = ids.clear()
    lasting = retention(topics, times, today, fit.curve, int(topics[-1]) + 1)[: len(ids)]
    return pl.DataFrame([ids, pl.Series("_fitted", lasting)]), _row(events["scope"][0], fit)


def _row(scope: str, fit: Fit) -> pl.DataFrame:
    figures = {"hits": fit.hits, "default_hits": fit.default_hits, "requests": fit.requests, "days": fit.days}
    curve = {"half_life_days": fit.curve.half_life_days, "growth": fit.curve.growth}
    return conform(pl.DataFrame([{"scope": scope, **curve, **figures}]), ORDERS)
