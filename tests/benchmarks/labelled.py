"""Labelled records as the methods of finding duplicates get them: one corpus, one embedding, one truth.

A directory holds `observations.jsonl` (or `.jsonl.gz`) and `pairs.csv`, the ids of two records of one thing a line;
the truth is what these pairs connect. Many sets have labels only between their sources, so a pair of one source with
the same title that is not true counts neither for nor against a method. Where the directory has a file
`labels_incomplete`, that holds between sources, too.
"""

from __future__ import annotations

import gzip
import time
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from msgspec import json as msgjson
from scoring import Ints, Labels, components, pair_keys, pairs_of

from memstate_core.embed.encoder import Encoder
from memstate_core.embed.vector_cache import embed
from memstate_core.model.observation import Observation
from memstate_core.model.text import embedding_text
from memstate_core.revise.matching.corpus import Corpus, field_values


@dataclass(frozen=True)
class Labelled:
    """Records, the text that is embedded of each, their labels, and how long embedding took."""

    corpus: Corpus
    texts: list[str]
    labels: Labels
    embedding: str


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
    truth = _truth(directory / "pairs.csv", topics["id"])
    repeats = repeated_titles(corpus, across_sources=(directory / "labels_incomplete").exists())
    return Labelled(corpus, texts, Labels(truth, repeats), note)


def plain(text: pl.Expr) -> pl.Expr:
    """Lower case, compatibility forms resolved, runs of anything but letters and digits as one blank."""
    return text.str.normalize("NFKC").str.to_lowercase().str.replace_all(r"[\W_]+", " ").str.strip_chars()


def repeated_titles(corpus: Corpus, *, across_sources: bool) -> Ints:
    """A code for each record, equal where two records of one source have the same title (records,).

    Args:
        corpus: the records.
        across_sources: whether the source may differ; records without a source have a code of their own anyway.
    """
    titles = corpus.topics.select(title=plain(pl.col("title"))).with_columns(row=pl.int_range(pl.len()))
    sourced = titles.join(corpus.sources, on="row", how="left", maintain_order="left")
    source = pl.when(pl.col("source").is_not_null()).then(pl.lit("")) if across_sources else pl.col("source")
    alone = pl.when(pl.col("source").is_null()).then("row")
    return sourced.select(pl.struct("title", source, alone=alone).rank("dense") - 1).to_series().to_numpy().astype(int)


def _observations(directory: Path) -> list[Observation]:
    file = directory / "observations.jsonl"
    if file.exists():
        return msgjson.Decoder(Observation).decode_lines(file.read_bytes())
    with gzip.open(f"{file}.gz") as packed:
        return msgjson.Decoder(Observation).decode_lines(packed.read())


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
    """Keys of all pairs that the listed ones connect."""
    pairs = pl.read_csv(file, has_header=False, schema={"a": pl.String, "b": pl.String}, raise_if_empty=False)
    rows = pl.DataFrame({"id": ids}).with_row_index("row")
    known = pairs.join(rows, left_on="a", right_on="id").join(rows, left_on="b", right_on="id", suffix="_b")
    if known.height < pairs.height:
        raise SystemExit(f"{file}: {pairs.height - known.height} pairs name records that observations.jsonl lacks")
    a, b = (known[name].cast(pl.Int64).to_numpy() for name in ("row", "row_b"))
    return pair_keys(*pairs_of(components(a, b, len(ids))), len(ids))
