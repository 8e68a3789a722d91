"""The forms that say something about other items: relations, facts, verification records."""

from __future__ import annotations

from typing import Any

import pytest

from memstate_core.model.forms.item import item_of
from memstate_core.model.ids import uuid_text

SCOPE = {"type": "user", "id": "aya"}
RELATION = {"type": "relation", "source": "key:new", "relation": "supersedes", "target": "key:old"}
FACT = {"type": "fact", "subject": "title:Acme", "predicate": "owner", "object": "Aya"}
RECORD = {"type": "verification", "target": "observation:crm/42", "status": "failed"}


def row(memory: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"scope": SCOPE, "observed_at": "2026-01-01T00:00:00Z", "memory": memory} | more


def kept(desk: Any) -> dict[str, Any]:
    [found] = desk.evidence()
    return found


def test_a_relation_is_an_edge_of_the_topic_that_it_starts_from(desk):
    window = {"valid_from": "2025-01-01", "valid_until": "2030-01-01"}
    assert desk.rows(row(RELATION | window)).accepted == 1
    [edge] = kept(desk)["edges"]
    assert kept(desk)["topic_key"] == "new"
    assert (edge["kind"], edge["to_topic_id"]) == ("supersedes", uuid_text("key", "user:aya", "old"))
    assert (edge["valid_from"].year, edge["valid_until"].year) == (2025, 2030)
    assert kept(desk)["text"] == "key:new supersedes key:old"


def test_a_relation_with_a_date_that_is_none_is_in_force(desk):
    assert desk.rows(row(RELATION | {"valid_from": "long ago", "valid_until": "soon"})).accepted == 1
    [edge] = kept(desk)["edges"]
    assert (edge["valid_from"], edge["valid_until"]) == (None, None)
    assert '"valid_until":"soon"' in kept(desk)["payload_json"]


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("topic:t-1", None, "t-1"),
        ("key:acme", None, uuid_text("key", "user:aya", "acme")),
        ("title: ACME  Ltd", "Company", uuid_text("title", "user:aya", "company", "acme ltd")),
        ("block:persona", None, uuid_text("key", "user:aya", "memory:core_block:persona")),
        ("session:s/1", None, uuid_text("key", "user:aya", "memory:session_state:s/1")),
        ("resource:file:///a", None, uuid_text("key", "user:aya", "memory:resource:file:///a")),
        ("observation:crm/42", None, "memory:ref:user:aya:observation:crm/42"),
    ],
)
def test_an_item_is_found_by_the_id_of_its_topic_in_the_scope(text, kind, expected):
    item = item_of(text, kind)
    assert item is not None
    assert item.topic_id("user:aya") == expected
    assert item.topic_id("user:ben") != expected or item.prefix == "topic"


def test_a_literal_fact_is_a_value_of_a_field_that_ends_with_a_null(desk):
    window = {"valid_from": "2025-01-01", "valid_until": "2025-06-01", "confidence": 0.7, "sources": ["crm/1"]}
    assert desk.rows(row(FACT | window)).accepted == 1
    found = kept(desk)
    assert (found["title"], found["topic_key"], found["edges"]) == ("Acme", None, [])
    assert [(each["value_json"], each["confidence"], each["valid_from"].month) for each in found["fields"]] == [
        ('"Aya"', 0.7, 1),
        ("null", None, 6),
    ]
    assert found["fields"][0]["why_changed"] == "from crm/1"


@pytest.mark.parametrize(
    ("value", "kind"), [(3, "int"), (0.5, "float"), (True, "bool"), ([1], "list"), ({"a": 1}, "json")]
)
def test_the_object_of_a_fact_keeps_its_type(desk, value, kind):
    assert desk.rows(row(FACT | {"object": value})).accepted == 1
    assert kept(desk)["fields"][0]["field_type"] == kind


def test_a_fact_about_two_topics_is_an_edge(desk):
    fact = {"type": "fact", "subject": "key:harbour", "predicate": "run_by", "object_item": "title:Acme"}
    assert desk.rows(row(fact | {"object_kind": "company", "valid_until": "2030-01-01"})).accepted == 1
    [edge] = kept(desk)["edges"]
    assert (edge["kind"], edge["to_topic_id"]) == ("run_by", uuid_text("title", "user:aya", "company", "acme"))
    assert kept(desk)["fields"] == []


def test_a_verification_record_is_a_field_that_refers_to_its_target(desk):
    assert desk.rows(row(RECORD | {"check": "file", "message": "gone", "checked_at": "2025-12-01"})).accepted == 1
    [field] = kept(desk)["fields"]
    assert field["name"] == "file observation:crm/42"
    assert field["ref_topic_id"] == "memory:ref:user:aya:observation:crm/42"
    assert field["value_json"] == '{"check":"file","message":"gone","status":"failed","target":"observation:crm/42"}'
    assert field["valid_from"].month == 12


@pytest.mark.parametrize(
    ("memory", "reason", "named"),
    [
        (RELATION | {"relation": "likes"}, "unknown_word", "expected one of contradicts, derives"),
        (RELATION | {"source": "acme"}, "bad_value", "$.memory.source is 'acme', expected an item: topic:ID"),
        (RELATION | {"target": "key: "}, "bad_value", "$.memory.target"),
        (RELATION | {"target": "key:new"}, "bad_value", "like the source"),
        (RELATION | {"valid_from": "2999-01-01"}, "future_time", "valid_from"),
        (FACT | {"subject": "block:persona"}, "bad_value", "$.memory.subject"),
        (FACT | {"predicate": " "}, "missing_content", "$.memory.predicate is blank"),
        (FACT | {"object": None}, "missing_content", "$.memory.object is missing"),
        (FACT | {"object_item": "key:b"}, "bad_value", "stands beside object_item"),
        (FACT | {"confidence": 1.5}, "bad_value", "$.memory.confidence is 1.5"),
        (FACT | {"valid_from": "2025-02-01", "valid_until": "2025-01-01"}, "bad_value", "a time after valid_from"),
        (FACT | {"valid_until": "2025-01-01"}, "missing_content", "$.memory.valid_from is missing"),
        (FACT | {"valid_from": "2025-01-01", "valid_until": "2999-01-01"}, "future_time", "$.memory.valid_until"),
        (
            {"type": "fact", "subject": "key:a", "predicate": "p", "object_item": "key:b", "confidence": 0.5},
            "bad_value",
            "$.memory.confidence stands beside object_item",
        ),
        (RECORD | {"status": "fine"}, "unknown_word", "expected one of failed, passed"),
        (RECORD | {"target": "crm/42"}, "bad_value", "$.memory.target"),
        (RECORD | {"checked_at": "yesterday"}, "bad_time", "$.memory.checked_at"),
    ],
)
def test_what_is_wrong_is_quarantined_with_its_reason(desk, memory, reason, named):
    report = desk.rows(row(memory), row(RELATION))
    assert (report.accepted, report.reasons) == (1, {reason: 1})
    [refused] = desk.quarantine()
    assert named in refused["detail"]


@pytest.mark.parametrize(
    "given",
    [
        {"topic_id": "memory:ref:user:ben:observation:1"},
        {"title": "A", "edges": [{"kind": "part_of", "to_topic_id": "memory:ref:user:ben:observation:1"}]},
        {"title": "A", "fields": [{"name": "n", "value": "v", "ref_topic_id": "memory:ref:user:ben:observation:1"}]},
    ],
)
def test_no_other_record_refers_to_the_observation_of_a_scope(desk, given):
    assert desk.rows({"scope": SCOPE, "text": "x", "summary": "s"} | given).reasons == {"bad_value": 1}


@pytest.mark.parametrize(
    ("memory", "found"),
    [
        (RELATION | {"source": "title:persona", "source_kind": "memory:core_block"}, "source_kind"),
        (RELATION | {"target": "title:persona", "target_kind": "memory:resource"}, "target_kind"),
        (FACT | {"subject": "title:persona", "subject_kind": "memory:core_block"}, "subject_kind"),
        (RELATION | {"source": "key:memory:core_block:persona"}, "source"),
        (RECORD | {"target": "key:memory:resource:a"}, "target"),
    ],
)
def test_a_topic_that_only_forms_write_is_no_title_or_key(desk, memory, found):
    """With such a kind the record passed for one with a form, and had no topic at all."""
    assert desk.rows(row(memory)).accepted == 0
    [refused] = desk.quarantine()
    assert refused["reason"] == "bad_value"
    assert refused["detail"].startswith(f"$.memory.{found} is ")
    assert "block:LABEL" in refused["detail"]
