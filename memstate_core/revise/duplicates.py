"""The `duplicate_pairs` step: finds topics that are duplicates, with a probability for each pair.

`matching` scores the candidate pairs and clusters them without chaining; policy puts each pair in a band:
merge, review by a person, or ignore. The step does nothing if neither topics nor policy have changed since the
last fit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from msgspec import json as msgjson

from memstate_core.model.frames import (
    CALIBRATION,
    DECISION,
    EVIDENCE_TOPIC,
    MERGE_BAND,
    PAIRS,
    REVIEW_BAND,
    conform,
    empty,
    project,
)
from memstate_core.revise.constraints import constraints, verdict_levels
from memstate_core.revise.matching.blocking import all_pairs, completeness
from memstate_core.revise.matching.corpus import Corpus
from memstate_core.revise.matching.deduplication import Deduplicated, deduplicate
from memstate_core.revise.matching.fellegi_sunter import contributions, explained
from memstate_core.revise.matching.load_corpus import load_corpus
from memstate_core.revise.suggestions import suggested
from memstate_core.revise.thresholds import Probabilities, thresholds_of
from memstate_core.run.run import Run
from memstate_core.run.step import StepResult
from memstate_core.run.store import Store
from memstate_core.run.view import decisions as decisions_of
from memstate_core.state.decisions import MATCH_MODEL

HELD_BACK = (
    "not enough besides the title agrees",
    "each title has words that the other lacks",
    "only one title has a number",
    "values of a field contradict each other",
    "the summaries differ in a word or number",
)
"""Why likely pairs are not merged, by code of `siblings.REASONS`."""


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
    if changed.is_empty() and _is_fitted(before, run):
        run.keep_table("calibration", empty(CALIBRATION))
        return StepResult(empty(PAIRS), {"candidates": 0, "merge_band": 0, "review_band": 0})
    corpus = load_corpus(store, run)
    limits = constraints(before, run.table("links", EVIDENCE_TOPIC))
    thresholds = thresholds_of(store, run, corpus, changed, before)
    found = deduplicate(corpus, limits, verdict_levels(before), sure=thresholds.merge, decisive=thresholds.decisive)
    pairs = _banded(corpus, found, thresholds.of(found.pairs)[1])
    by_probability = calibration(found)
    run.keep_table("calibration", by_probability)
    decided = pl.concat([_model(found, run), suggested(pairs, before, corpus.topics, run.policy)])
    tables = {
        "pairs": pairs.drop("features").sort("weight", descending=True).head(20),
        "weights of agreement": _weights(found),
        "calibration": by_probability,
        "what held merges back": held_back(found),
    }
    return StepResult(pairs, _counts(corpus, found, pairs), tables, decided)


def calibration(found: Deduplicated) -> pl.DataFrame:
    """Pairs by probability (columns CALIBRATION)."""
    edges = np.array([0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.97, 0.99])
    lower = edges[np.digitize(found.scored.probability, edges) - 1]
    rows = pl.DataFrame({"probability_from": lower, "merged": found.grouped, "wrong": 1 - found.scored.probability})
    expected = pl.col("wrong").filter("merged").sum().round(2)
    grouped = rows.group_by("probability_from").agg(pl.col("merged").sum(), pairs=pl.len(), expected_false=expected)
    return conform(grouped.sort("probability_from", descending=True), CALIBRATION)


def held_back(found: Deduplicated) -> pl.DataFrame:
    """Likely pairs that are not merged, by reason (columns reason, pairs)."""
    held = (found.scored.probability >= found.sure) & ~found.grouped & ~found.apart
    abstained = f"abstained: {found.decision.contradicted:.0%} of likely links contradict each other"
    reasons = pl.Series([HELD_BACK[int(code)] for code in found.contradicts], dtype=pl.String)
    by_pair = pl.DataFrame({"reason": reasons, "abstained": found.decision.held_back, "held": held})
    reason = pl.when("abstained").then(pl.lit(abstained)).otherwise("reason")
    return by_pair.filter("held").select(reason=reason).group_by("reason").agg(pairs=pl.len()).sort("reason")


def _is_fitted(before: pl.DataFrame, run: Run) -> bool:
    """Whether the last fit used this embedding model and policy."""
    last = before.filter(pl.col("kind") == MATCH_MODEL).tail(1)
    if last.is_empty():
        return False
    recorded = msgjson.decode(last["payload_json"][0])
    return (recorded["embedding_model"], recorded["policy"]) == (run.facts.embedding_model, run.policy.digest())


def _banded(corpus: Corpus, found: Deduplicated, review: Probabilities) -> pl.DataFrame:
    """The pairs above the ignore band (columns PAIRS); a pair within one group is in the merge band.

    Args:
        corpus: the topics.
        found: the pairs and their groups.
        review: the probability from which each pair is suggested for review (pairs,).
    """
    kept = np.flatnonzero(found.grouped | (found.scored.probability >= review))
    ids = corpus.topics["id"]
    frame = pl.DataFrame({
        "row": kept,
        "a": ids.gather(found.pairs.a[kept]),
        "b": ids.gather(found.pairs.b[kept]),
        "scope": corpus.topics["scope"].gather(found.pairs.a[kept]),
        "probability": found.scored.probability[kept],
        "weight": found.scored.weight[kept],
        "band": np.where(found.grouped[kept], MERGE_BAND, REVIEW_BAND),
    })  # fmt: skip
    joined = frame.join(_features(found, kept), on="row", how="left", maintain_order="left")
    swapped = pl.col("a") > pl.col("b")
    ends = {"a": pl.when(swapped).then("b").otherwise("a"), "b": pl.when(swapped).then("a").otherwise("b")}
    return project(joined.with_columns(**ends), PAIRS).sort("a", "b")


def _features(found: Deduplicated, kept: np.typing.NDArray[np.int64]) -> pl.DataFrame:
    """The level and weight of each comparison (columns row, features)."""
    compared = found.compared
    chosen = np.isin(compared.pair, kept)
    weight = contributions(found.model, compared)[chosen]
    rows = pl.DataFrame({
        "row": compared.pair[chosen],
        "name": pl.Series(compared.names).gather(compared.comparison[chosen]),
        "value": compared.level[chosen].astype(np.float64),
        "weight": weight.round(3),
    })  # fmt: skip
    return rows.group_by("row", maintain_order=True).agg(features=pl.struct("name", "value", "weight"))


def _model(found: Deduplicated, run: Run) -> pl.DataFrame:
    """The fitted model as a decision, with the embedding model and policy that it was fitted for."""
    document: dict[str, Any] = {
        "embedding_model": run.facts.embedding_model,
        "policy": run.policy.digest(),
        "pairs": found.model.pairs,
        "match_rate": round(found.model.match_rate, 6),
        "sources_distinct": int(found.origins.distinct.sum()),
        "weights": explained(found.model),
    }
    row = {
        "kind": MATCH_MODEL,
        "payload_json": msgjson.encode(document).decode(),
        "reason": "fitted on tonight's pairs",
    }
    return project(pl.DataFrame([row]), DECISION, nulls=("scope", "topic_id", "evidence_ids"))


def _weights(found: Deduplicated) -> pl.DataFrame:
    """Weights where titles are alike, from the least agreement to the most."""
    rows = [
        {"comparison": name, "weights": " ".join(f"{weight:.1f}" for weight in strata[-1])}
        for name, strata in explained(found.model).items()
    ]
    return pl.DataFrame(rows, schema={"comparison": pl.String, "weights": pl.String})


def _counts(corpus: Corpus, found: Deduplicated, pairs: pl.DataFrame) -> dict[str, int | float]:
    every, share = all_pairs(corpus), completeness(found.pairs.seen_by, found.scored.probability)
    counts: dict[str, int | float] = {
        "topics": len(corpus),
        "candidates": len(found.pairs),
        "merge_band": pairs.filter(pl.col("band") == MERGE_BAND).height,
        "review_band": pairs.filter(pl.col("band") == REVIEW_BAND).height,
        "abstained": int((found.decision.held_back & ~found.grouped).sum()),
        "contradicted": int(((found.contradicts > 0) & (found.scored.probability >= 0.5) & ~found.grouped).sum()),
        "kept_apart": int((found.apart & (found.scored.probability >= 0.5)).sum()),
        "reduction_ratio": round(1 - len(found.pairs) / every, 6) if every else 0.0,
        "sources_distinct": int(found.origins.distinct.sum()),
    }
    return counts | ({"pair_completeness_estimate": round(share, 4)} if share is not None else {})
