"""Small corpora in the form that `load_corpus` gives, and candidate pairs over them."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memstate_core.model.frames import empty
from memstate_core.model.graph_tables import TOPICS, VECTORS
from memstate_core.model.step_frames import EVIDENCE_TOPIC
from memstate_core.revise.constraints import Constraints, constraints
from memstate_core.revise.matching.answers import Answers
from memstate_core.revise.matching.candidates.blocking import Candidates
from memstate_core.revise.matching.comparison.siblings import contradicted
from memstate_core.revise.matching.corpus import Corpus, field_values
from memstate_core.revise.matching.deduplication import Deduplicated, deduplicate
from memstate_core.revise.matching.earlier_merges import EarlierMerges
from memstate_core.revise.matching.texts.tokens import words
from tests.core.revise.test_verdicts import ledger

DIMENSION = VECTORS["embedding"].size  # type: ignore[union-attr]
TOPIC = {"scope": "user:aya", "title": None, "summary": None, "topic_kind": None, "created_at": None}


def corpus(topics: Sequence[Mapping[str, Any]]) -> Corpus:
    """A corpus of topics, given by the keys that they have.

    Keys: id (else numbered), scope, title, summary, topic_kind, created_at, fields (values by name), types (of fields
    that are no strings, by name), sources, keys, vector (else a direction for each word of title and summary).
    """
    given = [TOPIC | {"id": f"t{number:05}"} | dict(topic) for number, topic in enumerate(topics)]
    rows = sorted(given, key=lambda topic: (topic["scope"], topic["id"]))
    schema = {name: TOPICS[name] for name in ("id", *TOPIC)}
    fields = [
        (row, name, json.dumps(value), topic.get("types", {}).get(name, "string"))
        for row, topic in enumerate(rows)
        for name, value in topic.get("fields", {}).items()
    ]
    columns = {"row": pl.Int64, "name": pl.String, "value_json": pl.String, "field_type": pl.String}
    current = pl.DataFrame(fields, orient="row", schema=columns)
    return Corpus(
        pl.DataFrame([{name: topic[name] for name in schema} for topic in rows], schema=schema),
        field_values(current),
        np.array([_vector(topic) for topic in rows], np.float32).reshape(-1, DIMENSION),
        _listed(rows, "source"),
        _listed(rows, "key"),
    )


def every_pair(of: Corpus) -> Candidates:
    """All pairs, whatever their scope, as if every view had seen them."""
    a, b = np.triu_indices(len(of), 1)
    return Candidates(a.astype(np.int64), b.astype(np.int64), np.ones((len(a), 3), bool))


def plain_repeats(of: Corpus, pairs: Candidates) -> NDArray[np.bool_]:
    """Pairs with the same title in which no field contradicts (pairs,)."""
    shares = contradicted(of, of.value_pairs(pairs.a, pairs.b), np.ones(len(pairs), bool))
    return np.asarray((of.title_code[pairs.a] == of.title_code[pairs.b]) & (shares == 0))


def dedupe(
    topics: Sequence[Mapping[str, Any]],
    limits: Constraints | None = None,
    sure: float = 0.9,
    answers: Answers | None = None,
    earlier: EarlierMerges | None = None,
) -> Deduplicated:
    """The result among topics, of which none was merged unless earlier merges are given."""
    limits = limits or constraints(ledger(), empty(EVIDENCE_TOPIC))
    return deduplicate(corpus(topics), limits, sure=sure, answers=answers, earlier=earlier)


def meaning(text: str) -> NDArray[np.float32]:
    """A vector of unit length: texts are as close as they share words."""
    vector = np.zeros(DIMENSION, np.float32)
    np.add.at(vector, [zlib.crc32(word.encode()) % DIMENSION for word in words(text)], 1)
    return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-9), np.float32)


def _vector(topic: Mapping[str, Any]) -> NDArray[np.float32]:
    if "vector" in topic:
        return np.pad(np.asarray(topic["vector"], np.float32), (0, DIMENSION - len(topic["vector"])))
    return meaning(f"{topic['title'] or ''} {topic['summary'] or ''}")


def _listed(rows: Sequence[Mapping[str, Any]], name: str) -> pl.DataFrame:
    listed = [(row, value) for row, topic in enumerate(rows) for value in topic.get(f"{name}s", ())]
    return pl.DataFrame(listed, orient="row", schema={"row": pl.Int64, name: pl.String})
