"""A value that begins after the night that published the snapshot is not presented as what holds now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memstate_core.retrieve.query import Question, answer
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.retrieve.views.fact_pages import FactFilter, facts_page
from memstate_core.retrieve.views.form_topics import form_topics
from memstate_core.retrieve.views.listing import Listing
from memstate_core.retrieve.views.topic import topic_record
from memstate_core.state.damaged_shards import DamagedShards
from tests.core.retrieve.conftest import NOW, START, Store

pytestmark = pytest.mark.slow
TODAY = (NOW - START).days
Opened = Callable[..., list[SnapshotReader]]


@pytest.fixture
def harbour(store: Store, opened: Opened) -> list[SnapshotReader]:
    store.topic("harbour", title="Harbour", topic_kind="place")
    store.field("harbour", "berth", (TODAY + 20, "C3"), (5, "B2"), (1, "A1"))
    store.field("harbour", "crane", (TODAY + 20, "none"))
    store.field("harbour", "pilot", (TODAY, "Ines"), (1, "Bo"))
    return opened(store)


def ask(readers: list[SnapshotReader], store: Store, **given: Any) -> dict[str, Any]:
    answered = answer(readers, store.encoder, None, Question(text="Which berth has the harbour?", **given))
    return {field["name"]: field for field in answered["candidates"][0]["fields"]}


def facts(readers: list[SnapshotReader], **given: Any) -> list[tuple[str, Any]]:
    listing = Listing(readers, None, 100, DamagedShards())
    page, _ = facts_page(listing, FactFilter(**given), None)
    return [(fact["predicate"], fact["object"]) for fact in page]


def values(fields: dict[str, Any]) -> dict[str, list[Any]]:
    return {name: [revision["value"] for revision in field["history"]] for name, field in fields.items()}


def test_a_topic_shows_the_value_in_force(harbour: list[SnapshotReader]) -> None:
    assert values(topic_record(harbour, "harbour")["fields"]) == {"berth": ["B2"], "pilot": ["Ines"]}


def test_its_history_shows_what_is_to_come_too(harbour: list[SnapshotReader]) -> None:
    shown = values(topic_record(harbour, "harbour", history=True)["fields"])
    assert shown == {"berth": ["C3", "B2", "A1"], "crane": ["none"], "pilot": ["Ines", "Bo"]}


@pytest.mark.parametrize("names", [(), ("berth", "crane", "pilot")], ids=["all", "named"])
def test_an_answer_has_the_value_in_force(harbour: list[SnapshotReader], store: Store, names: tuple[str, ...]) -> None:
    found = ask(harbour, store, field_names=names)
    assert {name: field["current"]["value"] for name, field in found.items()} == {"berth": "B2", "pilot": "Ines"}


def test_the_history_in_an_answer_is_that_of_the_value_in_force(harbour: list[SnapshotReader], store: Store) -> None:
    berth = ask(harbour, store, history=True)["berth"]
    assert (berth["current"]["value"], [each["value"] for each in berth["history"]]) == ("B2", ["A1"])


def test_facts_are_those_in_force_and_the_history_has_the_rest(harbour: list[SnapshotReader]) -> None:
    assert facts(harbour) == [("berth", "B2"), ("pilot", "Ines")]
    assert [value for name, value in facts(harbour, history=True) if name == "berth"] == ["C3", "B2", "A1"]


def test_forms_have_the_value_in_force(harbour: list[SnapshotReader]) -> None:
    (found,) = form_topics(harbour, ["user:a"], "place")
    assert {name: revision["value"] for name, revision in found.current.items()} == {"berth": "B2", "pilot": "Ines"}


def test_the_present_is_what_the_past_says_of_that_moment(harbour: list[SnapshotReader]) -> None:
    now, then = (topic_record(harbour, "harbour", as_of=at)["fields"] for at in (None, NOW))
    assert values(now) == values(then)


def test_a_conflict_that_only_a_later_value_ends_is_open(store: Store, opened: Opened) -> None:
    store.topic("harbour", title="Harbour")
    store.field("harbour", "berth", (TODAY + 20, "C3"), (5, "B2"), (5, "A1"))
    ended, shown, rival = store.revisions
    shown |= {"rivals": [rival["id"]], "settled_at": ended["valid_from"]}
    readers = opened(store)
    assert [other["value"] for other in ask(readers, store)["berth"]["conflict"]] == ["A1"]
    assert facts(readers) == [("berth", "B2"), ("berth", "A1")]


def test_evidence_of_the_value_in_force_is_not_superseded(store: Store, opened: Opened) -> None:
    store.topic("harbour", title="Harbour")
    for place, berth in enumerate(("A1", "B2", "C3")):
        store.says("harbour", f"The harbour has berth {berth}", on=place)
    store.field("harbour", "berth", (TODAY + 20, "C3"), (5, "B2"), (1, "A1"))
    for row, evidence in zip(store.revisions, ("o0002", "o0001", "o0000"), strict=True):
        row["evidence_ids"] = [evidence]
    (reader,) = opened(store)
    stated = reader.statements("user:a")
    if reader.facts("user:a") is not None:
        assert stated.superseding.tolist() == [1, -1, -1]
