"""Our BM25 index beside bm25s (Lù 2024), on the turns of synthetic chats in many scopes.

Both get the same terms and parameters, and both store weights that are computed when the index is built. Ours is one
index with the statistics of each scope (`memstate_core.retrieve.index.bm25`). bm25s has no scopes, so it is either one
index a scope, which gives the same scores, or one index over all, whose statistics mix what scopes hold. Each index is
built in one process and queried in another, so that memory is that of querying alone.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import bm25s
import numpy as np
import numpy.typing as npt
import polars as pl
from drawing import Spec
from generate import turn_chunks

from memstate_core.model.terms import question_terms, terms
from memstate_core.retrieve.index.bm25 import K1, B, Postings, runs_of, term_key, weigh, write_runs
from memstate_core.retrieve.index.layout import Places, place_scopes, scope_layout, write_rows

Scores = npt.NDArray[np.float64]
Ask = Callable[[str, list[str]], Scores]
"""Scores of a scope's documents for the terms of a question."""

KINDS = ("ours", "bm25s a scope", "bm25s over all")


def documents(turns: int, scopes: int) -> pl.DataFrame:
    """Synthetic turns (columns scope and text), sorted by scope."""
    lines = pl.concat(list(turn_chunks(Spec(turns, 1, scopes, 7))))
    read = pl.Struct({"scope": pl.Struct({"type": pl.String, "id": pl.String}), "text": pl.String})
    rows = lines.str.json_decode(read).struct.unnest()
    scope = pl.format("{}:{}", pl.col("scope").struct.field("type"), pl.col("scope").struct.field("id"))
    return rows.select("text", scope=scope).sort("scope", maintain_order=True)


def tokens(texts: pl.Series) -> list[list[str]]:
    """The terms of each text."""
    rows = texts.to_frame("text").with_row_index("row")
    found = terms(rows).sort("row", "term").group_by("row", maintain_order=True).agg("term")
    return rows.join(found, on="row", how="left", maintain_order="left")["term"].fill_null([]).to_list()


def build_ours(folder: Path, rows: pl.DataFrame) -> None:
    """Writes our index."""
    layout = scope_layout(rows)
    found = terms(rows.select("text").with_row_index("row")).select("row", key=term_key(pl.col("term")))
    counts = found.group_by("row", "key").agg(n=pl.len())
    places = write_runs(folder / "words", [runs_of(weigh(counts, layout, ["n"]), layout, ["n"])])
    write_rows(place_scopes({"document": layout, "term": places}), folder / "scopes.parquet")


def build_bm25s(folder: Path, rows: pl.DataFrame) -> None:
    """Writes one index of bm25s, with the formula and the parameters of ours."""
    index = bm25s.BM25(method="lucene", k1=K1, b=B)
    index.index(tokens(rows["text"]), show_progress=False)
    index.save(folder)


def build(kind: str, folder: Path, rows: pl.DataFrame) -> None:
    """Writes the index of a kind."""
    if kind == "ours":
        build_ours(folder, rows)
    elif kind == "bm25s over all":
        build_bm25s(folder / "all", rows)
    else:
        for part in rows.partition_by("scope", maintain_order=True):
            build_bm25s(folder / part["scope"][0], part)


def opened(kind: str, folder: Path, layout: dict[str, tuple[int, int]]) -> Ask:
    """Opens an index, memory-mapped; `layout` says where each scope's documents start and how many there are."""
    if kind == "ours":
        postings, places = Postings(folder / "words"), Places(folder / "scopes.parquet")

        def ours(scope: str, asked: list[str]) -> Scores:
            first, count = places.of(scope, "term")
            return postings.scores(asked, first=first, count=count, documents=layout[scope][1])[:, 0]

        return ours
    whole = kind == "bm25s over all"
    names = ["all"] if whole else list(layout)
    indexes = {name: bm25s.BM25.load(folder / name, mmap=True) for name in names}

    def theirs(scope: str, asked: list[str]) -> Scores:
        index = indexes["all" if whole else scope]
        known = [term for term in asked if term in index.vocab_dict]
        first, count = layout[scope]
        scores = index.get_scores(known) if known else np.zeros(first + count if whole else count)
        return np.asarray(scores[first : first + count] if whole else scores, dtype=np.float64)

    return theirs


def questions(rows: pl.DataFrame, count: int) -> list[tuple[str, list[str]]]:
    """Turns drawn as questions, each with the scope that it is asked in."""
    drawn = rows.sample(count, seed=7)
    return [(scope, question_terms(text)) for scope, text in drawn.select("scope", "text").rows()]


def agreement(ours: Ask, theirs: Ask, asked: Sequence[tuple[str, list[str]]]) -> dict[str, float]:
    """The agreement of scores, each divided by its question's highest, and how many of the ten best are the same."""
    worst, shared = 0.0, []
    for scope, wanted in asked:
        pair = [ask(scope, wanted) for ask in (ours, theirs)]
        a, b = (scores / scores.max() for scores in pair)
        worst = max(worst, float(np.abs(a - b).max()))
        least = np.partition(a, -min(10, len(a)))[-min(10, len(a))]
        best = np.argsort(-b, kind="stable")[:10]
        shared.append(float((a[best] >= least - 1e-6).mean()))
    return {"largest difference": worst, "same ten best": float(np.mean(shared))}


def measured(kind: str, folder: Path, layout: dict[str, Any], asked: Sequence[tuple[str, list[str]]]) -> dict[str, Any]:
    """Opens and queries an index in this process; CPU time, which other work on the machine disturbs least."""
    before, start = _resident_mib(), time.process_time()
    ask = opened(kind, folder, layout)
    opening, seconds = time.process_time() - start, []
    for scope, wanted in asked:
        start = time.process_time()
        ask(scope, wanted)
        seconds.append(time.process_time() - start)
    p50, p99 = np.quantile(seconds, [0.5, 0.99]) * 1000
    return {"open s": opening, "p50 ms": p50, "p99 ms": p99, "MiB": _resident_mib() - before}


def _resident_mib() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


def _part(step: str, kind: str, root: Path) -> dict[str, Any]:
    """One step in a process of its own."""
    command = [sys.executable, __file__, "--step", step, "--kind", kind, "--folder", str(root)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def _stepped(step: str, kind: str, root: Path) -> dict[str, Any]:
    if step == "ask":
        given = json.loads((root / "asked.json").read_text())
        return measured(kind, root / kind, given["layout"], given["asked"])
    rows = pl.read_parquet(root / "rows.parquet")
    start = time.process_time()
    build(kind, root / kind, rows)
    return {"build s": time.process_time() - start}


def main() -> None:
    """Builds and asks each kind of index, and prints a table."""
    parser = argparse.ArgumentParser(description="Compare our BM25 index with bm25s.")
    parser.add_argument("--turns", type=int, default=100_000)
    parser.add_argument("--scopes", type=int, default=100)
    parser.add_argument("--questions", type=int, default=300)
    parser.add_argument("--step", choices=("build", "ask"), help=argparse.SUPPRESS)
    parser.add_argument("--kind", choices=KINDS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.step:
        print(json.dumps(_stepped(args.step, args.kind, args.folder)))
        return
    with tempfile.TemporaryDirectory() as folder, pl.Config(tbl_cols=-1, tbl_width_chars=200):
        print(pl.DataFrame(compared(Path(folder), documents(args.turns, args.scopes), args.questions)))


def compared(root: Path, rows: pl.DataFrame, count: int) -> list[dict[str, Any]]:
    """The figures of each kind of index on these documents (columns scope and text, sorted by scope)."""
    layout = {scope: (first, size) for scope, first, size in scope_layout(rows).rows()}
    asked = questions(rows, count)
    rows.write_parquet(root / "rows.parquet")
    (root / "asked.json").write_text(json.dumps({"layout": layout, "asked": asked}))
    found = []
    for kind in KINDS:
        figures = _part("build", kind, root) | _part("ask", kind, root)
        files = [file for file in (root / kind).rglob("*") if file.is_file()]
        size = {"files": len(files), "MB": sum(file.stat().st_size for file in files) / 1e6}
        same = agreement(opened("ours", root / "ours", layout), opened(kind, root / kind, layout), asked)
        found.append({"index": kind, **figures, **size, **same})
    return found


if __name__ == "__main__":
    main()
