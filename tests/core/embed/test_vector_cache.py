"""The cache of vectors: each text is encoded once for each model, and the order of texts is kept."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from memstate_core.embed.encoder import DIMENSION, KEPT_TOGETHER, Encoder, Vectors
from memstate_core.embed.model_name import ModelName
from memstate_core.embed.vector_cache import embed, embed_questions
from memstate_core.model.errors import DimensionMismatch


class CountingEncoder(Encoder):
    """Encodes by the text's length, since what is tested is the cache; remembers what it was given."""

    def __init__(self, model: str = "counting", dimension: int = DIMENSION, expected: int = 0) -> None:
        super().__init__(model, expected=expected)
        self.batches: list[list[str]] = []
        self.dimension = dimension

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.batches.append(list(texts))
        return vectors_of(texts, self.dimension)


def vectors_of(texts: Sequence[str], dimension: int = DIMENSION) -> Vectors:
    rows = np.zeros((len(texts), dimension), dtype=np.float32)
    rows[np.arange(len(texts)), [len(text) % dimension for text in texts]] = 1.0
    return rows


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "embeddings.sqlite"


def test_each_text_is_encoded_once_and_the_order_is_kept(path: Path) -> None:
    encoder, texts = CountingEncoder(), ["aaa", "b", "aaa", "", "dd", "b"]
    first = embed(path, encoder, texts)
    assert np.array_equal(first.vectors, vectors_of(texts))
    assert (first.encoded, first.cached, encoder.batches) == (4, 0, [["aaa", "b", "", "dd"]])
    again = embed(path, encoder, ["new text", *texts[::-1]])
    assert np.array_equal(again.vectors, vectors_of(["new text", *texts[::-1]]))
    assert (again.encoded, again.cached, encoder.batches[1:]) == (1, 4, [["new text"]])


def test_no_texts_make_no_vectors(path: Path) -> None:
    encoder = CountingEncoder()
    found = embed(path, encoder, [])
    assert (found.vectors.shape, found.encoded, found.cached, encoder.batches) == ((0, DIMENSION), 0, 0, [])


@pytest.mark.parametrize("dimension", [1, 96, 383, 385, 1024])
def test_vectors_of_any_dimension_are_kept(path: Path, dimension: int) -> None:
    """An entry of 383 dimensions has as many bytes as one of 384 without a checksum."""
    encoder, texts = CountingEncoder(dimension=dimension), ["a", "bb", "a"]
    assert embed(path, encoder, texts[:1]).encoded == 1
    found = embed(path, encoder, texts)
    assert (found.encoded, found.cached, len(encoder.batches)) == (1, 1, 2)
    assert np.array_equal(found.vectors, vectors_of(texts, dimension))
    assert embed(path, Encoder("counting"), []).vectors.shape == (0, dimension), "no model is loaded to know it"


def test_other_dimensions_than_expected_are_refused_and_the_message_says_which(path: Path) -> None:
    embed(path, CountingEncoder(), ["a"])
    with pytest.raises(DimensionMismatch, match="of 96 dimensions, expected 384 as in the vectors cached") as refused:
        embed(path, CountingEncoder(dimension=96), ["a", "bb"])
    assert "give the new one a name of its own" in str(refused.value)
    with pytest.raises(DimensionMismatch, match=r"of 384 dimensions, expected 512 as in embedding\.dimension"):
        embed(path, CountingEncoder(expected=512), ["a"])
    assert embed(path, CountingEncoder(expected=384), ["a"]).cached == 1


def test_another_model_does_not_see_the_vectors(path: Path) -> None:
    embed(path, CountingEncoder(), ["a"])
    other = CountingEncoder("another")
    assert embed(path, other, ["a"]).encoded == 1
    assert embed(path, other, ["a"]).cached == 1


def test_what_was_encoded_before_a_failure_is_cached(path: Path) -> None:
    class Failing(CountingEncoder):
        def encode(self, texts: Sequence[str]) -> Vectors:
            if self.batches:
                raise MemoryError
            return super().encode(texts)

    texts = ["x" * length for length in range(KEPT_TOGETHER + 10)]
    with pytest.raises(MemoryError):
        embed(path, Failing(), texts)
    found = embed(path, CountingEncoder(), texts)
    assert (found.encoded, found.cached) == (10, KEPT_TOGETHER)
    assert np.array_equal(found.vectors, vectors_of(texts))


def test_a_vector_of_another_length_is_replaced(path: Path) -> None:
    encoder = CountingEncoder()
    embed(path, encoder, ["a", "bb"])
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE vectors SET vector = substr(vector, 1, 100)")
    assert embed(path, encoder, ["a", "bb"]).encoded == 2
    assert embed(path, encoder, ["a", "bb"]).cached == 2


@pytest.mark.parametrize("place", [0, 700, 4 * DIMENSION - 1, 4 * DIMENSION])
def test_a_vector_with_a_flipped_bit_is_replaced(path: Path, place: int) -> None:
    """SQLite does not notice it, and the changed vector went into merges and snapshots."""
    encoder = CountingEncoder()
    embed(path, encoder, ["a", "bb"])
    with closing(sqlite3.connect(path)) as database, database:
        ((digest, entry),) = database.execute("SELECT hash, vector FROM vectors ORDER BY hash LIMIT 1").fetchall()
        flipped = entry[:place] + bytes([entry[place] ^ 1]) + entry[place + 1 :]
        database.execute("UPDATE vectors SET vector = ? WHERE hash = ?", (flipped, digest))
    found = embed(path, encoder, ["a", "bb"])
    assert (found.encoded, found.cached) == (1, 1)
    assert np.array_equal(found.vectors, vectors_of(["a", "bb"]))
    assert embed(path, encoder, ["a", "bb"]).cached == 2


def test_the_vector_of_another_text_and_a_text_in_its_place_are_replaced(path: Path) -> None:
    encoder, longest = CountingEncoder(), "x" * (4 * DIMENSION + 4)
    embed(path, encoder, ["a", "bb"])
    swapped = "UPDATE vectors SET vector = (SELECT vector FROM vectors AS other WHERE other.hash > vectors.hash)"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(f"{swapped} WHERE hash = (SELECT min(hash) FROM vectors)")
    assert embed(path, encoder, ["a", "bb"]).encoded == 1
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE vectors SET vector = ?", (longest,))
    assert embed(path, encoder, ["a", "bb"]).encoded == 2


def test_a_cache_of_the_first_version_is_read(path: Path) -> None:
    """Version 0.1.0 wrote this table with a temporary table beside it; its entries stay valid."""
    path.parent.mkdir()
    vector, digest = vectors_of(["abc"]), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute(
            "CREATE TABLE vectors(model TEXT, hash TEXT, vector BLOB, PRIMARY KEY(model, hash)) WITHOUT ROWID"
        )
        database.execute("INSERT INTO vectors VALUES (?, ?, ?)", ("counting", digest, vector.tobytes()))
    found = embed(path, CountingEncoder(), ["abc"])
    assert (found.cached, np.array_equal(found.vectors, vector)) == (1, True)


def test_garbage_in_place_of_the_cache_costs_time_only(path: Path) -> None:
    encoder = CountingEncoder()
    embed(path, encoder, ["a"])
    path.write_bytes(b"garbage" * 1000)
    assert np.array_equal(embed(path, encoder, ["a"]).vectors, vectors_of(["a"]))
    assert embed(path, encoder, ["a"]).cached == 1
    assert path.with_name("embeddings.sqlite.damaged").read_bytes().startswith(b"garbage")


def test_questions_and_passages_are_cached_apart_with_their_prefixes(path: Path) -> None:
    encoder = CountingEncoder(str(ModelName("counting", "query: ", "passage: ")))
    assert embed(path, encoder, ["a"]).encoded == 1
    assert embed_questions(path, encoder, ["a"]).encoded == 1
    assert encoder.batches == [["passage: a"], ["query: a"]]
    assert embed(path, encoder, ["a"]).cached == embed_questions(path, encoder, ["a"]).cached == 1
    other = CountingEncoder(str(ModelName("counting", "", "passage: ")))
    assert embed(path, other, ["a"]).encoded == 1, "the same text under other prefixes is another model's"
