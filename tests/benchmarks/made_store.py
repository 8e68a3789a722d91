"""Generates a store of any size in minutes: synthetic dumps through the real import and the real night, with random
vectors.

The model would take most of the time (some 40 texts a second on two cores) and its vectors do not matter where speed
and memory are measured. So for this one night the encoder answers with the sum of a seeded vector for each word,
which keeps texts of the same words near each other. They are kept under the model's name: such a store is for
measuring only. Later nights, and servers, use the real model.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from zlib import crc32

import generate
import numpy as np

from memstate_core.embed.encoder import DIMENSION, Encoder, Vectors
from memstate_core.ingest.importer import import_paths
from memstate_core.run.store import open_store
from memstate_core.state.current import current_number
from memstate_core.state.home import Home
from memstate_pipeline.run import maintain

OBSERVATIONS_A_TOPIC = 3
_WORD = re.compile(r"\w+")


class MadeEncoder(Encoder):
    """Unit vectors that follow from the words of a text alone."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        """One row a text (float32, len(texts) x 384)."""
        summed = np.array([sum(map(_of_word, _WORD.findall(text.lower())), np.zeros(DIMENSION)) for text in texts])
        lengths = np.linalg.norm(summed, axis=1, keepdims=True)
        return (summed / np.where(lengths > 0, lengths, 1)).astype(np.float32).reshape(-1, DIMENSION)


@cache
def _of_word(word: str) -> np.ndarray:
    return np.random.default_rng(crc32(word.encode())).standard_normal(DIMENSION)


def make(home: Path, topics: int, turns: int, scopes: int, seed: int) -> None:
    """Fills a home; one that has a snapshot already is left as it is."""
    if current_number(Home(home), "s0") is not None:
        return
    store = open_store(home)
    store.home.root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home) as scratch:
        structured, chats = Path(scratch) / "structured.jsonl", Path(scratch) / "chats.jsonl"
        shared = ["--scopes", str(scopes), "--seed", str(seed)]
        rows = str(topics * OBSERVATIONS_A_TOPIC)
        generate.main([str(structured), "--observations", rows, "--topics", str(topics), *shared])
        generate.main([str(chats), "--turns", str(turns), *shared])
        import_paths(store.ledger, store.settings, [structured, chats], now=generate.END, run_id="made")
    own, Encoder.encode = Encoder.encode, MadeEncoder.encode  # type: ignore[method-assign]
    try:
        maintain(store, generate.END)
    finally:
        Encoder.encode = own  # type: ignore[method-assign]


def main(given: Sequence[str] | None = None) -> None:
    """Makes the store that the arguments ask for."""
    parser = argparse.ArgumentParser(description="Make a store of any size, for measuring; its vectors are made up.")
    parser.add_argument("home", type=Path)
    parser.add_argument("--topics", type=int, default=10_000)
    parser.add_argument("--turns", type=int, help="of chats beside them; half as many as topics if left out")
    parser.add_argument("--scopes", type=int, help="one for each 1,000 topics if left out")
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args(given)
    turns, scopes = args.turns or max(1, args.topics // 2), args.scopes or max(1, args.topics // 1000)
    make(args.home, args.topics, turns, scopes, args.seed)


if __name__ == "__main__":
    main()
