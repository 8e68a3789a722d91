"""Other methods of finding duplicates, for comparison: a rule, two plain similarities, semhash, Splink."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
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
        seconds: CPU time that it took.
        expected: how many false pairs it expects itself, if it has probabilities.
        ranking: its candidates by score, if it has scores.
    """

    method: str
    result: Result
    seconds: float
    expected: float | None = None
    ranking: Ranking | None = None


def same_title(labelled: Labelled) -> list[Row]:
    """Pairs of one scope with the same normalised title; then those of them with nothing against it."""
    began = time.process_time()
    pairs = _same_title(labelled.corpus)
    between = time.process_time()
    kept = _unopposed(pairs, labelled.corpus)
    ended = time.process_time()
    return [
        Row("same title", labelled.labels.judged(*_ends(pairs)), between - began),
        Row("same title and nothing against it", labelled.labels.judged(*_ends(kept)), ended - began),
    ]


def unopposed(corpus: Corpus) -> tuple[Ints, Ints]:
    """Pairs (a, b) of one scope with the same normalised title of which no field or key differs where both have it."""
    return _ends(_unopposed(_same_title(corpus), corpus))


def _ends(pairs: pl.DataFrame) -> tuple[Ints, Ints]:
    return pairs["row"].to_numpy(), pairs["row_b"].to_numpy()


def _same_title(corpus: Corpus) -> pl.DataFrame:
    """Pairs (columns row, row_b) of the same scope and normalised title, which is not empty."""
    titles = corpus.topics.select("scope", row=pl.int_range(pl.len(), dtype=pl.Int64), title=plain(pl.col("title")))
    titled = titles.filter(pl.col("title") != "")
    return titled.join(titled, on=["scope", "title"], suffix="_b").filter(pl.col("row") < pl.col("row_b"))


def _unopposed(pairs: pl.DataFrame, corpus: Corpus) -> pl.DataFrame:
    values = corpus.fields.with_columns(text=plain(pl.col("text"))).filter(pl.col("text") != "")
    keys = corpus.keys.select("row", text="key", number=pl.lit(None, pl.Float64), day=pl.lit(None, pl.Float64))
    for known, of in ((values, ["name"]), (keys, [])):
        pairs = pairs.join(_differing(pairs, known, of), on=["row", "row_b"], how="anti")
    return pairs


def _differing(pairs: pl.DataFrame, values: pl.DataFrame, of: list[str]) -> pl.DataFrame:
    """Pairs with values, of the same columns `of`, that differ as text, number and date (columns row, row_b)."""
    both = pairs.join(values, on="row").join(values, left_on=["row_b", *of], right_on=["row", *of], suffix="_b")
    equal = [pl.col(form).eq(pl.col(f"{form}_b")).fill_null(value=False) for form in ("text", "number", "day")]
    return both.filter(~pl.any_horizontal(equal)).select("row", "row_b")


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
    began = time.process_time()
    index = SemHash.from_embeddings(labelled.corpus.vectors, records, model=Encoder(), columns=["text"])
    filtered = index.self_deduplicate().filtered
    seconds = time.process_time() - began
    groups = np.arange(len(records))
    for one in filtered:
        groups[int(one.record["row"])] = int(one.duplicate_of["row"])
    return [Row("semhash, its defaults, MiniLM vectors", labelled.labels.judged_groups(groups), seconds)]


def splink(labelled: Labelled) -> list[Row]:
    """Splink's clusters, and those of a Splink that is given that each source is free of duplicates."""
    if find_spec("splink") is None:
        return []
    rows = _splink_rows(labelled, "Splink", SPLINK_STEPS, between_sources=False)
    corpus = labelled.corpus
    if corpus.sources["row"].n_unique() < len(corpus) or corpus.sources["source"].n_unique() == 1:
        return rows
    return rows + _splink_rows(labelled, "Splink, sources given as clean", SPLINK_STEPS[:1], between_sources=True)


def _splink_rows(labelled: Labelled, name: str, steps: Sequence[float], *, between_sources: bool) -> list[Row]:
    """Clusters at each threshold; expected are the false pairs among the candidates within clusters."""
    from splink_peer import predict

    labels, began = labelled.labels, time.process_time()
    found = predict(labelled.corpus, between_sources=between_sources)
    seconds = time.process_time() - began
    ranking = Ranking.of(found.a, found.b, found.weight, labels)
    rows = []
    for step in steps:
        linked = found.probability >= step
        groups = components(found.a[linked], found.b[linked], len(labelled.corpus))
        counted = (groups[found.a] == groups[found.b]) & ~labels.unlabelled(found.a, found.b)
        expected, result = float((1 - found.probability)[counted].sum()), labels.judged_groups(groups)
        rows.append(Row(f"{name}, clusters from {step:.2f}", result, seconds, expected, ranking))
    return rows


def _thresholded(name: str, rows_of: Callable[[], Any], labelled: Labelled) -> list[Row]:
    """Pairs, then components, each at the threshold with the best F1; choosing it is not timed."""
    labels, began = labelled.labels, time.process_time()
    rows = rows_of()
    a, b, similarity = _similar(rows)
    seconds = time.process_time() - began
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
