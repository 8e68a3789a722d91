"""What each part of the score of evidence adds: recall with all of them, less recall without one.

Directories and stores are those of `retrieval.py`. Differences are paired by question, in points, with 95 per cent
bootstrap intervals; where an interval has 0 in it, the part adds nothing that these questions can show.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from ranking import CUTS, Floats, best_first, bootstrapped, scores
from retrieval import for_each_directory, prepared, scope_of

from memstate_core.model.terms import question_terms
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.retrieve.scope_data import EvidenceSlice
from memstate_core.retrieve.scoring import PreparedQuestion, evidence_parts, lent_parts, own_parts
from memstate_core.retrieve.standard_scores import total
from memstate_core.retrieve.turns.speaker_names import without_names
from memstate_core.serve.snapshots.question_encoder import QuestionEncoder
from memstate_core.state.current import current_snapshot
from memstate_core.state.home import Home

Scored = Callable[[EvidenceSlice, PreparedQuestion], Floats]
PARTS = ("turn_words", "window_words", "turn_vector", "window_vector", "length", "asks", "speaker", "date")
LENT = ("session", "topic")


def with_all(evidence: EvidenceSlice, asked: PreparedQuestion) -> Floats:
    """The scores as they are."""
    return total(evidence_parts(evidence, asked).values())


def without_part(left_out: str) -> Scored:
    """The scores without one part; neither a turn nor its session or segment has it."""

    def scored(evidence: EvidenceSlice, asked: PreparedQuestion) -> Floats:
        own = {name: part for name, part in own_parts(evidence, asked).items() if name != left_out}
        lent = lent_parts(evidence, total(own.values()))
        return total((own | {name: part for name, part in lent.items() if name != left_out}).values())

    return scored


def names_kept(evidence: EvidenceSlice, asked: PreparedQuestion) -> Floats:
    """The scores when the question keeps the names of speakers."""
    return with_all(evidence, replace(asked, unnamed=asked.vector))


class Questions:
    """The questions of one directory, prepared once with and once without nicknames."""

    def __init__(self, data: Path, reader: SnapshotReader) -> None:
        self._asked = [json.loads(line) for line in (data / "questions.jsonl").read_text().splitlines()]
        encoder = QuestionEncoder(reader.snapshot.manifest.embedding_model)
        self._slices = {scope: reader.evidence(scope) for scope in {scope_of(each) for each in self._asked}}
        self._plain = {scope: _without_aliases(evidence) for scope, evidence in self._slices.items()}
        self._encoder = encoder

    def __len__(self) -> int:
        return len(self._asked)

    def recall(self, scored: Scored, *, aliases: bool = True) -> Floats:
        """Recall at CUTS of every question (questions x 4)."""
        return np.array([self._one(each, scored, aliases) for each in self._asked])[:, : len(CUTS)]

    def _one(self, question: dict[str, Any], scored: Scored, aliases: bool) -> list[float]:
        evidence = (self._slices if aliases else self._plain)[scope_of(question)]
        text, terms = question["question"], question_terms(question["question"])
        unnamed = without_names(text, evidence.names.in_question(terms))
        whole, rest = self._encoder.encode(self._encoder.questions([text, unnamed]))
        order = best_first(scored(evidence, PreparedQuestion(text, terms, terms, whole, rest, dated=True)))
        ids = evidence.frame["observation_id"]
        return list(scores([ids[int(row)] for row in order[: CUTS[-1]]], set(question["evidence"])))


def _without_aliases(evidence: EvidenceSlice) -> EvidenceSlice:
    plain = replace(evidence)
    plain.__dict__["names"] = replace(evidence.names, aliases={})
    return plain


def report(data: Path, home: Path, seed: int) -> str:
    """The table of one directory."""
    prepared(data, home)
    snapshot = current_snapshot(Home(home), "s0")
    assert snapshot is not None
    with SnapshotReader(snapshot) as reader:
        questions = Questions(data, reader)
        whole = questions.recall(with_all)
        less = {name: questions.recall(without_part(name)) for name in (*PARTS, *LENT)}
        less["names removed from the question"] = questions.recall(names_kept)
        less["nicknames"] = questions.recall(with_all, aliases=False)
    heads = ["part", *(f"@{cut}" for cut in CUTS)]
    lines = [_row(heads), _row(["---"] * len(heads)), _row(["(all)", *(f"{100 * mean:.1f}" for mean in whole.mean(0))])]
    lines += [_row([name, *_differences(whole - recall, seed)]) for name, recall in less.items()]
    return "\n".join((f"### {data.resolve().name}: {len(questions):,} questions", "", *lines))


def _differences(values: Floats, seed: int) -> list[str]:
    found = [bootstrapped(100 * column, seed) for column in values.T]
    return [f"{each.mean:+.1f} ({each.low:+.1f} to {each.high:+.1f})" for each in found]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def main(given: Sequence[str] | None = None) -> None:
    """Prints a table for each directory."""
    for_each_directory(report, "Measure what each part of the score of evidence adds.", given)


if __name__ == "__main__":
    main()
