"""The term index: BM25 weights of every term of every document, computed at build time and summed at query time.

Robertson and Zaragoza 2009, "The Probabilistic Relevance Framework: BM25 and Beyond", with the non-negative idf of
Lucene; weights are stored as in BM25S (Lù 2024), so a query is a few slices and additions. All statistics (number of
documents, mean length, document frequency) are those of one scope, and a query touches only the postings of its own
terms in the requested scopes. `tests/benchmarks/lexical.py` compares it with the bm25s package, which has no scopes.

On disk each scope has a run of terms (xxHash64, ascending), and each term a run of postings: `terms.npy` u64,
`starts.npy` i64 (one more than terms), `rows.npy` u32 (counted within the scope) and `weights.npy` f32, postings x
fields. A field is one view of a document: the turn alone, or its window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import polars_hash  # noqa: F401  (registers the `nchash` namespace)
from xxhash import xxh64_intdigest

from memstate_core.retrieve.index.layout import read_array, scope_layout

K1 = 1.2
B = 0.75
"""Robertson and Zaragoza's usual values; recall moves by less than a point over k1 0.9 to 2, b 0.3 to 0.75."""

POSTING_FILES = ("terms.npy", "starts.npy", "rows.npy", "weights.npy")

Scores = npt.NDArray[np.float64]


def term_key(term: pl.Expr) -> pl.Expr:
    """The key of a term in the index: 64 bits of xxHash64, the same on every machine."""
    hashed: pl.Expr = term.nchash.xxhash64()  # type: ignore[attr-defined]
    return hashed


def weigh(counts: pl.DataFrame, layout: pl.DataFrame, fields: Sequence[str]) -> pl.DataFrame:
    """BM25 weights of term counts, sorted as the index stores them.

    Sorts, then arithmetic over runs: with many millions of postings this is several times faster than grouping by
    hash. Three stable sorts by one number each take a third of the time of one by three columns.

    Args:
        counts: `row` (over the whole file), `key` and one column of counts a field; counts of the same
            row and key add up.
        layout: `scope`, `first` and `count` of each scope's documents in the file.
        fields: the columns of counts; each is weighted by its own lengths and frequencies.

    Returns:
        `place` (of the scope in the layout), `key`, `row` (within the scope) and the fields as weights
        (Float32).
    """
    firsts, sizes = layout["first"].to_numpy(), layout["count"].to_numpy()
    place = pl.Series("place", np.searchsorted(firsts, counts["row"].to_numpy(), side="right") - 1, pl.UInt32)
    ordered = counts.with_columns(place)
    for column in ("row", "key", "place"):
        ordered = ordered.sort(column, maintain_order=True)
    starts = _run_starts(ordered, "key", "row")
    kept = ordered.select("place", "key", "row")[starts]
    counted = {field: np.add.reduceat(ordered[field].to_numpy(), starts) for field in fields}
    weights = [pl.Series(field, _weights(found, kept, sizes)) for field, found in counted.items()]
    return kept.with_columns(row=pl.col("row") - pl.Series(firsts).gather(kept["place"])).with_columns(weights)


def _run_starts(ordered: pl.DataFrame, *columns: str) -> npt.NDArray[np.intp]:
    """The rows of a sorted frame at which a new combination of these columns begins."""
    if not ordered.height:
        return np.zeros(0, dtype=np.intp)
    changes = [values[1:] != values[:-1] for name in columns for values in [ordered[name].to_numpy()]]
    return np.flatnonzero(np.append(True, np.logical_or.reduce(changes)))


def _weights(counts: npt.NDArray[Any], postings: pl.DataFrame, sizes: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """The BM25 weight of each posting, from sorted postings.

    Args:
        counts: occurrences of the term in the document (n).
        postings: columns place, key and row (n), sorted.
        sizes: how many documents the scope at each place has.
    """
    place, row = postings["place"].to_numpy(), postings["row"].to_numpy()
    length = np.bincount(row, counts)[row]
    mean_length = (np.bincount(place, counts, minlength=len(sizes)) / sizes)[place]
    starts = _run_starts(postings, "place", "key")
    repeats = np.diff(np.append(starts, len(place)))
    frequency = np.repeat(np.add.reduceat((counts > 0).astype(np.int64), starts), repeats)
    idf = np.log(1 + (sizes[place] - frequency + 0.5) / (frequency + 0.5))
    weights = idf * counts / (counts + K1 * (1 - B + B * length / mean_length))
    return np.asarray(weights, dtype=np.float32)


@dataclass(frozen=True)
class Runs:
    """The postings of one scope, or of several in the order of their names.

    Attributes:
        terms: how many terms each scope has (columns scope, count).
        keys: the terms (u64, n).
        lengths: how many postings each term has (i64, n).
        rows: the document of each posting, within its scope (m).
        weights: its weights (f32, m x fields).
    """

    terms: pl.DataFrame
    keys: npt.NDArray[np.uint64]
    lengths: npt.NDArray[np.int64]
    rows: npt.NDArray[Any]
    weights: npt.NDArray[np.float32]


def runs_of(postings: pl.DataFrame, layout: pl.DataFrame, fields: Sequence[str]) -> Runs:
    """The runs of weighted postings.

    Args:
        postings: the result of `weigh`.
        layout: the layout given to it.
        fields: its weight columns, in the column order of `Postings.scores`.
    """
    vocabulary = postings.group_by("place", "key", maintain_order=True).len()
    placed = scope_layout(vocabulary.select(scope=layout["scope"].gather(vocabulary["place"])))
    return Runs(
        placed.select("scope", "count"),
        vocabulary["key"].to_numpy(),
        vocabulary["len"].to_numpy().astype(np.int64),
        postings["row"].to_numpy(),
        np.ascontiguousarray(postings.select(fields).to_numpy()),
    )


def read_runs(folder: Path, scope: str, place: tuple[int, int]) -> Runs:
    """The runs of one scope in an index, given where its terms lie."""
    first, count = place
    starts = read_array(folder / "starts.npy")[first : first + count + 1]
    held = slice(int(starts[0]), int(starts[-1])) if count else slice(0, 0)
    named = pl.DataFrame({"scope": [scope], "count": [count]}).filter(pl.col("count") > 0)
    arrays = (read_array(folder / name)[held] for name in ("rows.npy", "weights.npy"))
    return Runs(named, read_array(folder / "terms.npy")[first : first + count], np.diff(starts), *arrays)


def split_runs(runs: Runs) -> dict[str, Runs]:
    """Runs by scope."""
    ends = np.append(0, np.cumsum(runs.lengths))
    found, first = {}, 0
    for scope, count in runs.terms.iter_rows():
        held = slice(int(ends[first]), int(ends[first + count]))
        named = pl.DataFrame({"scope": [scope], "count": [count]})
        part = slice(first, first + count)
        found[scope] = Runs(named, runs.keys[part], runs.lengths[part], runs.rows[held], runs.weights[held])
        first += count
    return found


def write_runs(folder: Path, runs: Sequence[Runs]) -> pl.DataFrame:
    """Writes runs as an index, in a folder that is created.

    Args:
        folder: of the four files.
        runs: in the order of their scopes, at least one.

    Returns:
        `scope`, `first` and `count` of each scope's terms.
    """
    folder.mkdir(parents=True)
    np.save(folder / "terms.npy", np.concatenate([each.keys for each in runs]))
    lengths = np.concatenate([each.lengths for each in runs])
    np.save(folder / "starts.npy", np.append(0, np.cumsum(lengths)).astype(np.int64))
    np.save(folder / "rows.npy", np.concatenate([each.rows for each in runs]))
    np.save(folder / "weights.npy", np.concatenate([each.weights for each in runs]))
    placed = pl.concat([each.terms for each in runs])
    first = (pl.col("count").cum_sum() - pl.col("count")).cast(pl.Int64)
    return placed.select("scope", first=first, count=pl.col("count").cast(pl.Int64))


class Postings:
    """A term index, memory-mapped."""

    def __init__(self, folder: Path) -> None:
        self._terms = read_array(folder / "terms.npy")
        self._starts = read_array(folder / "starts.npy")
        self._rows = read_array(folder / "rows.npy")
        self._weights = read_array(folder / "weights.npy")

    def scores(self, terms: Sequence[str], *, first: int, count: int, documents: int) -> Scores:
        """BM25 of every document of one scope, divided by the sum of the terms' idf, its bound.

        Args:
            terms: the distinct terms of the question.
            first: where the scope's terms start.
            count: how many terms the scope has.
            documents: how many documents the scope has.

        Returns:
            documents x fields, each from 0 to about 1. Terms unknown in the scope count in the bound, so that scopes
            with more of the question's terms score higher.
        """
        runs = self._runs(terms, first, count)
        held = [slice(low, high) for low, high in runs if low < high]
        rows = np.concatenate([self._rows[each] for each in held] or [self._rows[:0]])
        weights = np.concatenate([self._weights[each] for each in held] or [self._weights[:0]])
        scores = np.array([np.bincount(rows, field, documents) for field in weights.T]).T
        bound = _idf(runs, documents).sum()
        return scores / bound if bound else scores

    def weights(self, terms: Sequence[str], *, first: int, count: int, documents: int) -> Scores:
        """The idf of terms in one scope, one a term; arguments as for `scores`."""
        return _idf(self._runs(terms, first, count), documents)

    def rows(self, terms: Sequence[str], *, first: int, count: int) -> npt.NDArray[np.intp]:
        """The documents of one scope with any of the terms in any field, ascending; arguments as for `scores`."""
        runs = [self._rows[low:high] for low, high in self._runs(terms, first, count)] if terms else []
        return np.unique(np.concatenate(runs)).astype(np.intp) if runs else np.zeros(0, dtype=np.intp)

    def _runs(self, terms: Sequence[str], first: int, count: int) -> list[tuple[int, int]]:
        """The run of each term's postings; empty for a term that is unknown in the scope."""
        keys = _keys(terms)
        places = first + np.searchsorted(self._terms[first : first + count], keys)
        found = np.flatnonzero(places < first + count)
        found = found[self._terms[places[found]] == keys[found]]
        runs = np.zeros((len(keys), 2), dtype=np.int64)
        runs[found, 0], runs[found, 1] = self._starts[places[found]], self._starts[places[found] + 1]
        return [(low, high) for low, high in runs.tolist()]


def _keys(terms: Sequence[str]) -> npt.NDArray[np.uint64]:
    """The keys of a question's terms: `term_key` without a frame."""
    return np.array([xxh64_intdigest(term) for term in terms], dtype=np.uint64)


def _idf(runs: list[tuple[int, int]], documents: int) -> Scores:
    frequency = np.array([high - low for low, high in runs], dtype=np.float64)
    return np.asarray(np.log(1 + (documents - frequency + 0.5) / (frequency + 0.5)))
