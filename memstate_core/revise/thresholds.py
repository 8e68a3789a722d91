"""Merge and review thresholds of pairs, where rules of the policy override the policy's own.

Rules see the topics before the run updates salience: with the salience of the last run, and none for new topics.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memstate_core.forget.topic_features import topic_features
from memstate_core.policy.merge_bands import pair_bands
from memstate_core.policy.rules import Rule
from memstate_core.revise.matching.candidates.blocking import Candidates
from memstate_core.revise.matching.corpus import Corpus
from memstate_core.run.begin import new_accesses
from memstate_core.run.run import Run
from memstate_core.run.store import Store
from memstate_core.state.fold.ladder_state import ladder_state
from memstate_core.state.graph import open_graph

Probabilities = NDArray[np.float64]


@dataclass(frozen=True)
class PairThresholds:
    """Probability thresholds of pairs.

    Attributes:
        merge: the policy's own probability from which a pair is merged.
        review: the policy's own probability from which a pair is suggested for review.
        rules: the policy's rules with the action `merge`.
        ids: the topics of the corpus, by row.
        topics: what those rules can refer to (column id and rule columns), or None without such rules.
    """

    merge: float
    review: float
    rules: tuple[Rule, ...] = ()
    ids: pl.Series | None = None
    topics: pl.DataFrame | None = None

    def of(self, pairs: Candidates) -> tuple[Probabilities, Probabilities]:
        """The probabilities from which each pair is merged, and suggested for review (two arrays, (pairs,))."""
        if self.topics is None or self.ids is None:
            return np.full(len(pairs), self.merge), np.full(len(pairs), self.review)
        named = pl.DataFrame({"a": self.ids.gather(pairs.a), "b": self.ids.gather(pairs.b)})
        bands = pair_bands(named, self.topics, self.rules, (self.merge, self.review))
        return bands["merge_probability"].to_numpy(), bands["review_probability"].to_numpy()

    def decisive(self, pairs: Candidates, probability: Probabilities) -> Probabilities:
        """Probabilities with shifted logits: a pair reaches `merge` exactly where it reaches its rule's threshold."""
        if self.topics is None:
            return probability
        own = self.of(pairs)[0]
        return _logistic(_logit(probability) - _logit(own) + _logit(np.full(len(pairs), self.merge)))


def thresholds_of(
    store: Store, run: Run, corpus: Corpus, changed: pl.DataFrame, decisions: pl.DataFrame
) -> PairThresholds:
    """The thresholds that the run's policy sets for pairs of a corpus.

    Args:
        store: the store.
        run: the run in progress.
        corpus: the topics.
        changed: topics that the run has changed so far (columns CHANGES).
        decisions: recorded decisions so far.
    """
    policy = run.policy
    rules = tuple(rule for rule in policy.rules if rule.do == "merge")
    if not rules:
        return PairThresholds(policy.merge_probability, policy.review_probability)
    used = new_accesses(store, run).filter(~pl.col("failed"))["topic_id"].unique()
    with open_graph(run.graph, read_only=True, buffer_mib=store.settings.store.graph_buffer_mib) as graph:
        topics = topic_features(graph, run, changed["topic_id"].unique(), used, ladder_state(decisions))
    named = topics.rename({"topic_id": "id"})
    return PairThresholds(policy.merge_probability, policy.review_probability, rules, corpus.topics["id"], named)


def _logit(probability: Probabilities) -> Probabilities:
    inside = np.clip(probability, 1e-12, 1 - 1e-12)
    return np.log(inside) - np.log1p(-inside)


def _logistic(weight: Probabilities) -> Probabilities:
    return np.asarray(1 / (1 + np.exp(-weight)))
