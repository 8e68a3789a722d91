"""Duplicates in labelled records: memstate's matcher beside plain methods, on the same records in one run.

Each directory holds `observations.jsonl` (or `.jsonl.gz`) and `pairs.csv` with the ids of two records of one
thing a line. All methods get the same titles, summaries and fields; the two plain ones also get the labels,
to choose their threshold, so theirs are upper bounds. semhash runs with its defaults, except that it gets the
shared vectors in place of those of its own model, which would have to be downloaded.
"""

from __future__ import annotations

import argparse
import gzip
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from msgspec import json as msgjson
from numpy.typing import NDArray
from scoring import Ints, Result, components, judged, judged_groups, pair_keys
from sklearn.feature_extraction.text import TfidfVectorizer

from memstate_core.embed.encoder import Encoder
from memstate_core.embed.vector_cache import embed
from memstate_core.model.frames import DECISION, EVIDENCE_TOPIC, empty
from memstate_core.model.observation import Observation
from memstate_core.model.text import embedding_text
from memstate_core.policy.settings import Policy
from memstate_core.revise.constraints import constraints, verdict_levels
from memstate_core.revise.matching.corpus import Corpus, field_values
from memstate_core.revise.matching.deduplication import deduplicate

STEPS = np.round(np.arange(0.30, 1.0, 0.01), 2)
"""Thresholds that are tried with knowledge of the labels."""
_BLOCK = 1024


@dataclass(frozen=True)
class Row:
    """One line of a table: a method, what it found, how long it took, how many false pairs it expects itself."""

    method: str
    result: Result
    seconds: float
    expected: float | None = None


@dataclass(frozen=True)
class Labelled:
    """Records, the text that is embedded of each, keys of true pairs (`scoring.pair_keys`), what embedding took."""

    corpus: Corpus
    texts: list[str]
    truth: Ints
    embedding: str


# --- records


def read(directory: Path, encoder: Encoder, cache: Path) -> Labelled:
    """The records of a directory as a corpus, each record a topic, in the order of (scope, id)."""
    records = sorted(_observations(directory), key=lambda record: (_scope(record), record.observation_id or ""))
    topics = _topics(records)
    texts = topics.select(embedding_text(pl.col("title"), pl.col("summary"))).to_series().to_list()
    began = time.perf_counter()
    embedded = embed(cache, encoder, texts)
    seconds = time.perf_counter() - began
    note = f"{seconds:.1f} seconds, {embedded.encoded} texts encoded, {embedded.cached} from the cache"
    sources, keys = _named(records, "source_uri", "source"), _named(records, "topic_key", "key")
    corpus = Corpus(topics, _fields(records), embedded.vectors, sources, keys)
    return Labelled(corpus, texts, _truth(directory / "pairs.csv", topics["id"]), note)


def _observations(directory: Path) -> list[Observation]:
    plain = directory / "observations.jsonl"
    if plain.exists():
        return msgjson.Decoder(Observation).decode_lines(plain.read_bytes())
    with gzip.open(f"{plain}.gz") as file:
        return msgjson.Decoder(Observation).decode_lines(file.read())


def _scope(record: Observation) -> str:
    return f"{record.scope.type}:{record.scope.id}" if record.scope else "global"


def _topics(records: list[Observation]) -> pl.DataFrame:
    rows = [
        (row.observation_id, _scope(row), row.title, row.summary, row.topic_kind, row.observed_at) for row in records
    ]
    names = ["id", "scope", "title", "summary", "topic_kind", "created_at"]
    frame = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")
    return frame.with_columns(pl.col("created_at").str.to_datetime(time_unit="us", time_zone="UTC"))


def _fields(records: list[Observation]) -> pl.DataFrame:
    values = [
        (row, field.name, msgjson.encode(field.value).decode(), field.field_type)
        for row, record in enumerate(records)
        for field in record.fields
        if field.value is not None
    ]
    schema = {"row": pl.Int64, "name": pl.String, "value_json": pl.String, "field_type": pl.String}
    return field_values(pl.DataFrame(values, schema=schema, orient="row").unique(["row", "name"], keep="last"))


def _named(records: list[Observation], attribute: str, column: str) -> pl.DataFrame:
    """The values of an attribute by record (columns row and the given one)."""
    rows = [(row, getattr(record, attribute)) for row, record in enumerate(records) if getattr(record, attribute)]
    return pl.DataFrame(rows, schema={"row": pl.Int64, column: pl.String}, orient="row")


def _truth(file: Path, ids: pl.Series) -> Ints:
    pairs = pl.read_csv(file, has_header=False, new_columns=["a", "b"], infer_schema=False)
    rows = pl.DataFrame({"id": ids}).with_row_index("row")
    known = pairs.join(rows, left_on="a", right_on="id").join(rows, left_on="b", right_on="id", suffix="_b")
    if known.height < pairs.height:
        raise SystemExit(f"{file}: {pairs.height - known.height} pairs name records that observations.jsonl lacks")
    return pair_keys(*(known[name].cast(pl.Int64).to_numpy() for name in ("row", "row_b")), len(ids))


# --- methods


def matcher(labelled: Labelled) -> list[Row]:
    """memstate's own, with the default policy and no labels; its groups count with all their pairs."""
    decided = empty(DECISION)
    terms = constraints(decided, empty(EVIDENCE_TOPIC)), verdict_levels(decided)
    began = time.perf_counter()
    found = deduplicate(labelled.corpus, *terms, sure=Policy().merge_probability)
    seconds = time.perf_counter() - began
    expected = float((1 - found.scored.probability)[found.grouped].sum())
    return [Row("memstate", judged_groups(found.groups, labelled.truth), seconds, expected)]


def cosine(labelled: Labelled) -> list[Row]:
    """Pairs whose embeddings are close, and the components that they form."""
    return _thresholded("MiniLM cosine", lambda: labelled.corpus.vectors, labelled.truth)


def title_cosine(labelled: Labelled) -> list[Row]:
    """Pairs whose titles share letters, and the components that they form."""
    vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 3), dtype=np.float32)
    titles = labelled.corpus.titles
    return _thresholded("TF-IDF 3-gram cosine of titles", lambda: vectorizer.fit_transform(titles), labelled.truth)


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
    return [Row("semhash, its defaults, MiniLM vectors", judged_groups(groups, labelled.truth), seconds)]


def _thresholded(name: str, rows_of: Callable[[], Any], truth: Ints) -> list[Row]:
    """Pairs, then components, each at the threshold with the best F1; choosing it is not timed."""
    began = time.perf_counter()
    rows = rows_of()
    a, b, similarity = _similar(rows)
    seconds = time.perf_counter() - began
    cuts = [(step, similarity >= step) for step in STEPS]
    pairs = [(step, judged(pair_keys(a[cut], b[cut], rows.shape[0]), truth)) for step, cut in cuts]
    grouped = [(step, judged_groups(components(a[cut], b[cut], rows.shape[0]), truth)) for step, cut in cuts]
    named = ((f"{name}, pairs", pairs), (f"{name}, components", grouped))
    best = [(label, *max(results, key=lambda result: result[1].f1)) for label, results in named]
    return [Row(f"{label} from {step:.2f} *", result, seconds) for label, step, result in best]


def _similar(rows: Any) -> tuple[Ints, Ints, NDArray[np.float32]]:
    """All pairs (a, b, cosine), a < b, from the lowest of STEPS on; rows are dense or sparse, of unit length."""
    found = []
    for start in range(0, rows.shape[0], _BLOCK):
        product = rows[start : start + _BLOCK] @ rows.T
        block = np.triu(product if isinstance(product, np.ndarray) else product.toarray(), start + 1)
        a, b = np.nonzero(block >= STEPS[0])
        found.append((a + start, b, block[a, b]))
    return tuple(np.concatenate(part) for part in zip(*found, strict=True))  # type: ignore[return-value]


METHODS = (matcher, cosine, title_cosine, semhash)


# --- tables


def table(name: str, labelled: Labelled) -> str:
    """The Markdown table of one set."""
    rows = [row for method in METHODS for row in method(labelled)]
    head = ["method", "pairs", "precision", "recall", "F1", "seconds", "false pairs", "expected false"]
    lines = [
        f"### {name}: {len(labelled.corpus):,} records, {len(labelled.truth):,} true pairs",
        f"Embeddings: {labelled.embedding}.\n",
        f"| {' | '.join(head)} |",
        f"|{'---|' * len(head)}",
        *(_line(row) for row in rows),
    ]
    return "\n".join(lines)


def _line(row: Row) -> str:
    found = row.result
    rates = " | ".join(f"{rate:.3f}" for rate in (found.precision, found.recall, found.f1))
    expected = "" if row.expected is None else f"{row.expected:.1f}"
    counts = f"{found.pairs - found.true:,} | {expected}"
    return f"| {row.method} | {found.pairs:,} | {rates} | {row.seconds:.1f} | {counts} |"


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare methods of finding duplicates on labelled records.")
    parser.add_argument("directories", type=Path, nargs="+", metavar="DIR", help="observations.jsonl[.gz], pairs.csv")
    parser.add_argument("--cache", type=Path, metavar="FILE", help="keeps embeddings for the next run")
    return parser.parse_args(given)


def main(given: Sequence[str] | None = None) -> None:
    """Prints one table for each directory."""
    args, encoder = _arguments(given), Encoder()
    with tempfile.TemporaryDirectory() as scratch:
        for directory in args.directories:
            labelled = read(directory, encoder, args.cache or Path(scratch) / "embeddings.sqlite")
            print(table(directory.resolve().name, labelled), end="\n\n", flush=True)
    print("* Threshold chosen with the labels in hand, out of 0.30 to 0.99: an upper bound of the method.")
    if find_spec("semhash") is None:
        print("semhash is not installed: pip install -e '.[bench]'.")


if __name__ == "__main__":
    main()
