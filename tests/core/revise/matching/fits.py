"""Models fitted on all pairs of small corpora, with their scores."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from hypothesis import strategies as st

from memstate_core.model.frames import empty
from memstate_core.revise.matching.candidates.blocking import Candidates
from memstate_core.revise.matching.comparison.comparisons import Compared, compare, ranked
from memstate_core.revise.matching.comparison.sources import Origins, SourceRelations, learn_origins
from memstate_core.revise.matching.corpus import Corpus
from memstate_core.revise.matching.earlier_merges import MERGED_LEVELS
from memstate_core.revise.matching.fit.fellegi_sunter import MatchModel, Reals, Scored, fit, score
from memstate_core.revise.matching.fit.priors import levels_of
from tests.core.revise.matching.corpora import corpus, every_pair

Topic = dict[str, Any]


@dataclass(frozen=True)
class Fitted:
    """A model fitted on all pairs of a corpus, and their scores."""

    of: Corpus
    pairs: Candidates
    compared: Compared
    relations: SourceRelations
    model: MatchModel
    scored: Scored

    def probability(self, one: str, other: str) -> float:
        """Of two topics, by id."""
        ids = self.of.topics["id"].to_list()
        a, b = sorted((ids.index(one), ids.index(other)))
        return float(self.scored.probability[(self.pairs.a == a) & (self.pairs.b == b)][0])

    def weights(self, name: str) -> Reals:
        """By stratum and level."""
        table = np.array(self.model.weights)[self.model.comparisons.index(name)]
        return np.asarray(table[:, : levels_of(name)])


def fitted(
    topics: Sequence[Topic], *, distinct: bool = False, merged: pl.DataFrame | None = None, different: Any = None
) -> Fitted:
    """A fit on all pairs, with sources that are distinct or not."""
    of = corpus(topics)
    pairs = every_pair(of)
    plain = compare(of, pairs)
    member = learn_origins(of, pairs, plain.rankings, np.zeros(len(pairs), bool), np.zeros(len(of), np.int64)).member
    relations = Origins(member, np.full(member.shape[1], 0.0 if distinct else 1.0)).relations(pairs)
    compared = ranked(plain, pairs, ~relations.same, len(of))
    apart = np.zeros(len(pairs), bool) if different is None else different
    model = fit(compared, relations, apart, empty(MERGED_LEVELS) if merged is None else merged, 0)
    return Fitted(of, pairs, compared, relations, model, score(model, compared, relations))


def shop(count: int = 40, seed: int = 5) -> list[Topic]:
    """Things listed by two sources, the second with small errors; things share words, makers and prices."""
    chance = random.Random(seed)
    stock = ["".join(chance.choices("abcdefghijklm", k=6)) for _ in range(60)]
    rows: list[Topic] = []
    for number in range(count // 2):
        title = f"{' '.join(chance.sample(stock, 3))} {chance.randint(10, 99)}"
        fields = {"maker": chance.choice(stock[:8]), "price": chance.randint(10, 500)}
        summary = " ".join(chance.sample(stock, 8))
        one = {"id": f"a{number:03}", "title": title, "summary": summary, "fields": fields, "sources": ["crm"]}
        slip = {"title": title.replace("a", "e", 1), "fields": fields | {"price": fields["price"] + number % 2}}
        rows += [one, one | slip | {"id": f"b{number:03}", "sources": ["erp"]}]
    return rows


drawn_topics = st.fixed_dictionaries(
    {
        "title": st.sampled_from(["Acme renewal", "Acme renewal 7", "Acme renewals 8", "Plan B", None]),
        "summary": st.sampled_from([None, "signed in the northern office", "lost in the southern office"]),
        "fields": st.dictionaries(st.sampled_from(["owner", "year"]), st.sampled_from(["Aya", 1999, 2000]), max_size=2),
        "sources": st.sampled_from([["crm"], ["erp"], []]),
    }
)
stores = st.lists(drawn_topics, max_size=8)
