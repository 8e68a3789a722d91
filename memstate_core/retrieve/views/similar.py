"""Topics of a scope that are similar to a text, by the same scores as a query's topics, without evidence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from memstate_core.embed.encoder import Encoder
from memstate_core.model.terms import question_terms
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.retrieve.scoring import PreparedQuestion, topic_parts, topic_similarity
from memstate_core.retrieve.standard_scores import total

SIMILAR = 8
"""The most topics returned."""

LIKE = 0.3
"""The least cosine of a similar topic that shares no word with a text; unrelated topics are seldom above it."""


def similar_topics(
    readers: Sequence[SnapshotReader], scope: str, text: str, encoder: Encoder | None, *, but: str | None = None
) -> list[str]:
    """The served topics of a scope that are most similar to a text, best first.

    Args:
        readers: the open snapshots of the store's shards.
        scope: the scope to search.
        text: a title and a summary.
        encoder: compares embeddings too; None compares words only, at little cost.
        but: a topic to leave out.

    Returns:
        At most `SIMILAR` ids, of topics that share a word with the text or have a cosine of at least `LIKE`.
    """
    reader = next((reader for reader in readers if scope in reader.scopes), None)
    if reader is None or not text.strip():
        return []
    topics, terms = reader.topics(scope), question_terms(text)
    vector = None if encoder is None else encoder.encode(encoder.passages([text]))[0]
    unknown = np.full(topics.frame.height, np.nan)
    asked = PreparedQuestion(text, terms, terms, vector, vector, dated=False)
    similarity = topic_similarity(topics, asked)
    is_similar = (topics.terms.scores(terms)[:, 0] > 0) | (np.nan_to_num(similarity) >= LIKE)
    scores = total(topic_parts(topics, asked, unknown, similarity).values())
    ranked = sorted((-scores[row], topics.ids[row]) for row in np.flatnonzero(is_similar))
    return [topic for _, topic in ranked if topic != but][:SIMILAR]
