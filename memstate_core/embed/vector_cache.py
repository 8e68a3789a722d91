"""The embedding cache: one vector for each pair of model and text, kept across runs and rebuilds.

A text is identified by the SHA-256 of its bytes, a prefix that its model needs included. The file itself is
the business of `cache_file`.

Invariant: a vector is what the model returned for the text. SQLite does not notice changed bytes, so an entry ends in
the CRC-32 of its text's hash and its vector, and one that differs counts as absent. Entries of the first version,
which knew 384 dimensions only, have none.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import numpy as np
import numpy.typing as npt
import polars as pl

from memstate_core.embed.cache_file import CacheFile
from memstate_core.embed.encoder import DIMENSION, Encoder, Vectors
from memstate_core.model.errors import DimensionMismatch
from memstate_core.model.ids import sha256_expr
from memstate_core.model.progress import tracked

_TABLE = (
    "CREATE TABLE IF NOT EXISTS vectors(model TEXT, hash TEXT, vector BLOB, PRIMARY KEY(model, hash)) WITHOUT ROWID"
)
_FLOAT = _CHECKSUM = 4
_TOGETHER = 8_192
"""Texts that are encoded together where nothing is written between."""
_FIRST_VERSION = 4 * DIMENSION
"""Bytes of an entry without a checksum."""
_FIND = (
    "SELECT hash, vector FROM json_each(?) AS wanted CROSS JOIN vectors"
    " WHERE model = ? AND hash = wanted.value AND typeof(vector) = 'blob'"
)
_ANY = "SELECT hash, vector FROM vectors WHERE model = ? AND typeof(vector) = 'blob' LIMIT 100"


@dataclass(frozen=True)
class Embedded:
    """Vectors for a list of texts.

    Attributes:
        vectors: unit vectors, one row per text (float32, n x d).
        encoded: number of distinct texts that the model encoded.
        cached: number of distinct texts whose vectors were cached.
    """

    vectors: Vectors
    encoded: int
    cached: int


def text_hash(text: pl.Expr) -> pl.Expr:
    """The SHA-256 that identifies a text in the cache and on a topic."""
    return sha256_expr(text)


def embed(path: Path, encoder: Encoder, texts: Sequence[str]) -> Embedded:
    """Vectors for texts that are searched; only those that the cache lacks are encoded, and then cached.

    Args:
        path: the cache file, which need not exist.
        encoder: encodes what is missing.
        texts: the texts, repeated ones included.

    Raises:
        ModelUnavailable: a text is not cached and the model cannot be loaded.
        DimensionMismatch: vectors have another dimension than the encoder expects, or than cached ones of its model.
    """
    return _embed(path, encoder, encoder.passages(texts))


def embed_questions(path: Path, encoder: Encoder, texts: Sequence[str]) -> Embedded:
    """Vectors for questions; arguments and errors as for `embed`."""
    return _embed(path, encoder, encoder.questions(texts))


def cached(path: Path, encoder: Encoder, texts: Sequence[str]) -> tuple[npt.NDArray[np.intp], Vectors]:
    """The numbers of the texts whose vectors are known without a model, and these vectors; arguments as for `embed`."""
    hashed = pl.DataFrame({"text": pl.Series(encoder.passages(texts), dtype=pl.String)}).select(
        hash=text_hash(pl.col("text")), at=pl.int_range(pl.len())
    )
    with closing(CacheFile(path, _TABLE)) as cache:
        known = _look_up(cache, encoder.model, hashed["hash"].unique())
    found = hashed.join(known, on="hash").sort("at")
    vectors = np.frombuffer(b"".join(found["vector"]), dtype=np.float32).reshape(found.height, -1 if len(known) else 0)
    return found["at"].to_numpy(), vectors


def _embed(path: Path, encoder: Encoder, texts: Sequence[str]) -> Embedded:
    return _embed_cached(path, encoder, texts) if encoder.is_cached else _embed_anew(encoder, texts)


def _embed_anew(encoder: Encoder, texts: Sequence[str]) -> Embedded:
    """The vectors of an encoder that needs no cache."""
    parts = [texts[start : start + _TOGETHER] for start in range(0, len(texts), _TOGETHER)]
    found = [encoder.encode(part) for part in tracked(parts, "encode", len(texts), "texts", len)]
    vectors = np.concatenate(found or [encoder.encode([])])
    _require_expected(encoder, vectors.shape[1])
    return Embedded(vectors, len(set(texts)), 0)


def _embed_cached(path: Path, encoder: Encoder, texts: Sequence[str]) -> Embedded:
    asked = pl.DataFrame({"text": pl.Series(texts, dtype=pl.String)}).with_columns(hash=text_hash(pl.col("text")))
    distinct = asked.unique("hash", maintain_order=True)
    with closing(CacheFile(path, _TABLE)) as cache:
        known = _look_up(cache, encoder.model, distinct["hash"])
        missing = distinct.join(known, on="hash", how="anti", maintain_order="left")
        encoder.expect(missing.height)
        batches = tracked(missing.iter_slices(encoder.kept_together), "encode", missing.height, "texts", len)
        fresh = [_encode_batch(cache, encoder, batch) for batch in batches]
        dimension = _dimension(cache, encoder, [known, *fresh])
    table = pl.concat([known, *fresh])
    blobs = asked.join(table, on="hash", how="left", maintain_order="left")["vector"]
    vectors = np.frombuffer(b"".join(blobs), dtype=np.float32).reshape(len(texts), dimension)
    return Embedded(vectors, missing.height, known.height)


def _dimension(cache: CacheFile, encoder: Encoder, tables: Sequence[pl.DataFrame]) -> int:
    """The one dimension of some vectors (the last table is the newest); without any, that of the encoder's others."""
    found = [size for table in tables for size in table["vector"].bin.size().unique(maintain_order=True)]
    sizes = [size // _FLOAT for size in found] or _cached_dimensions(cache, encoder.model) or [encoder.dimension]
    for size in sizes:
        _require_expected(encoder, size)
        if size != sizes[0]:
            raise DimensionMismatch(encoder.model, size, sizes[0], "the vectors cached under its name")
    return sizes[0]


def _require_expected(encoder: Encoder, size: int) -> None:
    if encoder.expected not in (0, size):
        raise DimensionMismatch(encoder.model, size, encoder.expected, "embedding.dimension of the settings")


def _cached_dimensions(cache: CacheFile, model: str) -> list[int]:
    """The dimension of a sound entry of a model, if there is one."""
    vectors = [vector for text, entry in cache.select(_ANY, (model,)) if (vector := _sound(text, entry)) is not None]
    return [len(vector) // _FLOAT for vector in vectors[:1]]


def _look_up(cache: CacheFile, model: str, hashes: pl.Series) -> pl.DataFrame:
    found = cache.select(_FIND, (json.dumps(hashes.sort().to_list()), model))
    rows = [(text, vector) for text, entry in found if (vector := _sound(text, entry)) is not None]
    return pl.DataFrame(rows, schema={"hash": pl.String, "vector": pl.Binary}, orient="row")


def _entry(text_hash: str, vector: bytes) -> bytes:
    """A vector as it is stored, with its checksum."""
    return vector + crc32(vector, crc32(text_hash.encode())).to_bytes(4)


def _sound(text_hash: str, entry: bytes) -> bytes | None:
    """The vector of an entry as it was written, None if it is damaged."""
    vector = entry[:-_CHECKSUM]
    if len(vector) >= _FLOAT and len(vector) % _FLOAT == 0 and entry == _entry(text_hash, vector):
        return vector
    return entry if len(entry) == _FIRST_VERSION else None


def _encode_batch(cache: CacheFile, encoder: Encoder, batch: pl.DataFrame) -> pl.DataFrame:
    vectors = encoder.encode(batch["text"].to_list())
    blobs = pl.Series("vector", [vector.tobytes() for vector in vectors], dtype=pl.Binary)
    frame = batch.select("hash", blobs)
    rows = [(encoder.model, text, _entry(text, vector)) for text, vector in frame.iter_rows()]
    cache.insert("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)
    return frame
