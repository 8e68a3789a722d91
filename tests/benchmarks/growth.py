"""How the search for duplicates grows: synthetic topics of several sizes, one process a size, one table.

The topics are made from a seed: pseudo-words of syllables whose frequencies follow Zipf's law with
exponent 1 in a vocabulary that grows with the square root of the number of topics, titles of three to
eight such words (a sixth with a code), summaries, three fields, and random unit vectors in place of
embeddings, so that no model is needed. About one topic in twenty is written a second time: a few letters
mistyped, words changed, a field dropped or changed, the vector turned by some 20 to 45 degrees. All topics
have one scope and one kind, so that every pair is a candidate.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import resource
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scoring import Labels, Result, pair_keys

from memstate_core.model.frames import empty
from memstate_core.model.ledger_tables import DECISION
from memstate_core.model.step_frames import EVIDENCE_TOPIC
from memstate_core.policy.settings import Policy
from memstate_core.revise.constraints import constraints
from memstate_core.revise.matching import deduplication
from memstate_core.revise.matching.comparison import compared_pairs
from memstate_core.revise.matching.corpus import Corpus

DIMENSIONS = 384
TWIN_SHARE = 0.05
WORDS_PER_ROOT = 60
"""Words of the vocabulary for each unit of the square root of the number of topics."""
TITLE_OFFSET, SUMMARY_OFFSET = 20, 3
"""Mandelbrot's constant: titles have few of the commonest words, summaries many."""
PARTS = {
    "candidates": ((deduplication, "nearest_neighbours"), (deduplication, "within_groups")),
    "comparisons": ((compared_pairs, "_compared"), (compared_pairs, "ranked"), (compared_pairs, "learn_origins")),
    "signs": (
        *((compared_pairs, name) for name in ("signs", "namesakes_across", "in_common", "contradiction")),
        *((deduplication, name) for name in ("coincidences", "decide")),
    ),
    "fit": ((deduplication, "fit"), (deduplication, "score")),
    "groups": ((deduplication, "_groups"),),
}
"""Which functions of which modules a part of the work consists of."""
Words = NDArray[np.str_]


@dataclass(frozen=True)
class Measured:
    """One size: seconds by part, wall and CPU seconds of all, mebibytes at the peak, groups against the truth."""

    topics: int
    candidates: int
    seconds: dict[str, float]
    total: float
    cpu: float
    peak_mib: float
    result: Result


# --- made topics


def made_corpus(topics: int, seed: int) -> tuple[Corpus, NDArray[np.int64]]:
    """Made topics and the keys of their true pairs (see `scoring.pair_keys`)."""
    rng = np.random.default_rng([seed, topics])
    twins = int(topics * TWIN_SHARE)
    origin = np.arange(topics)
    origin[topics - twins :] = rng.choice(topics - twins, twins, replace=False)
    vocabulary = _vocabulary(int(WORDS_PER_ROOT * math.sqrt(topics)), rng)
    titles = _texts(vocabulary, topics - twins, (3, 8), TITLE_OFFSET, rng)
    titles = [_coded(title, rng) if rng.random() < 1 / 6 else title for title in titles]
    summaries = _texts(vocabulary, topics - twins, (10, 24), SUMMARY_OFFSET, rng)
    titles += [_rewritten(titles[row], vocabulary, rng, letters=0.5, words=0.4) for row in origin[topics - twins :]]
    summaries += [_rewritten(summaries[row], vocabulary, rng, letters=1, words=3) for row in origin[topics - twins :]]
    frame = _topics(titles, summaries, rng)
    fields, vectors = _fields(vocabulary, origin, rng), _vectors(origin, topics - twins, rng)
    nothing = {"row": pl.Int64, "source": pl.String, "key": pl.String}
    sources, keys = (pl.DataFrame(schema={name: nothing[name] for name in ("row", of)}) for of in ("source", "key"))
    return Corpus(frame, fields, vectors, sources, keys), pair_keys(origin[-twins:], np.arange(topics)[-twins:], topics)


def _topics(titles: list[str], summaries: list[str], rng: np.random.Generator) -> pl.DataFrame:
    """Topics of one scope and kind, made at random moments of two years."""
    ids = [f"topic-{row:09}" for row in range(len(titles))]
    seconds = pl.Series(rng.integers(2 * 365 * 86_400, size=len(titles)))
    frame = pl.DataFrame({"id": ids, "title": titles, "summary": summaries, "seconds": seconds})
    created = pl.lit(datetime(2024, 1, 1, tzinfo=UTC)) + pl.duration(seconds="seconds")
    return frame.select(
        "id", "title", "summary", scope=pl.lit("user:made"), topic_kind=pl.lit("note"), created_at=created
    )


def _vocabulary(size: int, rng: np.random.Generator) -> Words:
    """Pseudo-words of two to four syllables, the frequent ones shorter."""
    starts = ["", *"bcdfghjklmnprstvwz", "st", "tr", "pl", "ch", "sh", "br", "gr", "cl"]
    ends = ["", "", "", "n", "r", "s", "l", "t", "m", "nd", "ck", "st"]
    syllables = np.array([start + vowel + end for start in starts for vowel in "aeiou" for end in sorted(set(ends))])
    odds = 1 / np.arange(1, len(syllables) + 1) ** 0.7
    parts = rng.permutation(syllables)[rng.choice(len(syllables), (2 * size, 4), p=odds / odds.sum())]
    parts[rng.random(len(parts)) < 0.5, 3], parts[rng.random(len(parts)) < 0.4, 2] = "", ""
    joined = np.unique(["".join(row) for row in parts])
    return np.array(sorted(rng.permutation(joined)[:size], key=len))


def _drawn(vocabulary: Words, count: int, offset: int, rng: np.random.Generator) -> Words:
    """Words by Zipf's law with exponent 1, in Mandelbrot's form: the first so many ranks are much alike."""
    ranks = np.cumsum(1 / (offset + np.arange(1, len(vocabulary) + 1)))
    return np.asarray(vocabulary[np.searchsorted(ranks, rng.random(count) * ranks[-1])])


def _texts(vocabulary: Words, count: int, lengths: tuple[int, int], offset: int, rng: np.random.Generator) -> list[str]:
    sizes = rng.integers(lengths[0], lengths[1] + 1, count)
    drawn = np.split(_drawn(vocabulary, int(sizes.sum()), offset, rng), np.cumsum(sizes)[:-1])
    return [" ".join(row) for row in drawn]


def _coded(title: str, rng: np.random.Generator) -> str:
    letters = "".join(rng.choice(list("ABCDEFGHKLMNPRSTUVWX"), 2))
    return f"{title} {letters}-{rng.integers(100, 10_000)}"


def _rewritten(text: str, vocabulary: Words, rng: np.random.Generator, *, letters: float, words: float) -> str:
    """The text with about so many letters mistyped and so many words replaced, dropped or added."""
    row = text.split(" ")
    for _ in range(rng.poisson(words)):
        at, other = int(rng.integers(len(row))), str(_drawn(vocabulary, 1, TITLE_OFFSET, rng)[0])
        new = [[other], [], [row[at], other]][rng.integers(3)]
        row[at : at + 1] = new if len(row) > 1 or new else [other]
    for _ in range(rng.poisson(letters)):
        at = int(rng.integers(len(row)))
        place = int(rng.integers(len(row[at])))
        row[at] = row[at][:place] + str(rng.choice(list("aeinrst"))) + row[at][place + 1 :]
    return " ".join(row)


def _fields(vocabulary: Words, origin: NDArray[np.int64], rng: np.random.Generator) -> pl.DataFrame:
    """An owner, a place and an amount of most topics; a tenth of a twin's values are other ones."""
    count = len(origin)
    own = {"owner": rng.integers(300, size=count), "place": rng.integers(2000, size=count)}
    own["amount"] = np.exp(rng.normal(6, 2, count)).astype(np.int64)
    parts = []
    for name, values in own.items():
        values = np.where(rng.random(count) < 0.9, values[origin], values)
        texts = values.astype(str) if name == "amount" else vocabulary[values % len(vocabulary)]
        kept = np.flatnonzero(rng.random(count) < 0.8)
        parts.append(pl.DataFrame({"row": kept, "text": texts[kept]}).with_columns(name=pl.lit(name)))
    number = pl.col("text").cast(pl.Float64, strict=False)
    numbered = pl.concat(parts).select("row", "name", "text", number=number, day=pl.lit(None, pl.Float64))
    return numbered.sort("row", "name")


def _vectors(origin: NDArray[np.int64], first: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Random unit vectors, a twin's 20 to 45 degrees from that of its origin."""
    vectors = _unit(rng.standard_normal((len(origin), DIMENSIONS), dtype=np.float32))
    turned = np.tan(np.radians(rng.uniform(20, 45, len(origin) - first))).astype(np.float32)
    vectors[first:] = _unit(vectors[origin[first:]] + turned[:, None] * vectors[first:])
    return vectors


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)


# --- measuring


def measure(topics: int, seed: int) -> Measured:
    """Makes so many topics and looks for their duplicates; the peak is that of the whole process."""
    corpus, truth = made_corpus(topics, seed)
    decided = empty(DECISION)
    began, began_cpu = time.perf_counter(), time.process_time()
    with _timed() as seconds:
        limits = constraints(decided, empty(EVIDENCE_TOPIC))
        found = deduplication.deduplicate(corpus, limits, sure=Policy().merge_probability)
    total, cpu = time.perf_counter() - began, time.process_time() - began_cpu
    parts = {part: sum(seconds[name] for _, name in functions) for part, functions in PARTS.items()}
    result = Labels.complete(truth, topics).judged_groups(found.groups)
    return Measured(topics, len(found.pairs), parts, total, cpu, _peak_mib(), result)


@contextmanager
def _timed() -> Iterator[dict[str, float]]:
    """Seconds spent in each of the functions of PARTS while the block runs."""
    seconds: dict[str, float] = defaultdict(float)
    originals = [(*place, getattr(*place)) for functions in PARTS.values() for place in functions]
    for module, name, function in originals:
        setattr(module, name, _clocked(function, name, seconds))
    try:
        yield seconds
    finally:
        for module, name, function in originals:
            setattr(module, name, function)


def _clocked(function: Callable[..., Any], name: str, seconds: dict[str, float]) -> Callable[..., Any]:
    def run(*args: Any, **named: Any) -> Any:
        began = time.perf_counter()
        try:
            return function(*args, **named)
        finally:
            seconds[name] += time.perf_counter() - began

    return run


def _peak_mib() -> float:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


# --- table


def row(measured: Measured, before: Measured | None) -> str:
    """One row of the table."""
    result = measured.result
    numbers = [
        *(f"{measured.seconds[part]:.1f}" for part in PARTS),
        f"{measured.total:.1f}",
        f"{measured.cpu:.1f}",
        "" if before is None else f"{_exponent(before, measured):.2f}",
        f"{measured.peak_mib:,.0f}",
        f"{result.precision:.4f}",
        f"{result.recall:.4f}",
    ]
    return f"| {measured.topics:,} | {measured.candidates:,} | {' | '.join(numbers)} |"


def _exponent(before: Measured, after: Measured) -> float:
    """With which power of the number of topics the CPU time grew."""
    return math.log(after.cpu / before.cpu) / math.log(after.topics / before.topics)


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Look for duplicates among made topics of several sizes.")
    parser.add_argument("topics", type=int, nargs="+", metavar="TOPICS", help="how many topics, smallest first")
    parser.add_argument("--seed", type=int, default=7)
    found = parser.parse_args(given)
    if min(found.topics) < 100 or found.seed < 0 or sorted(set(found.topics)) != found.topics:
        parser.error("expected sizes of at least 100, each larger than the one before, and a seed of 0 or more")
    return found


def main(given: Sequence[str] | None = None) -> None:
    """Measures the sizes one after the other and prints the table row by row."""
    args = _arguments(given)
    head = [
        "topics",
        "candidate pairs",
        *PARTS,
        "total seconds",
        "CPU seconds",
        "exponent",
        "peak MiB",
        "precision",
        "recall",
    ]
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}", flush=True)
    before: Measured | None = None
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawned, max_tasks_per_child=1) as pool:
        for topics in args.topics:
            measured = pool.submit(measure, topics, args.seed).result()
            print(row(measured, before), flush=True)
            before = measured


if __name__ == "__main__":
    main()
