"""The comparison of runtimes: what it counts as agreement, and that every runtime is measured."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest


@pytest.fixture(scope="module")
def script() -> Iterator[ModuleType]:
    """The script as a module; it is outside of any package, beside the modules that it imports."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parents[1]))
        yield import_module("encoding")


def test_agreement_falls_with_noise(script: ModuleType) -> None:
    draws = np.random.default_rng(7)
    vectors = draws.normal(size=(60, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    same, noisy = script.agreement(vectors, vectors), vectors + draws.normal(scale=0.3, size=vectors.shape)
    other = script.agreement(vectors, (noisy / np.linalg.norm(noisy, axis=1, keepdims=True)).astype(np.float32))
    assert same == pytest.approx({"least cosine": 1.0, "same ten nearest": 1.0, "near pairs kept": 1.0})
    assert all(other[name] < same[name] for name in same)


@pytest.mark.slow
def test_every_runtime_is_measured(script: ModuleType, tmp_path: Path) -> None:
    turns = [json.dumps({"text": f"Boat {number} left the harbour."}) for number in range(40)]
    (tmp_path / "turns.jsonl").write_text("\n".join(turns))
    (tmp_path / "questions.jsonl").write_text(json.dumps({"question": "Which boat left?"}))
    texts, asked = script.distinct_texts([tmp_path], 30)
    rows = script.measured(texts, asked, 1)
    assert (len(texts), asked) == (30, ["Which boat left?"])
    assert [row["runtime"] for row in rows] == [*script.RUNTIMES]
    assert min(row["least cosine"] for row in rows) >= 0.9999
