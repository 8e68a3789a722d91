"""The runtimes of the encoder beside `SentenceTransformer.encode` with its defaults, on real short texts.

All encode the same texts in turn, several times in one process, so that other work on the machine meets all of them;
seconds are medians over the rounds. Questions are encoded one at a time on one thread, as a server does. The start is a
process of its own, from its beginning to the first vector. Where there is an NVIDIA GPU, it takes part.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import polars as pl
from language_chats import LANGUAGES, chat
from measures import Measure

from memstate_core.embed.encoder import PACKAGED_MODEL, Encoder, Runtime, Vectors
from memstate_core.embed.gpu_model import GpuModel, has_driver
from memstate_core.embed.sentence_model import model_folder
from memstate_core.serve.snapshots.question_encoder import QuestionEncoder

RUNTIMES: tuple[Runtime, ...] = ("sentence-transformers", "openvino-float32", "auto")
ON_GPU = "auto, many texts"
NEIGHBOURS = 10
NEAR = 0.8
"""The cosine from which two texts count as near duplicates of each other."""
Encode = Callable[[Sequence[str]], Vectors]


def distinct_texts(folders: Sequence[Path], count: int) -> tuple[list[str], list[str]]:
    """Distinct turns and questions of labelled chats, in random order, and the questions alone."""
    turns = [row["text"] for folder in folders for row in _rows(folder / "turns.jsonl") if row.get("text")]
    asked = [row["question"] for folder in folders for row in _rows(folder / "questions.jsonl")]
    texts = list(dict.fromkeys(turns + asked))
    random.Random(7).shuffle(texts)
    return texts[:count], asked


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def in_turn(
    encoders: dict[str, Encode], texts: Sequence[str], rounds: int
) -> tuple[dict[str, Any], dict[str, tuple[float, ...]]]:
    """The vectors of each encoder, and its median seconds and CPU seconds."""
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in encoders}
    vectors = {}
    for _ in range(rounds):
        for name, encode in encoders.items():
            start, worked = time.perf_counter(), time.process_time()
            vectors[name] = encode(texts)
            seconds[name].append((time.perf_counter() - start, time.process_time() - worked))
    return vectors, {name: tuple(map(median, zip(*of, strict=True))) for name, of in seconds.items()}


def agreement(expected: Vectors, found: Vectors) -> dict[str, float]:
    """How near vectors are to the expected ones: cosines, nearest neighbours, and pairs of near duplicates."""
    cosines = (expected * found).sum(axis=1)
    products = [vectors @ vectors.T for vectors in (expected, found)]
    best = []
    for product in products:
        np.fill_diagonal(product, -2)
        best.append(np.argpartition(-product, NEIGHBOURS - 1, axis=1)[:, :NEIGHBOURS])
    shared = [len(set(a) & set(b)) / NEIGHBOURS for a, b in zip(*(rows.tolist() for rows in best), strict=True)]
    near = products[0] >= NEAR
    return {
        "least cosine": float(cosines.min()),
        "same ten nearest": float(np.mean(shared)),
        "near pairs kept": float((products[1][near] >= NEAR).mean()) if near.any() else 1.0,
    }


def questions_alone(texts: Sequence[str]) -> dict[str, float]:
    """Median milliseconds of a question, one after the other on one thread, each runtime in turn."""
    encoders = {name: QuestionEncoder(PACKAGED_MODEL, runtime=name, cached=1) for name in RUNTIMES}
    seconds: dict[str, list[float]] = {name: [] for name in RUNTIMES}
    for text in ["first", *texts]:
        for name, encoder in encoders.items():
            start = time.perf_counter()
            encoder.encode([text])
            seconds[name].append(time.perf_counter() - start)
    return {name: median(of[1:]) * 1000 for name, of in seconds.items()}


def starts(rounds: int) -> dict[str, float]:
    """Median seconds from the start of a process to its first vector."""
    seconds: dict[str, list[float]] = {name: [] for name in RUNTIMES}
    for _ in range(rounds):
        for name, of in seconds.items():
            code = f"from memstate_core.embed.encoder import Encoder; Encoder(runtime={name!r}).encode(['a text'])"
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
            of.append(time.perf_counter() - start)
    return {name: median(of) for name, of in seconds.items()}


def measured(texts: Sequence[str], asked: Sequence[str], rounds: int) -> list[dict[str, Any]]:
    """The figures of `SentenceTransformer.encode` and of each runtime."""
    from sentence_transformers import SentenceTransformer

    def plain(device: str) -> Encode:
        loaded = SentenceTransformer(str(model_folder(PACKAGED_MODEL)), device=device)
        return lambda given: np.asarray(loaded.encode(list(given)))

    encoders = {name: Encoder(runtime=name) for name in RUNTIMES[1:]}
    run_by = {name: encoder.load() for name, encoder in encoders.items()}
    named: dict[str, Encode] = {name: encoder.encode for name, encoder in encoders.items()}
    reference = RUNTIMES[0]
    named = {reference: plain("cpu")} | named
    if has_driver():
        gpu = GpuModel(PACKAGED_MODEL)
        run_by[ON_GPU] = gpu.description
        named |= {f"{reference}, GPU": plain("cuda"), ON_GPU: lambda given: gpu.encode(given, len(given))}
    vectors, seconds = in_turn(named, texts, rounds)
    first, alone = starts(rounds), questions_alone(asked)
    return [
        {
            "runtime": name,
            "run by": run_by.get(name, "SentenceTransformer.encode"),
            "texts/s": len(texts) / seconds[name][0],
            "times": seconds[reference][0] / seconds[name][0],
            "times by CPU": seconds[reference][1] / seconds[name][1],
            **agreement(vectors[reference], vectors[name]),
            "question ms": alone.get(name),
            "first vector s": first.get(name),
        }
        for name in named
    ]


def compared(folders: Sequence[Path], count: int, questions: int, rounds: int) -> list[Measure]:
    """The figures of the runtime that is chosen by default, and their ratios to sentence-transformers.

    Args:
        folders: of labelled chats; the chats of `chats/` if there are none.
        count: texts.
        questions: questions, each encoded alone.
        rounds: how often all texts are encoded.
    """
    texts, asked = distinct_texts(folders, count) if folders else written_texts(count)
    rows = {row["runtime"]: row for row in measured(texts, asked[:questions], rounds)}
    plain, own = rows[RUNTIMES[0]], rows["auto"]
    return [
        Measure(f"{len(texts):,} texts: rate against sentence-transformers", own["times"], "times", least=3.0),
        Measure("the same by CPU", own["times by CPU"], "times"),
        Measure("least cosine to its vectors", own["least cosine"], "", least=0.9999),
        Measure("same ten nearest", own["same ten nearest"], "", least=0.99),
        Measure(
            "a question against sentence-transformers", own["question ms"] / plain["question ms"], "times", most=1 / 3
        ),
        Measure("a question", own["question ms"], "ms"),
        Measure("from process start to first vector", own["first vector s"], "s", most=1.5),
        Measure("the same, sentence-transformers", plain["first vector s"], "s"),
    ]


def written_texts(count: int) -> tuple[list[str], list[str]]:
    """Distinct turns and questions of the chats of `chats/`, and the questions alone."""
    read = [chat(language) for language in LANGUAGES]
    asked = [row["question"] for each in read for row in each.questions]
    texts = list(dict.fromkeys([turn["text"] for each in read for turn in each.turns] + asked))
    random.Random(7).shuffle(texts)
    return texts[:count], asked


def main() -> None:
    """Measures every runtime and prints a table."""
    parser = argparse.ArgumentParser(description="Compare the runtimes of the encoder.")
    parser.add_argument("folders", nargs="+", type=Path, help="directories of labelled chats, as for retrieval.py")
    parser.add_argument("--texts", type=int, default=5000)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    texts, asked = distinct_texts(args.folders, args.texts)
    before = os.getloadavg()[0]
    rows = measured(texts, asked[: args.questions], args.rounds)
    print(f"{len(texts)} texts, load {before:.1f} before and {os.getloadavg()[0]:.1f} after, {os.cpu_count()} cores")
    with pl.Config(tbl_cols=-1, tbl_width_chars=220, fmt_str_lengths=60, float_precision=5):
        print(pl.DataFrame(rows))


if __name__ == "__main__":
    main()
