"""Turns with one hostile value each, as an old ledger may hold them, placed in a process of bounded memory and time.

Run as a module, with the name of a pill: prints the growth of its memory in bytes and its CPU seconds.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from memstate_core.embed.encoder import DIMENSION, Vectors
from memstate_core.placement.segment_edges import with_edges
from memstate_core.placement.segment_vectors import PlacedSegments, SegmentVectors
from memstate_core.placement.turns import place_turns
from memstate_core.placement.vectors import Embeddings, unit
from memstate_core.policy.settings import Settings
from tests.core.placement.talk import BEGAN, talk, turn

MEMORY, SECONDS = 2 << 30, 20
LARGE = 2_000_000


def same_text(character: str) -> list[dict[str, Any]]:
    return [turn(0, character * (LARGE // len(character)))]


PILLS: dict[str, Callable[[], list[dict[str, Any]]]] = {
    "plain": lambda: [turn(at, f"We spoke of the Acme renewal {at}") for at in range(9)],
    "a name of one long word": lambda: [turn(at, "Hello there", actor=f"{at}" + "x" * 60_000) for at in range(3)],
    "many names of one long word": lambda: [turn(at, "Hello", actor=f"{at:05}" + "x" * 2_000) for at in range(500)],
    "a name of many words": lambda: [turn(0, "Hello", actor=" ".join(f"w{at:05}" for at in range(10_000)))],
    "a long session id": lambda: [turn(at, "Hello there", session="s" * LARGE) for at in range(9)],
    "letters": lambda: same_text("x"),
    "short words": lambda: same_text("a "),
    "lines": lambda: same_text("a\n"),
    "sentences": lambda: same_text("It is Kuzu now. "),
    "brackets": lambda: same_text("["),
    "tags that do not close": lambda: same_text("<a [x] "),
    "addresses": lambda: same_text("(z-www.b"),
    "mail addresses": lambda: same_text("a@"),
    "marks": lambda: same_text("."),
    "combining marks": lambda: same_text("\u0301\u0323"),
    "ligatures": lambda: same_text("\ufdfa"),
    "unspaced": lambda: same_text("\u9676\u827a"),
    "names": lambda: [turn(0, " ".join(f"it is Name{at:05}" for at in range(LARGE // 16)))],
}


def names() -> pl.DataFrame:
    """Names that contain each other, and many of one word."""
    nested = [("a " * words + "a", f"nested {words}") for words in range(2, 39)]
    single = [(f"Name{at:05}", f"single {at}") for at in range(20_000)]
    rows = [("user:aya", topic, name, None) for name, topic in [("Kuzu", "kuzu"), *nested, *single]]
    schema = {"scope": pl.String, "topic_id": pl.String, "name": pl.String, "since": pl.Datetime("us", "UTC")}
    return pl.DataFrame(rows, schema=schema, orient="row")


def place(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Segments with edges of the turns, in a scope that knows many names."""
    evidence = talk(*rows)
    nothing = Embeddings(
        pl.Series([], dtype=pl.String), pl.Series([], dtype=pl.String), np.zeros((0, DIMENSION), dtype=np.float32)
    )
    no_titles, none_taken = (pl.DataFrame(schema={key: pl.String, "title": pl.String}) for key in ("id", "scope"))
    past = PlacedSegments(SegmentVectors.empty(), nothing)
    segments = place_turns(evidence, nothing, no_titles, none_taken, past, random_vectors, Settings())
    return with_edges(segments, evidence, names())


def random_vectors(texts: Any) -> Vectors:
    return unit(np.random.default_rng(len(texts)).standard_normal((len(texts), DIMENSION)))


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def main(pill: str) -> None:
    place(PILLS["plain"]())
    rows, used = PILLS[pill](), peak()
    held = (
        int(
            next(
                line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmSize")
            ).split()[1]
        )
        << 10
    )
    resource.setrlimit(resource.RLIMIT_AS, (held + MEMORY, held + MEMORY))
    began = time.process_time()
    segments = place(rows)
    assert segments.height
    assert segments["began_at"].min() == BEGAN
    print(json.dumps({"bytes": peak() - used, "seconds": time.process_time() - began}))


if __name__ == "__main__":
    main(sys.argv[1])
