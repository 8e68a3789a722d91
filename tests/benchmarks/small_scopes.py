"""Duplicates in small scopes: samples of labelled records, as small as what one user of many has.

A sample has some true pairs and as many other records. It is searched as it is, and with the same records under other
sources: one source for all, two by turns. Such sources say nothing, so what is merged should not depend on them.
Time is that of a search, the median of the samples of a size.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
from deduplication import matched
from labelled import Labelled, read
from numpy.typing import NDArray
from scoring import Labels, pair_keys

from memstate_core.embed.encoder import Encoder
from memstate_core.revise.matching.corpus import Corpus

SOURCES = {"as given": "", "one": "a", "two by turns": "ab"}
"""How the records of a sample are sourced: a letter for each of the sources that take turns; none for their own."""


@dataclass
class Found:
    """What was merged in the samples of a set: true pairs and false ones; and all true pairs there are."""

    true: int = 0
    false: int = 0
    all_true: int = 0


def sample(labelled: Labelled, rows: NDArray[np.int64]) -> Labelled:
    """Some records as a set of their own.

    Args:
        labelled: the records.
        rows: which of them, in ascending order.
    """
    corpus, count = labelled.corpus, len(labelled.corpus)
    place = np.full(count, -1)
    place[rows] = np.arange(len(rows))

    def part(frame: pl.DataFrame) -> pl.DataFrame:
        moved = pl.Series(place[frame["row"].to_numpy()], dtype=frame.schema["row"])
        return frame.filter(moved >= 0).with_columns(row=moved.filter(moved >= 0))

    fields, sources, keys = map(part, (corpus.fields, corpus.sources, corpus.keys))
    a, b = (place[end] for end in np.divmod(labelled.labels.truth, count))
    kept = (a >= 0) & (b >= 0)
    labels = Labels(pair_keys(a[kept], b[kept], len(rows)), labelled.labels.repeats[rows])
    texts = [labelled.texts[row] for row in rows]
    return Labelled(Corpus(corpus.topics[rows], fields, corpus.vectors[rows], sources, keys), texts, labels, "")


def sourced(labelled: Labelled, letters: str) -> Labelled:
    """The same records under sources that take turns, or under their own."""
    if not letters:
        return labelled
    rows = range(len(labelled.corpus))
    sources = pl.DataFrame({"row": rows, "source": [letters[row % len(letters)] for row in rows]})
    return replace(labelled, corpus=replace(labelled.corpus, sources=sources))


def samples(labelled: Labelled, size: int, count: int, seed: int) -> Iterator[Labelled]:
    """Samples with at most `size` records, about half of them in true pairs."""
    chance, records = np.random.default_rng(seed), len(labelled.corpus)
    pairs = np.stack(np.divmod(labelled.labels.truth, records))
    for _ in range(count):
        drawn = pairs[:, chance.permutation(pairs.shape[1])[: size // 4]]
        others = chance.choice(records, min(size // 2, records), replace=False)
        yield sample(labelled, np.unique(np.concatenate([drawn.ravel(), others])))


Counts = dict[tuple[str, str], Found]
"""What was merged, by set and way of sourcing."""


def measured(sets: dict[str, Labelled], sizes: Sequence[int], count: int) -> tuple[Counts, dict[int, float]]:
    """What was merged, and CPU seconds of a search by size."""
    found: Counts = defaultdict(Found)
    seconds: dict[int, list[float]] = defaultdict(list)
    for (name, labelled), size in product(sets.items(), sizes):
        for some in samples(labelled, size, count, seed=size):
            for way, letters in SOURCES.items():
                began = time.process_time()
                result = matched(sourced(some, letters))
                seconds[size].append(time.process_time() - began)
                _count(found[name, way], some, result.pairs.a[result.grouped], result.pairs.b[result.grouped])
    return found, {size: statistics.median(each) for size, each in seconds.items()}


def _count(found: Found, some: Labelled, a: NDArray[np.int64], b: NDArray[np.int64]) -> None:
    true = some.labels.true(a, b)
    found.true += int(true.sum())
    found.false += int((~true & ~some.labels.unlabelled(a, b)).sum())
    found.all_true += len(some.labels.truth)


def report(found: Counts, seconds: dict[int, float]) -> str:
    """Both tables."""
    lines = [f"| set | true pairs | {' | '.join(SOURCES)} |", f"|---|---|{'---|' * len(SOURCES)}"]
    for name in dict.fromkeys(name for name, _ in found):
        ways = [found[name, way] for way in SOURCES]
        merged = " | ".join(f"{each.true:,} true, {each.false:,} false" for each in ways)
        lines.append(f"| {name} | {ways[0].all_true:,} | {merged} |")
    lines += ["", "| records, at most | CPU of a search, ms |", "|---|---|"]
    return "\n".join([*lines, *(f"| {size} | {1000 * each:.0f} |" for size, each in seconds.items())])


def main(given: Sequence[str] | None = None) -> None:
    """Prints both tables."""
    parser = argparse.ArgumentParser(description="Find duplicates in samples of labelled records.")
    parser.add_argument("directories", type=Path, nargs="+", metavar="DIR", help="observations.jsonl[.gz], pairs.csv")
    parser.add_argument("--cache", type=Path, required=True, metavar="FILE", help="keeps embeddings for the next run")
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 30, 60, 120, 250])
    parser.add_argument("--samples", type=int, default=5, help="of each size, from each set")
    args, encoder = parser.parse_args(given), Encoder()
    sets = {directory.resolve().name: read(directory, encoder, args.cache) for directory in args.directories}
    sys.stdout.write(report(*measured(sets, args.sizes, args.samples)) + "\n")


if __name__ == "__main__":
    main()
