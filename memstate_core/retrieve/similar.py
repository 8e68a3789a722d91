"""Topics of a scope that are like a text, by the very scores of a query's topics, without its evidence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from memstate_core.embed.encoder import Encoder
from memstate_core.model.terms import question_terms
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.retrieve.scoring import Asked, topic_parts, total
from memstate_core.retrieve.search import best_first

SIMILAR = 8
"""How many are named."""

LIKE = 0.3
"""The cosine from which a topic that shares no word is like a text; unrelated ones are seldom above it."""


def similar_topics(
    readers: Sequence[SnapshotReader], scope: str, text: str, encoder: Encoder | None, *, but: str | None = None
) -> list[str]:
    """The served topics of a scope that are most like a text, best first.

    Args:
        readers: the open snapshots of the store's shards.
        scope: where to look.
        text: a title and a summary.
        encoder: compares meaning too; None compares words only, which costs little.
        but: a topic that is not meant.

    Returns:
        At most `SIMILAR` ids, of topics that share a word with the text or are near it in meaning.
    """
    reader = next((reader for reader in readers if scope in reader.scopes), None)
    if reader is None or not text.strip():
        return []
    topics, terms = reader.topics(scope), question_terms(text)
    vector = None if encoder is None else encoder.encode([text])[0]
    unknown = np.full(topics.frame.height, np.nan)
    parts, cosine = topic_parts(topics, Asked(text, terms, vector, dated=False), unknown)
    is_like = (topics.words.scores(terms)[:, 0] > 0) | (np.nan_to_num(cosine) >= LIKE)
    scored = topics.frame.select("id", pl.Series("score", total(parts))).filter(pl.Series(is_like))
    return best_first(scored.filter(pl.col("id") != (but or "")), "id")["id"].head(SIMILAR).to_list()
