"""All pairs of vectors above a cosine: our search beside semhash and an exact product, one after the other.

The vectors are those of `growth.py`: random directions, and one in twenty turned by 20 to 45 degrees from another. Ours
is the search of the matcher's view of meaning, with so many neighbours a vector as it proposes to the comparisons.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import growth
import numpy as np
from measures import Measure
from numpy.typing import NDArray

from memstate_core.embed.encoder import Encoder
from memstate_core.revise.matching.arrays import pair_products
from memstate_core.revise.matching.candidates.blocking import NEIGHBOURS
from memstate_core.revise.matching.candidates.nearest import nearest
from memstate_core.revise.matching.candidates.rough_search import bfloat16_is_fast

NO_SEMHASH = "semhash missing, target not measured"
Keys = NDArray[np.int64]
_BLOCK = 1024


def ours(vectors: NDArray[np.float32], cosine: float) -> Keys:
    """The pairs that our search finds, as a * vectors + b with a < b, sorted."""
    a, b = nearest(vectors, np.arange(len(vectors)), NEIGHBOURS)
    kept = pair_products(vectors, vectors, a, b) >= cosine
    return np.unique(a[kept] * len(vectors) + b[kept])


def exact(vectors: NDArray[np.float32], cosine: float) -> Keys:
    """All pairs, by a product in float32."""
    found = []
    for start in range(0, len(vectors), _BLOCK):
        row, other = np.nonzero(vectors[start : start + _BLOCK] @ vectors[start:].T >= cosine)
        found.append(((row + start) * len(vectors) + other + start)[row < other])
    return np.sort(np.concatenate(found)).astype(np.int64)


def by_semhash(vectors: NDArray[np.float32], cosine: float) -> Keys:
    """The pairs that semhash reports: each vector that it drops with the one that it keeps."""
    from semhash import SemHash

    records = [{"text": str(row)} for row in range(len(vectors))]
    # the model encodes texts only, and there are none to encode
    index = SemHash.from_embeddings(vectors, records, model=Encoder(), columns=["text"])
    filtered = index.self_deduplicate(threshold=cosine).filtered
    pairs = [(int(one.record["text"]), int(one.duplicate_of["text"])) for one in filtered]
    ends = np.sort(np.array(pairs, np.int64).reshape(-1, 2), axis=1)
    return np.unique(ends[:, 0] * len(vectors) + ends[:, 1])


def measured(topics: int, cosine: float, rounds: int = 1) -> list[Measure]:
    """CPU seconds and pair recall of each, and their ratios; without semhash, of the others."""
    vectors = growth.made_corpus(topics, 7)[0].vectors
    methods = {"ours": ours, "exact product": exact} | ({"semhash": by_semhash} if find_spec("semhash") else {})
    bfloat16_is_fast()  # loads torch
    runs = {name: [_timed(method, vectors, cosine) for _ in range(rounds)] for name, method in methods.items()}
    seconds = {name: min(spent for spent, _ in of) for name, of in runs.items()}
    truth = runs["exact product"][0][1]
    recall = {name: float(np.isin(truth, of[0][1]).mean()) for name, of in runs.items()}
    about = f"{topics:,} vectors, cosine {cosine:g}"
    figures = [Measure(f"{about}: pair recall of ours", recall["ours"], "", least=0.99)]
    figures.append(
        Measure(f"{about}: exact product against ours, CPU", seconds["exact product"] / seconds["ours"], "times")
    )
    against = f"{about}: semhash against ours, CPU"
    if "semhash" not in runs:
        figures.append(Measure(against, None, "times", least=5, problem=NO_SEMHASH))
    else:
        figures.append(Measure(against, seconds["semhash"] / seconds["ours"], "times", least=5))
        figures.append(Measure(f"{about}: pair recall of semhash", recall["semhash"], ""))
    return figures + [Measure(f"{about}: {name}, CPU", spent, "s") for name, spent in seconds.items()]


def _timed(method: Callable[[Any, float], Keys], vectors: NDArray[np.float32], cosine: float) -> tuple[float, Keys]:
    began = time.process_time()
    found = method(vectors, cosine)
    return time.process_time() - began, found


def main(given: Sequence[str] | None = None) -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description="Compare searches for all pairs of vectors above a cosine.")
    parser.add_argument("--topics", type=int, default=100_000)
    parser.add_argument("--cosine", type=float, default=0.8)
    args = parser.parse_args(given)
    for each in measured(args.topics, args.cosine):
        sys.stdout.write(f"{each.name}: {each.shown} {each.unit}\n")


if __name__ == "__main__":
    main()
