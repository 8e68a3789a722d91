"""Other methods of finding duplicates, for comparison: a rule, two plain similarities, semhash, Splink."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import polars as pl
from labelled import Labelled, plain
from numpy.typing import NDArray
from scoring import Ints, Ranking, Result, components
from sklearn.feature_extraction.text import TfidfVectorizer

from memstate_core.embed.encoder import Encoder
from memstate_core.revise.matching.corpus import Corpus

STEPS = np.round(np.arange(0.30, 1.0, 0.01), 2)
"""Thresholds that are tried with knowledge of the labels."""
SPLINK_STEPS = (0.95, 0.9)
"""Thresholds of Splink's clusters: that of its documentation, and memstate's own."""
OPTIONAL = ("semhash", "splink")
"""Packages of the extra `bench` without which rows are missing."""
_BLOCK = 1024


@dataclass(frozen=True)
class Row:
    """One line of a table.

    Attributes:
        method: its name.
        result: what it found.
        seconds: how long it took.
        expected: how many false pairs it expects itself, if it has probabilities.
        ranking: its candidates by score, if it has scores.
    """

    method: str
    result: Result
    seconds: float
    expected: float | None = None
    ranking: Ranking | None = None


def same_title(labelled: Labelled) -> list[Row]:
    """Pairs of one scope with the same normalised title, unless both have a field, or a key, that differs."""
    began = time.perf_counter()
    a, b = unopposed(labelled.corpus)
    seconds = time.perf_counter() - began
    return [Row("same title and nothing against it", labelled.labels.judged(a, b), seconds)]


def unopposed(corpus: Corpus) -> tuple[Ints, Ints]:
    """Pairs (a, b) of the rule `same_title`."""
    titles = corpus.topics.select("scope", row=pl.int_range(pl.len(), dtype=pl.Int64), title=plain(pl.col("title")))
    titled = titles.filter(pl.col("title") != "")
    pairs = titled.join(titled, on=["scope", "title"], suffix="_b").filter(pl.col("row") < pl.col("row_b"))
    values = corpus.fields.select("row", "name", value=plain(pl.col("text")))
    keys = corpus.keys.select("row", name=pl.lit(None, pl.String), value="key")
    for known in (values, keys):
        pairs = pairs.join(_differing(pairs, known), on=["row", "row_b"], how="anti")
    return pairs["row"].to_numpy(), pairs["row_b"].to_numpy()


def _differing(pairs: pl.DataFrame, values: pl.DataFrame) -> pl.DataFrame:
    """Pairs for which a value of the same name differs (columns row, row_b)."""
    both = pairs.join(values, on="row").join(
        values, left_on=["row_b", "name"], right_on=["row", "name"], nulls_equal=True, suffix="_b"
    )
    return both.filter(pl.col("value") != pl.col("value_b")).select("row", "row_b")


def cosine(labelled: Labelled) -> list[Row]:
    """Pairs whose embeddings are close, and the components that they form."""
    return _thresholded("MiniLM cosine", lambda: labelled.corpus.vectors, labelled)


def title_cosine(labelled: Labelled) -> list[Row]:
    """Pairs whose titles share letters, and the components that they form."""
    vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 3), dtype=np.float32)
    titles = labelled.corpus.titles
    return _thresholded("TF-IDF 3-gram cosine of titles", lambda: vectorizer.fit_transform(titles), labelled)


def semhash(labelled: Labelled) -> list[Row]:
    """semhash's self-deduplication at its default threshold; a group is what it filters for one record."""
    if find_spec("semhash") is None:
        return []
    from semhash import SemHash

    records = [{"text": text, "row": str(row)} for row, text in enumerate(labelled.texts)]
    began = time.perf_counter()
    index = SemHash.from_embeddings(labelled.corpus.vectors, records, model=Encoder(), columns=["text"])
    filtered = index.self_deduplicate().filtered
    seconds = time.perf_counter() - began
    groups = np.arange(len(records))
    for one in filtered:
        groups[int(one.record["row"])] = int(one.duplicate_of["row"])
    return [Row("semhash, its defaults, MiniLM vectors", labelled.labels.judged_groups(groups), seconds)]


def splink(labelled: Labelled) -> list[Row]:
    """Splink's clusters at two thresholds; expected are the false pairs among the candidates within clusters."""
    if find_spec("splink") is None:
        return []
    from splink_peer import predict

    labels, began = labelled.labels, time.perf_counter()
    found = predict(labelled.corpus)
    seconds = time.perf_counter() - began
    ranking = Ranking.of(found.a, found.b, found.probability, labels)
    rows = []
    for step in SPLINK_STEPS:
        linked = found.probability >= step
        groups = components(found.a[linked], found.b[linked], len(labelled.corpus))
        counted = (groups[found.a] == groups[found.b]) & ~labels.unlabelled(found.a, found.b)
        expected = float((1 - found.probability)[counted].sum())
        rows.append(Row(f"Splink, clusters from {step:.2f}", labels.judged_groups(groups), seconds, expected, ranking))
    return rows


def _thresholded(name: str, rows_of: Callable[[], Any], labelled: Labelled) -> list[Row]:
    """Pairs, then components, each at the threshold with the best F1; choosing it is not timed."""
    labels, began = labelled.labels, time.perf_counter()
    rows = rows_of()
    a, b, similarity = _similar(rows)
    seconds = time.perf_counter() - began
    cuts = [(step, similarity >= step) for step in STEPS]
    pairs = [(step, labels.judged(a[cut], b[cut])) for step, cut in cuts]
    grouped = [(step, labels.judged_groups(components(a[cut], b[cut], rows.shape[0]))) for step, cut in cuts]
    named = ((f"{name}, pairs", pairs), (f"{name}, components", grouped))
    best = [(label, *max(results, key=lambda result: result[1].f1)) for label, results in named]
    ranking = Ranking.of(a, b, similarity, labels)
    return [Row(f"{label} from {step:.2f} *", result, seconds, ranking=ranking) for label, step, result in best]


def _similar(rows: Any) -> tuple[Ints, Ints, NDArray[np.float32]]:
    """All pairs (a, b, cosine), a < b, from the lowest of STEPS on; rows are dense or sparse, of unit length."""
    found = []
    for start in range(0, rows.shape[0], _BLOCK):
        product = rows[start : start + _BLOCK] @ rows.T
        block = np.triu(product if isinstance(product, np.ndarray) else product.toarray(), start + 1)
        a, b = np.nonzero(block >= STEPS[0])
        found.append((a + start, b, block[a, b]))
    return tuple(np.concatenate(part) for part in zip(*found, strict=True))  # type: ignore[return-value]


PEERS = (same_title, splink, cosine, title_cosine, semhash)
