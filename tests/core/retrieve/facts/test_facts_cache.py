"""Cached facts are those that were read, and no reader of an answer can change them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memstate_core.retrieve.facts import facts_cache
from memstate_core.retrieve.facts.facts import Facts
from memstate_core.retrieve.facts.facts_cache import FactsCache
from memstate_core.retrieve.query import Question, answer
from memstate_core.retrieve.reader import SnapshotReader
from tests.core.retrieve.conftest import Store


class Reading:
    """Reads a field and a warning for every topic but `bare`, and notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def __call__(self, ids: list[str]) -> Facts:
        self.asked.append(ids)
        known = [topic for topic in ids if topic != "bare"]
        fields: dict[str, Any] = {topic: {"name": {"of": topic}} for topic in known}
        return Facts(fields, {}, {topic: [{"kind": "stale", "of": topic}] for topic in known})


def test_only_what_is_not_cached_is_read_and_the_answer_is_the_same() -> None:
    known, read = FactsCache(), Reading()
    first = known.of(["a", "bare"], read)
    assert first == Reading()(["a", "bare"])
    assert known.of(["b", "a", "bare"], read) == Reading()(["b", "a", "bare"])
    assert read.asked == [["a", "bare"], ["b"]]
    known.clear()
    known.of(["a"], read)
    assert read.asked[-1] == ["a"]


def test_the_least_recently_used_are_evicted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts_cache, "CAPACITY", 2)
    known, read = FactsCache(), Reading()
    for ids in (["a"], ["b"], ["a"], ["c"]):
        known.of(ids, read)
    known.of(["a"], read)
    assert read.asked == [["a"], ["b"], ["c"]]
    known.of(["b"], read)
    assert read.asked[-1] == ["b"]
    assert known.of(["d", "e", "f"], read) == Reading()(["d", "e", "f"]), "more than the capacity is answered"


def test_changing_an_answer_changes_no_other(store: Store, opened: Callable[[Store], list[SnapshotReader]]) -> None:
    """From answers to callers of some scopes names are taken out in place."""
    store.topic("boat", title="The boat")
    store.field("boat", "owner", (3, "Aya"), ref_topic_id="aya", ref_state="dangling", field_type="string")
    readers, asked = opened(store), Question("Whose boat?", scopes=("user:a",))
    first, again = (answer(readers, store.encoder, None, asked) for _ in range(2))
    assert first == again
    [candidate] = first["candidates"]
    [field] = candidate["fields"]
    candidate["warnings"].append({"kind": "mine"})
    field["ref_topic_id"] = field["current"]["value"] = "mine"
    field["conflict"].append("mine")
    assert answer(readers, store.encoder, None, asked) == again
