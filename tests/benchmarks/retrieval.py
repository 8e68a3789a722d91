"""Evidence retrieval on labelled conversations: ours by stage, beside BM25, the encoder, and their plain fusions.

Each directory has `turns.jsonl` (observations) and `questions.jsonl` (`question`, `scope`, `evidence`: the
observation ids of the turns that answer it). The turns are imported and one night is run by the real program; then
every method ranks the turns of each question's scope, one question at a time, in this process. The plain methods see
the same turns, terms and vectors as ours: BM25 (k1 1.2, b 0.75) over single turns, the cosine of single turns, the sum
of both standardised, and their reciprocal ranks. Nothing was fitted to the questions.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from ranking import CUTS, Floats, best_first, bootstrapped, reciprocal_ranks, scores, z_scores
from scipy.sparse import csr_array

from memstate_core.model.terms import question_terms, terms
from memstate_core.retrieve.query import STAGES, Question, answer
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.serve.snapshots.question_encoder import QuestionEncoder
from memstate_core.state.current import current_snapshot
from memstate_core.state.home import Home

NOW = "2024-06-01T00:00:00Z"
K1, B = 1.2, 0.75
OURS = {
    "ours: words": frozenset[str](),
    "ours: + semantic": frozenset({"semantic"}),
    "ours: + structural": frozenset({"semantic", "structural"}),
    "ours: + temporal (all)": STAGES,
}
Ranker = Callable[[str, str], Sequence[str]]
"""From the text of a question and its scope to observation ids, best first."""


class Bm25:
    """BM25 over single turns, as in `memstate_core.retrieve.index.bm25`, written again in a few lines.

    Args:
        texts: the documents (n).
    """

    def __init__(self, texts: pl.Series) -> None:
        found = terms(texts.to_frame("text").with_row_index("row"))
        counts = found.group_by("row", "term").agg(count=pl.len())
        self._columns = {term: at for at, term in enumerate(counts["term"].unique().sort())}
        row = counts["row"].to_numpy()
        column = counts["term"].replace_strict(self._columns, return_dtype=pl.Int64).to_numpy()
        count = counts["count"].to_numpy().astype(np.float64)
        length = np.bincount(row, count, minlength=len(texts))
        frequency = np.bincount(column, minlength=len(self._columns))
        idf = np.log(1 + (len(texts) - frequency + 0.5) / (frequency + 0.5))
        damped = count / (count + K1 * (1 - B + B * length[row] / length.mean()))
        self._weights = csr_array((idf[column] * damped, (row, column)), shape=(len(texts), len(self._columns))).tocsc()

    def scores(self, question: str) -> Floats:
        """The score of every document (n)."""
        asked = [self._columns[term] for term in question_terms(question) if term in self._columns]
        return np.asarray(self._weights[:, asked].sum(axis=1)).ravel()


@dataclass(frozen=True)
class Turns:
    """The turns of one scope: their ids, words and unit vectors (n x 384)."""

    ids: list[str]
    bm25: Bm25
    vectors: np.ndarray

    @classmethod
    def of(cls, reader: SnapshotReader, scope: str) -> Turns:
        """The content of a snapshot for a scope."""
        evidence = reader.evidence(scope)
        return cls(
            evidence.frame["observation_id"].to_list(),
            Bm25(evidence.frame["text"].fill_null("")),
            np.ascontiguousarray(evidence.vectors[evidence.vector_rows]),
        )


class Methods:
    """All methods on one snapshot; `asked_at` is the time of asking, to which relative dates refer."""

    def __init__(self, reader: SnapshotReader, encoder: QuestionEncoder, asked_at: datetime | None = None) -> None:
        self._reader, self._encoder, self._asked_at = reader, encoder, asked_at
        self._turns = {scope: Turns.of(reader, scope) for scope in reader.scopes}

    @cached_property
    def rankers(self) -> dict[str, Ranker]:
        """Each method by its name, the plain ones first."""
        ours = {name: self._ours(stages) for name, stages in OURS.items()}
        return self.plain | ours

    @cached_property
    def plain(self) -> dict[str, Ranker]:
        """The methods that ours are compared with."""
        return {
            "BM25 alone": self._by(self._bm25),
            "encoder alone": self._by(self._cosine),
            "sum of standardised scores": self._by(lambda *asked: self._fused(z_scores, asked)),
            "reciprocal-rank fusion": self._by(lambda *asked: self._fused(reciprocal_ranks, asked)),
        }

    def _bm25(self, question: str, turns: Turns) -> Floats:
        return turns.bm25.scores(question)

    def _cosine(self, question: str, turns: Turns) -> Floats:
        return (turns.vectors @ self._encoder.encode(self._encoder.questions([question]))[0]).astype(np.float64)

    def _fused(self, comparable: Callable[[Floats], Floats], asked: tuple[str, Turns]) -> Floats:
        return comparable(self._bm25(*asked)) + comparable(self._cosine(*asked))

    def _by(self, scored: Callable[[str, Turns], Floats]) -> Ranker:
        def rank(question: str, scope: str) -> Sequence[str]:
            turns = self._turns[scope]
            order = best_first(scored(question, turns))
            return [turns.ids[row] for row in order[: CUTS[-1]]]

        return rank

    def _ours(self, stages: frozenset[str]) -> Ranker:
        def rank(question: str, scope: str) -> Sequence[str]:
            asked = Question(question, (scope,), evidence_k=CUTS[-1], stages=stages, asked_at=self._asked_at)
            answered = answer([self._reader], self._encoder, None, asked)
            return [each["observation_id"] for each in answered["evidence"]]

        return rank


@dataclass(frozen=True)
class Measured:
    """One method: recall at CUTS and reciprocal rank of each question (questions x 5), milliseconds of each."""

    scores: Floats
    milliseconds: Floats


def measured(rank: Ranker, questions: Sequence[dict[str, Any]]) -> Measured:
    """Asks every question once, after one that is not counted."""
    found, spent = [], []
    rank(questions[0]["question"], scope_of(questions[0]))
    for question in questions:
        began = time.perf_counter()
        ranked = rank(question["question"], scope_of(question))
        spent.append(1000 * (time.perf_counter() - began))
        found.append(scores(ranked, set(question["evidence"])))
    return Measured(np.array(found), np.array(spent))


def scope_of(question: dict[str, Any]) -> str:
    """The scope of a question as it is written."""
    return f"{question['scope']['type']}:{question['scope']['id']}"


# --- tables


def table(results: dict[str, Measured], seed: int) -> str:
    """Per cent of marked turns found, mean reciprocal rank, and milliseconds, a line a method."""
    heads = ["method", *(f"recall@{k}" for k in CUTS), "MRR", "p50 ms", "p99 ms"]
    lines = [_row(heads), _row(["---"] * len(heads))]
    for name, result in results.items():
        times = [f"{np.percentile(result.milliseconds, at):.1f}" for at in (50, 99)]
        lines.append(_row([name, *_intervals(result.scores, seed), *times]))
    return "\n".join(lines)


def differences(results: dict[str, Measured], plain: Iterable[str], seed: int) -> str:
    """Each of ours less the best plain method at that measure, question by question."""
    plain = list(plain)
    best = [max(plain, key=lambda name: results[name].scores[:, at].mean()) for at in range(len(CUTS) + 1)]
    rival = np.column_stack([results[name].scores[:, at] for at, name in enumerate(best)])
    heads = ["less the best plain method", *(f"recall@{k}" for k in CUTS), "MRR"]
    lines = [_row(heads), _row(["---"] * len(heads)), _row(["(which is)", *best])]
    lines += [
        _row([name, *_intervals(result.scores - rival, seed, "+")])
        for name, result in results.items()
        if name not in plain
    ]
    return "\n".join(lines)


def _intervals(values: Floats, seed: int, sign: str = "") -> list[str]:
    found = [bootstrapped(100 * column, seed) for column in values.T]
    return [f"{each.mean:{sign}.1f} ({each.low:{sign}.1f} to {each.high:{sign}.1f})" for each in found]


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


# --- command line


def prepared(data: Path, home: Path) -> float:
    """Imports the turns and runs one night; answers the seconds. A home that has a snapshot is taken as it is."""
    if current_snapshot(Home(home), "s0") is not None:
        return 0.0
    began = time.perf_counter()
    program = [sys.executable, "-m", "memstate_pipeline", "--home", str(home)]
    for command in (["import", str(data / "turns.jsonl")], ["maintain", "--now", NOW]):
        subprocess.run([*program, *command, "--json"], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def report(data: Path, home: Path, seed: int) -> str:
    """Both tables of one directory."""
    questions = [json.loads(line) for line in (data / "questions.jsonl").read_text().splitlines()]
    seconds = prepared(data, home)
    with ExitStack() as stack:
        snapshot = current_snapshot(Home(home), "s0")
        assert snapshot is not None
        reader = stack.enter_context(SnapshotReader(snapshot))
        methods = Methods(reader, QuestionEncoder(snapshot.manifest.embedding_model, cached=1))
        results = {name: measured(rank, questions) for name, rank in methods.rankers.items()}
        topics, turns = snapshot.manifest.counts["active"], reader.all_evidence().select(pl.len()).collect().item()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    head = f"### {data.resolve().name}: {len(questions):,} questions, {turns:,} turns, {topics:,} topics"
    made = f"Import and night: {seconds:.0f} s. " if seconds else ""
    notes = f"{made}Peak memory of the asking process: {peak:,.0f} MiB, the model included."
    return "\n\n".join((head, notes, table(results, seed), differences(results, methods.plain, seed)))


def for_each_directory(
    report: Callable[[Path, Path, int], str], description: str, given: Sequence[str] | None = None
) -> None:
    """Reads the arguments and prints a report for each directory.

    Args:
        report: makes it of the directory, the home of its store, and the seed of the bootstrap.
        description: what `--help` says of the script.
        given: the arguments; those of the process without it.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("directories", type=Path, nargs="+", metavar="DIR", help="has turns.jsonl and questions.jsonl")
    parser.add_argument("--seed", type=int, default=7, help="of the bootstrap")
    parser.add_argument("--homes", type=Path, metavar="DIR", help="keep the stores here, and use those that are here")
    args = parser.parse_args(given)
    with tempfile.TemporaryDirectory() as scratch:
        for data in args.directories:
            home = (args.homes or Path(scratch)) / data.resolve().name
            home.mkdir(parents=True, exist_ok=True)
            print(report(data, home, args.seed), end="\n\n", flush=True)


def main(given: Sequence[str] | None = None) -> None:
    """Prints two tables for each directory."""
    for_each_directory(report, "Compare methods of finding evidence on labelled conversations.", given)


if __name__ == "__main__":
    main()
