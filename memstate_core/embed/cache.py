"""The embedding cache: one vector for each pair of model and text, kept over rebuilds.

A text is known by the SHA-256 of its bytes. SQLite serves here because the cache is a set of keys that
grows by single rows and must survive a kill at any moment; losing the file costs time and nothing else.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from memstate_core.embed.encoder import DIMENSION, Encoder, Vectors
from memstate_core.model.ids import sha256_expr

BATCH = 2048


@dataclass(frozen=True)
class Embedded:
    """Vectors for a list of texts, and how they were come by.

    Attributes:
        vectors: unit vectors, one row a text (float32, n x 384).
        encoded: how many distinct texts the model was asked for.
        cached: how many distinct texts the cache already knew.
    """

    vectors: Vectors
    encoded: int
    cached: int


def text_hash(text: pl.Expr) -> pl.Expr:
    """What a text is known by in the cache and on a topic."""
    return sha256_expr(text)


def embed(cache: Path, encoder: Encoder, texts: Sequence[str]) -> Embedded:
    """Vectors for texts, asking the model only for what the cache lacks; what it answers is kept."""
    asked = pl.DataFrame({"text": pl.Series(texts, dtype=pl.String)}).with_columns(hash=text_hash(pl.col("text")))
    distinct = asked.unique("hash", maintain_order=True)
    with _open(cache) as database:
        known = _look_up(database, encoder.model, distinct["hash"])
        missing = distinct.join(known, on="hash", how="anti")
        fresh = [_encode_batch(database, encoder, batch) for batch in missing.iter_slices(BATCH)]
    table = pl.concat([known, *fresh])
    blobs = asked.join(table, on="hash", how="left", maintain_order="left")["vector"]
    vectors = np.frombuffer(b"".join(blobs), dtype=np.float32).reshape(-1, DIMENSION)
    return Embedded(vectors, missing.height, known.height)


@contextmanager
def _open(cache: Path) -> Iterator[sqlite3.Connection]:
    cache.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(cache, timeout=60)) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=NORMAL")
        database.execute(
            "CREATE TABLE IF NOT EXISTS vectors"
            "(model TEXT, hash TEXT, vector BLOB, PRIMARY KEY(model, hash)) WITHOUT ROWID"
        )
        yield database


def _look_up(database: sqlite3.Connection, model: str, hashes: pl.Series) -> pl.DataFrame:
    database.execute("CREATE TEMP TABLE wanted(hash TEXT PRIMARY KEY)")
    database.executemany("INSERT INTO wanted VALUES (?)", zip(hashes, strict=True))
    rows = database.execute(
        "SELECT hash, vector FROM vectors JOIN wanted USING (hash) WHERE model = ?", (model,)
    ).fetchall()
    return pl.DataFrame(rows, schema={"hash": pl.String, "vector": pl.Binary}, orient="row")


def _encode_batch(database: sqlite3.Connection, encoder: Encoder, batch: pl.DataFrame) -> pl.DataFrame:
    vectors = encoder.encode(batch["text"].to_list())
    frame = pl.DataFrame(
        {
            "hash": batch["hash"],
            "vector": pl.Series([vector.tobytes() for vector in vectors], dtype=pl.Binary),
        }
    )
    with database:
        database.executemany(
            "INSERT OR IGNORE INTO vectors VALUES (?, ?, ?)",
            zip([encoder.model] * frame.height, frame["hash"], frame["vector"], strict=True),
        )
    return frame
