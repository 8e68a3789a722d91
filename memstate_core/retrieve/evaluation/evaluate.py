"""How good answers and context packs are, over questions with marked evidence.

Everything is measured on the served snapshot, without a language model, and nothing is written. Each metric is a mean
over questions, with a 95 per cent percentile bootstrap interval over the questions (Efron and Tibshirani 1993, ch. 13).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from memstate_core.embed.encoder import Encoder
from memstate_core.retrieve.evaluation.recall import Expected, found_share
from memstate_core.retrieve.packs.context import (
    CORE_HEADING,
    EVIDENCE,
    HEADINGS,
    SESSION_HEADING,
    TOPICS,
    WARNING,
    context_pack,
)
from memstate_core.retrieve.query import Question, answer
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.retrieve.routing import AUTO, Policy
from memstate_core.state.graph import TOPIC

RESAMPLES = 2000
LEAST = "irrelevant_injection_rate"
"""The metric of which less is better."""
_ALWAYS = ("core", "session")
"""The kinds of pieces that a pack has whatever is asked: none of them is injected by the search."""
_HEADINGS = {CORE_HEADING, SESSION_HEADING, *HEADINGS.values()}
Count = Callable[[str], int]
Row = dict[str, float]


def metric_names(cuts: Sequence[int]) -> list[str]:
    """All metrics, with recall at these cuts."""
    rates = ("budget_compliance", "evidence_coverage", LEAST, "citation_coverage")
    return [*(f"recall_at_{k}" for k in cuts), *rates]


@dataclass(frozen=True)
class Metric:
    """A mean over questions with its 95 per cent confidence interval, and over how many questions."""

    mean: float
    low: float
    high: float
    questions: int


class Evaluation:
    """Asks questions and scores what is returned.

    Args:
        readers: the snapshots.
        encoder: the model by which they were embedded.
        cache: the embedding cache; None for none.
        count: counts the tokens of a line.
        counted_by: the name of the tokenizer.
    """

    def __init__(
        self, readers: Sequence[SnapshotReader], encoder: Encoder, cache: Path | None, count: Count, counted_by: str
    ) -> None:
        self._readers, self._encoder, self._cache = readers, encoder, cache
        self._count, self._counted_by = count, counted_by
        rows = pl.concat([reader.all_evidence().select("evidence_id", "observation_id", "topic_id").collect()
                          for reader in readers])  # fmt: skip
        self._observation = dict(rows.select("evidence_id", "observation_id").iter_rows())
        self._topic = dict(rows.select("observation_id", "topic_id").iter_rows())

    def scores(self, expected: Expected, budget: int, cuts: Sequence[int]) -> Row:
        """The scores of one question; `evidence_coverage` only if it marks observations, rates only of what is packed.

        Args:
            expected: the question, and what it should find.
            budget: tokens of the pack.
            cuts: the k of recall.
        """
        found, packed = (self._answer(expected, policy) for policy in (None, AUTO))
        pack = context_pack(packed, budget, self._count, counted_by=self._counted_by)
        row: Row = {f"recall_at_{k}": found_share(expected, found, topics=k, evidence=k) for k in cuts}
        row["budget_compliance"] = float(self._tokens(pack["text"]) <= budget)
        if expected.observations:
            row["evidence_coverage"] = self._covered(expected, pack["citations"])
        searched = [cited for cited in pack["citations"] if cited["kind"] not in _ALWAYS]
        if searched:
            row[LEAST] = 1 - sum(self._is_relevant(expected, cited) for cited in searched) / len(searched)
        if pack["citations"]:
            row["citation_coverage"] = self._cited(pack)
        return row

    def unknown(self, questions: Sequence[Expected]) -> list[tuple[str, str]]:
        """The ids that questions mark and no snapshot has, each with the place of its question; none is ever found."""
        marked = [(each.place, one) for each in questions for one in sorted(each.observations)]
        topics = [(each.place, one) for each in questions for one in sorted(each.topics)]
        tables = [
            frame for each in self._readers for frame in (each.graph.read(TOPIC, ["id"])["id"], each.aliases["alias"])
        ]
        known = set(pl.concat(tables)) if topics else set()
        return [
            *((place, f"observation {one}") for place, one in marked if one not in self._topic),
            *((place, f"topic {one}") for place, one in topics if one not in known),
        ]

    def _answer(self, expected: Expected, policy: Policy | None) -> dict[str, Any]:
        question = Question(expected.text, expected.scopes, TOPICS, EVIDENCE, policy=policy)
        return answer(self._readers, self._encoder, self._cache, question)

    def _tokens(self, text: str) -> int:
        """The tokens of a text: those of its lines, and one for each line break."""
        lines = text.split("\n") if text else []
        return sum(map(self._count, lines)) + max(0, len(lines) - 1)

    def _covered(self, expected: Expected, citations: Sequence[Mapping[str, Any]]) -> float:
        """The share of the marked observations that the pack cites, as turns or as the source of a field."""
        cited = {each.get("observation_id") for each in citations}
        cited |= {self._observation.get(one) for each in citations for one in each.get("evidence_ids", [])}
        return len(expected.observations & cited) / len(expected.observations)

    def _is_relevant(self, expected: Expected, cited: Mapping[str, Any]) -> bool:
        """Whether an item is marked, or is of a topic that is marked or holds marked evidence."""
        topics = expected.topics | {self._topic.get(one) for one in expected.observations} - {None}
        return cited.get("observation_id") in expected.observations or cited.get("topic_id") in topics

    def _cited(self, pack: Mapping[str, Any]) -> float:
        """The share of the statements of a pack that end in the number of a citation of something served."""
        served = {each["n"] for each in pack["citations"] if self._is_served(each)}
        lines = pack["text"].split("\n")
        stated = [line for line in lines if line not in _HEADINGS and not line.startswith(WARNING)]
        return sum(any(line.endswith(f" [{n}]") for n in served) for line in stated) / len(stated)

    def _is_served(self, cited: Mapping[str, Any]) -> bool:
        if "observation_id" in cited:
            return cited["observation_id"] in self._topic
        return all(one in self._observation for one in cited.get("evidence_ids", []))


def summarised(rows: Sequence[Row], seed: int) -> dict[str, Metric]:
    """The metrics over all questions, by name.

    Args:
        rows: the scores of each question.
        seed: of the draws of the bootstrap.
    """
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: _metric(np.array([row[name] for row in rows if name in row]), seed) for name in names}


def _metric(values: npt.NDArray[np.float64], seed: int) -> Metric:
    drawn = np.random.default_rng(seed).integers(len(values), size=(RESAMPLES, len(values)))
    low, high = np.percentile(values[drawn].mean(axis=1), (2.5, 97.5))
    return Metric(float(values.mean()), float(low), float(high), len(values))


def missed(metrics: Mapping[str, Metric], thresholds: Mapping[str, float]) -> list[str]:
    """The thresholds that the means do not reach, a sentence each; one without a metric counts as missed."""
    found = []
    for name, bound in thresholds.items():
        if name not in metrics:
            found.append(f"{name}: nothing was measured, expected {bound:.3f}")
            continue
        mean, side = metrics[name].mean, "most" if name == LEAST else "least"
        if mean > bound if name == LEAST else mean < bound:
            found.append(f"{name}: found {mean:.3f}, expected at {side} {bound:.3f}, missed by {abs(mean - bound):.3f}")
    return found
