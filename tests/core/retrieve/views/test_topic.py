"""One topic by id, alias or tombstone."""

from __future__ import annotations

import pytest

from memstate_core.model.errors import TopicNotFound
from memstate_core.retrieve.views.topic import titled, topic_record
from tests.core.retrieve.conftest import Store, day


@pytest.fixture
def readers(store, opened):
    store.topic("acme", title="Acme Ltd", summary="A customer", topic_kind="deal", created_at=day(1))
    store.field("acme", "owner", (9, "Aya"), (5, "Priya"), salience=2.0)
    store.field("acme", "price", (8, {"amount": 3.5}), field_type="json")
    store.field("acme", "title", (7, "Acme Ltd"), (1, "Acme"), part="topic")
    store.topic("base", title="Base")
    store.topic("left", title="Acme left", state="merged", merged_into="acme")
    store.topic("first", title="Acme first", state="merged", merged_into="left")
    store.edge("acme", "base", "part_of", valid_from=day(2), evidence_ids=["e1"])
    store.aliases.append({"alias": "by-title", "scope": "user:a", "topic_id": "first"})
    return opened(Store(), store)


def test_a_record_has_what_the_design_lists(readers):
    record = topic_record(readers, "acme")
    owner = record["fields"].pop("owner")
    assert [revision["value"] for revision in owner.pop("history")] == ["Aya"]
    assert owner == {"field_type": "string", "ref_topic_id": None, "salience": 2.0, "detached": False, "conflict": []}
    [price] = record.pop("fields")["price"]["history"]
    assert price["value"] == {"amount": 3.5}
    assert record == {
        "id": "acme", "scope": "user:a", "title": "Acme Ltd", "summary": "A customer", "topic_kind": "deal",
        "salience": 1.0, "failed_salience": 0.0, "embedding_model": "words", "text_hash": "acme", "state": "active",
        "archived": False, "pinned": False, "merged_into": None, "created_at": "2026-01-02T00:00:00Z",
        "updated_at": "2026-01-01T00:00:00Z", "stale": None, "warnings": [],
        "edges": [{"from": "acme", "to": "base", "kind": "part_of", "valid_from": "2026-01-03T00:00:00Z",
                   "valid_until": None, "evidence_ids": ["e1"], "detached": False}],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("  ACME   ltd ", [("acme", True)]),
        ("base", [("base", True), ("other-base", True)]),
        ("acme", [("acme", False)]),
        ("of a", [("long", False)]),
        ("left", []),
        (" ", []),
    ],
)
def test_topics_are_found_by_title_and_tombstones_are_not(store, opened, text, found):
    store.topic("acme", title="Acme Ltd")
    store.topic("base", title="Base")
    store.topic("other-base", title="Base", salience=0.5)
    store.topic("long", title="History of a harbour")
    store.topic("left", title="Acme left", state="merged", merged_into="acme")
    topics = titled(opened(Store(), store), text)
    assert topics.select("id", "is_equal").rows() == found


def test_history_gives_every_revision_and_the_topics_own(readers):
    record = topic_record(readers, "acme", history=True)
    assert [revision["value"] for revision in record["fields"]["owner"]["history"]] == ["Aya", "Priya"]
    assert [revision["value"] for revision in record["topic_history"]["title"]] == ["Acme Ltd", "Acme"]


def test_as_of_gives_the_topic_of_then(readers):
    record = topic_record(readers, "acme", as_of=day(6))
    assert list(record["fields"]) == ["owner"]
    assert [revision["value"] for revision in record["fields"]["owner"]["history"]] == ["Priya"]
    assert record["title"] == "Acme"
    assert topic_record(readers, "acme", as_of=day(1))["edges"] == []
    with pytest.raises(TopicNotFound, match="as of 2026-01-01"):
        topic_record(readers, "acme", as_of=day(0))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "passed"), [("left", ["left"]), ("first", ["first", "left"]), ("by-title", ["by-title", "first", "left"])]
)
def test_tombstones_and_aliases_lead_to_the_survivor(readers, asked, passed):
    record = topic_record(readers, asked)
    assert (record["id"], record["resolved_from"]) == ("acme", passed)


def test_an_unknown_id_is_an_error_that_names_the_snapshots(readers):
    with pytest.raises(TopicNotFound, match="'nobody' in snapshot s0/3, s1/3"):
        topic_record(readers, "nobody")
