"""The eviction order of scopes over their bound: by salience, or by a curve fitted to the scope's event history.

Where accesses are on record, a scope is ordered by the curve under which the active set would have answered most of
them (`memstate_core.forget.eviction_fit`). Salience and the thresholds of the ladder always use the policy's half-life.
"""

from __future__ import annotations

from datetime import datetime

import polars as pl

from memstate_core.forget.eviction_fit import Curve, Fit, fit_curve, retention
from memstate_core.model.frames import Schema, conform, empty
from memstate_core.model.step_frames import ALIASES, EVIDENCE_TOPIC
from memstate_core.policy.overrides import value_for
from memstate_core.policy.settings import Policy
from memstate_core.run.run import Run
from memstate_core.run.store import Store
from memstate_core.run.view import decisions, shard_accesses, shard_evidence
from memstate_core.state.fold.decisions import merges
from memstate_core.state.fold.identity import answering, survivors

_DAY = 86_400_000_000

EVICTION_FITS: Schema = {
    "scope": pl.String,
    "half_life_days": pl.Float64,
    "growth": pl.Float64,
    "hits": pl.Float64,
    "default_hits": pl.Float64,
    "requests": pl.Int64,
    "days": pl.Int64,
}
"""The curve that orders each scope over its bound, how many of the replayed accesses it would have answered, and how
many the policy's own half-life would have."""


def with_retention(store: Store, run: Run, topics: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Adds `retention` to the topics of a run; also returns the fitted curves (columns EVICTION_FITS).

    Args:
        store: the store.
        run: the run in progress.
        topics: the columns of `topic_features.topic_features`.
    """
    if not _over(topics, run.policy).height or run.facts.accesses_version is None:
        return topics.with_columns(retention="salience"), empty(EVICTION_FITS)
    observed = shard_evidence(store.ledger, run, ["evidence_id", "observed_at"])
    evidence = run.table("links", EVIDENCE_TOPIC).join(observed, on="evidence_id").select("topic_id", at="observed_at")
    survivor_of = survivors(merges(decisions(store.ledger, run)))
    accesses = shard_accesses(store.ledger, run).filter(~pl.col("failed")).unique("access_id")
    accessed = accesses.select(answering(pl.col("topic_id"), run.table("aliases", ALIASES), survivor_of), "at")
    return with_fitted_retention(topics, evidence, accessed, run.facts.now, run.policy)


def with_fitted_retention(
    topics: pl.DataFrame, evidence: pl.DataFrame, accesses: pl.DataFrame, now: datetime, policy: Policy
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Adds `retention` to topics; the lowest of a scope are archived first.

    Args:
        topics: the columns of `topic_features.features_of`.
        evidence: the evidence of topics (columns topic_id, at).
        accesses: their accesses, failed ones left out (the same columns).
        now: the logical time of the run.
        policy: the bound and the half-lives.

    Returns:
        The topics with `retention`, and the curves that were fitted (columns EVICTION_FITS).
    """
    over = _over(topics, policy)
    known = pl.concat([evidence.with_columns(request=pl.lit(False)), accesses.with_columns(request=pl.lit(True))])
    named = over.select("scope", "topic_id", half_life=value_for("salience_half_life_days", policy))
    events = named.join(known, on="topic_id").sort("scope", "topic_id", "at", "request")
    none = topics.clear().select("topic_id", _fitted=pl.lit(None, dtype=pl.Float64))
    found = [_fit_scope(rows, now, policy) for rows in events.partition_by("scope", maintain_order=True)]
    fitted = pl.concat([none, *(rows for rows, _ in found)])
    joined = topics.with_columns(retention="salience").join(fitted, on="topic_id", how="left", maintain_order="left")
    ranked = joined.with_columns(retention=pl.coalesce("_fitted", "retention")).drop("_fitted")
    return ranked, pl.concat([empty(EVICTION_FITS), *(row for _, row in found)])


def _over(topics: pl.DataFrame, policy: Policy) -> pl.DataFrame:
    active = topics.filter(pl.col("state") == "active")
    return active.filter(pl.len().over("scope") > policy.max_active_topics)


def _fit_scope(events: pl.DataFrame, now: datetime, policy: Policy) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The retention of one scope's topics (columns topic_id, _fitted; empty for the default curve), and its curve."""
    topics = events["topic_id"].rle_id().cast(pl.Int64).to_numpy()
    times = (events["at"].dt.timestamp("us") / _DAY).to_numpy()
    today, half_life = now.timestamp() / 86_400, float(events.select(pl.col("half_life").median()).item())
    fit = fit_curve(topics, times, policy.max_active_topics, today, half_life, events["request"].to_numpy())
    ids = events["topic_id"].unique(maintain_order=True)
    if fit.curve == Curve(half_life, 1.0):
        ids = ids.clear()
    ranks = retention(topics, times, today, fit.curve, int(topics[-1]) + 1)[: len(ids)]
    return pl.DataFrame([ids, pl.Series("_fitted", ranks)]), _row(events["scope"][0], fit)


def _row(scope: str, fit: Fit) -> pl.DataFrame:
    figures = {"hits": fit.hits, "default_hits": fit.default_hits, "requests": fit.requests, "days": fit.days}
    curve = {"half_life_days": fit.curve.half_life_days, "growth": fit.curve.growth}
    return conform(pl.DataFrame([{"scope": scope, **curve, **figures}]), EVICTION_FITS)
