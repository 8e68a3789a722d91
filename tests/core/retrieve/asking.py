"""Questions to made snapshots, and what their answers contain."""

from __future__ import annotations

from memstate_core.retrieve.query import Question, answer

WORDS_ONLY = frozenset[str]()


def ask(readers, text, store, **given):
    return answer(readers, store.encoder, None, Question(text, **{"scopes": ("user:a",)} | given))


def ids(found):
    return [candidate["topic_id"] for candidate in found["candidates"]]


def said(found):
    return [entry["observation_id"] for entry in found["evidence"]]
