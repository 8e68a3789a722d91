"""Turns of talk for tests, and an encoder of words: texts that share words have near vectors, on every machine."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import polars as pl

from memstate_core.embed.encoder import DIMENSION, Vectors
from memstate_core.model.ledger_tables import EVIDENCE
from memstate_core.placement.vectors import unit
from tests.core.frames import filled

BEGAN = datetime(2026, 1, 5, 9, tzinfo=UTC)


def bag_of_words(texts: Sequence[str]) -> Vectors:
    """Unit vectors of texts: the sum of a fixed random direction for each distinct word."""
    return unit(np.stack([_bag(text) for text in texts]) if len(texts) else np.zeros((0, DIMENSION)))


def _bag(text: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    words = sorted(set(re.findall(r"\w+", text.lower())))
    rows = [np.random.default_rng(_seed(word)).standard_normal(DIMENSION) for word in words]
    return np.sum(rows, axis=0) if rows else np.zeros(DIMENSION)


def _seed(word: str) -> int:
    return int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")


def turn(number: int, text: str | None, *, session: str | None = "s", **said: Any) -> dict[str, Any]:
    """One turn of evidence (columns EVIDENCE)."""
    plain = {"scope": "user:aya", "kind": "user_message", "actor": "Aya" if number % 2 else "Ben"}
    moment = BEGAN + timedelta(minutes=number)
    own = {"evidence_id": f"e{number:05}", "session_id": session, "turn": number, "observed_at": moment, "text": text}
    return plain | own | said


def talk(*turns: dict[str, Any]) -> pl.DataFrame:
    """Turns as the ledger holds them (columns EVIDENCE)."""
    names = {name for row in turns for name in row} | {"text"}
    return filled(pl.DataFrame(turns, schema={name: EVIDENCE[name] for name in EVIDENCE if name in names}), EVIDENCE)


def sessions(*texts: Sequence[str], scope: str = "user:aya", days: int = 1) -> pl.DataFrame:
    """A session a list of texts, days apart."""
    rows, number = [], 0
    for place, said in enumerate(texts):
        for text in said:
            at = BEGAN + timedelta(days=days * place, minutes=number)
            rows.append(turn(number, text, session=f"s{place}", observed_at=at, scope=scope))
            number += 1
    return talk(*rows)
