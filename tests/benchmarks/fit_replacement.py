"""Fits the coefficients of `memstate_core.retrieve.replacement` on the seen half of the facts of `updates.py`.

    python tests/benchmarks/fit_replacement.py [--seeds 1 3 5]

A pair is one of the first five turns for a question and a later one of the pool; it is a replacement if both state the
fact that is asked for. `average precision` is that of coefficients fitted without the fact they are tried on.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import updates
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score

from memstate_core.model.terms import question_terms
from memstate_core.retrieve.question.present import in_first_person, without_question_words
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.retrieve.replacement import PLACES, TRAITS, pool_rows, traits
from memstate_core.retrieve.scoring import PreparedQuestion, evidence_parts
from memstate_core.retrieve.standard_scores import total
from memstate_core.serve.snapshots.question_encoder import QuestionEncoder


class Pairs(NamedTuple):
    """The pairs of one question, or of many: their facts (n), traits (n x 7), and whether they are replacements (n)."""

    facts: np.ndarray
    traits: np.ndarray
    replaced: np.ndarray


def pairs(reader: SnapshotReader, truth: list[dict[str, Any]], part: str) -> Iterator[Pairs]:
    """The pairs of each question for what holds now about facts of one part."""
    encoder = QuestionEncoder(reader.snapshot.manifest.embedding_model)
    for update in truth:
        if update["part"] == part:
            yield from (_of(reader, encoder, update, text) for text in update["now"])


def _of(reader: SnapshotReader, encoder: QuestionEncoder, update: dict[str, Any], text: str) -> Pairs:
    evidence, terms = reader.evidence(update["scope"]), question_terms(text)
    texts = [text, in_first_person(text, evidence.names.in_question(terms))]
    whole, own = encoder.encode(encoder.questions(texts))
    asked = PreparedQuestion(text, terms, without_question_words(terms), whole, own, dated=True, present=True)
    scores = total(evidence_parts(evidence, asked).values())
    rows = pool_rows(evidence, scores, np.ones(len(scores), dtype=np.bool_))
    found, counts = traits(evidence, scores[rows], rows, PLACES)
    ids = evidence.frame["observation_id"][rows]
    old, new = (
        ids.is_in(given).to_numpy() for given in (update["superseded"], [*update["superseded"], update["newest"]])
    )
    replaced = old[:PLACES, None] & new[None, :]
    return Pairs(np.full(counts.sum(), update["fact"]), found[counts], replaced[counts])


def joined(found: Sequence[Pairs]) -> Pairs:
    """The pairs of many questions."""
    return Pairs(*(np.concatenate(column) for column in zip(*found, strict=True)))


def fitted(known: Pairs) -> LogisticRegression:
    """The regression over all pairs."""
    return LogisticRegression(max_iter=3000).fit(known.traits, known.replaced)


def held_out(known: Pairs) -> np.ndarray:
    """The probability of each pair by the regression over pairs of other facts (n)."""
    found = np.zeros(len(known.facts))
    for fact in np.unique(known.facts):
        here = known.facts == fact
        others = Pairs(*(column[~here] for column in known))
        found[here] = fitted(others).predict_proba(known.traits[here])[:, 1]
    return found


def main(given: Sequence[str] | None = None) -> None:
    """Prints the coefficients, and how well they find replacements."""
    parser = argparse.ArgumentParser(description="Fit how likely a later turn replaced an earlier one.")
    parser.add_argument("--people", type=int, default=15)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 3, 5])
    parser.add_argument("--homes", type=Path, metavar="DIR", help="keep the stores here, and use those that are here")
    args = parser.parse_args(given)
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        opened = [updates.opened(stack, args.homes or Path(scratch), "first", args.people, seed) for seed in args.seeds]
        known = joined([each for reader, truth in opened for each in pairs(reader, truth, "seen")])
    model = fitted(known)
    for name, weight in zip(TRAITS, model.coef_[0], strict=True):
        print(f"{name}: {weight:.2f}")
    print(f"intercept: {model.intercept_[0]:.2f}")
    precision = average_precision_score(known.replaced, held_out(known))
    print(f"pairs: {len(known.facts):,}, replacements: {known.replaced.sum():,}, average precision: {precision:.3f}")


if __name__ == "__main__":
    main()
