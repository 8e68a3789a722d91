"""The `duplicate_pairs` step: finds topics that are duplicates, with a probability for each pair.

`matching` scores the candidate pairs of a scope and clusters them without chaining; policy puts each pair in a band:
merge, review by a person, or ignore. Scopes are searched one by one and share nothing: each has its own model, rarity,
sources and share of contradictions, and all models start from constant priors. A scope is searched if its topics, its
verdicts, the policy or the embedding model changed since its last fit.
"""

from __future__ import annotations

import polars as pl
from msgspec import json as msgjson

from memstate_core.model.frames import Schema, empty
from memstate_core.model.ledger_tables import DECISION
from memstate_core.model.step_frames import CALIBRATION, PAIRS
from memstate_core.revise.matching.load_corpus import load_corpus
from memstate_core.revise.merge_memory import merges_in_force
from memstate_core.revise.reliability import reliability
from memstate_core.revise.scope_matches import calibration, counts, held_back, weights
from memstate_core.revise.scope_search import search_scopes
from memstate_core.revise.suggestions import suggested
from memstate_core.run.run import Run
from memstate_core.run.step import StepResult
from memstate_core.run.store import Store
from memstate_core.run.view import decisions as decisions_of
from memstate_core.state.fold.decisions import (
    ATTACHED,
    EXPANDED,
    JUDGED,
    KEPT_APART,
    MATCH_MODEL,
    READMITTED,
    RESHARDED,
    RESTORED,
    UNMERGED,
)

BETWEEN_RUNS = (JUDGED, UNMERGED, KEPT_APART, RESTORED, ATTACHED, EXPANDED, READMITTED, RESHARDED)
"""Decisions that change what can be found in a scope without a change of its topics in the run that follows."""


def find_duplicates(store: Store, run: Run, changed: pl.DataFrame) -> StepResult:
    """Finds duplicates among the active topics.

    Args:
        store: the store.
        run: the run in progress.
        changed: topics that the run has changed so far (columns CHANGES).

    Returns:
        Columns PAIRS: the pairs to merge and to review.
    """
    before = decisions_of(store.ledger, run)
    stale = stale_scopes(before, run, changed)
    if stale is not None and stale.is_empty():
        run.keep_table("calibration", empty(CALIBRATION))
        return StepResult(empty(PAIRS), {"candidates": 0, "merge_band": 0, "review_band": 0})
    corpus = load_corpus(store, run, stale)
    searched = corpus.topics["scope"].unique(maintain_order=True) if stale is None else stale
    merged = merges_in_force(before.filter(pl.col("scope").is_in(searched.implode())))
    found = search_scopes(store, run, corpus, changed, before, searched, merged)
    pairs, by_probability = _joined(PAIRS, [each.pairs for each in found]), calibration([each.found for each in found])
    run.keep_table("calibration", by_probability)
    suggestions = suggested(pairs, before, run.policy, searched)
    tables = {
        "pairs": _shown(pairs, corpus.topics),
        "weights of agreement": weights(found),
        "calibration": by_probability,
        "reliability by verdicts": reliability(before),
        "what held merges back": held_back([each.found for each in found]),
    }
    decided = pl.concat([_joined(DECISION, [each.model(run) for each in found]), suggestions])
    return StepResult(pairs, counts(found), tables, decided)


def _shown(pairs: pl.DataFrame, topics: pl.DataFrame) -> pl.DataFrame:
    """The pairs with the greatest weights, with the titles of both topics."""
    first = pairs.sort("weight", "a", "b", descending=[True, False, False]).head(20)
    for end in ("a", "b"):
        titles = topics.select("id", pl.col("title").alias(f"title_{end}"))
        first = first.join(titles, left_on=end, right_on="id", how="left", maintain_order="left")
    return first.select("title_a", "title_b", "probability", "weight", "band", "scope", "a", "b")


def stale_scopes(before: pl.DataFrame, run: Run, changed: pl.DataFrame) -> pl.Series | None:
    """Scopes that changed since the last fit; None for all, where the embedding model or the policy did."""
    since = unsearched(before, run.facts.embedding_model, run.policy.digest())
    return None if since is None else pl.concat([changed["scope"], since]).drop_nulls().unique().sort()


def unsearched(before: pl.DataFrame, model: str, policy: str) -> pl.Series | None:
    """Scopes of which decisions since the last fit wait for a search; None for all.

    Args:
        before: the decisions of a shard, in order (columns DECISION).
        model: the embedding model.
        policy: the digest of the policy.
    """
    numbered = before.with_row_index("at")
    last = numbered.filter(pl.col("kind") == MATCH_MODEL).tail(1)
    if last.is_empty():
        return None
    recorded = msgjson.decode(last["payload_json"][0])
    if (recorded["embedding_model"], recorded["policy"]) != (model, policy):
        return None
    since = numbered.filter(pl.col("kind").is_in(BETWEEN_RUNS) & (pl.col("at") > last["at"][0]))
    return since["scope"].drop_nulls().unique().sort()


def _joined(schema: Schema, frames: list[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat([empty(schema), *frames])
