"""Detached and archived parts are left out of default answers and returned when requested explicitly."""

from __future__ import annotations

import json

import pytest

from memstate_core.retrieve.index.facts_files import fact_problems
from memstate_core.retrieve.query import Question, answer
from memstate_core.retrieve.views.export import export_records
from memstate_core.retrieve.views.fact_pages import FactFilter, facts_page
from memstate_core.retrieve.views.listing import Listing
from memstate_core.retrieve.views.topic import topic_record
from memstate_core.state.damaged_shards import DamagedShards
from tests.core.retrieve.conftest import Store, day

pytestmark = pytest.mark.slow


@pytest.fixture
def readers(store, opened):
    store.topic("acme", title="Acme renewal", summary="The contract")
    store.field("acme", "owner", (9, "Aya"))
    store.field("acme", "note", (5, "gate code"), detached=True)
    store.topic("boat", title="Boat shed")
    store.topic("old", title="Acme of old", state="archived", created_at=day(2))
    store.field("old", "price", (3, "cheap"))
    store.field("old", "shade", (3, "grey"), detached=True)
    store.edge("acme", "boat", "mentions", detached=True)
    store.edge("acme", "old", "cites")
    store.edge("boat", "acme", "cites")
    return opened(store)


def ask(readers, store, **given):
    """Candidates by topic: the names of their fields, and their neighbours with the kinds of edges."""
    question = Question("Acme renewal", **{"scopes": ("user:a",), "stages": frozenset({"structural"})} | given)
    found = answer(readers, store.encoder, None, question)
    return {
        entry["topic_id"]: (
            [field["name"] for field in entry["fields"]],
            sorted((near["topic_id"], near["kind"]) for near in entry["neighbors"]),
        )
        for entry in found["candidates"]
    }


def test_default_answers_have_no_detached_fields_or_edges_and_no_archived_topics(readers, store):
    assert ask(readers, store) == {"acme": (["owner"], [("boat", "cites")]), "boat": ([], [("acme", "cites")])}


def test_asking_for_histories_shows_no_more_fields(readers, store):
    assert ask(readers, store, history=True)["acme"] == (["owner"], [("boat", "cites")])


def test_a_topic_requested_by_id_has_its_detached_fields_and_edges(readers, store):
    [(names, near)] = ask(readers, store, topic_ids=("acme",)).values()
    assert names == ["note", "owner"]
    assert near == [("boat", "cites"), ("boat", "mentions")]


def test_asking_for_a_field_by_name_shows_it_though_it_is_detached(readers, store):
    assert {name: fields for name, (fields, _) in ask(readers, store, field_names=("note",)).items()} == {
        "acme": ["note"], "boat": [],
    }  # fmt: skip


def test_asking_for_the_past_shows_what_is_detached_or_archived_today(readers, store):
    found = ask(readers, store, as_of=day(20))
    assert found["acme"][0] == ["note", "owner"]
    assert ("boat", "mentions") in found["acme"][1]
    assert found["old"][0] == ["price", "shade"]
    assert ask(readers, store, as_of=day(4))["old"][0] == ["price", "shade"]
    assert "old" not in ask(readers, store, as_of=day(1))


def test_the_summary_text_leaves_detached_fields_out(readers, store):
    text = answer(readers, store.encoder, None, Question("Acme", scopes=("user:a",)))["summary_text"]
    assert "gate code" not in text


def test_a_topic_record_is_complete_and_marks_what_is_detached(readers):
    record = topic_record(readers, "acme")
    assert {name: field["detached"] for name, field in record["fields"].items()} == {"note": True, "owner": False}
    assert {edge["kind"]: edge["detached"] for edge in record["edges"] if edge["to"] == "boat"} == {"mentions": True}
    old = topic_record(readers, "old")
    assert (old["archived"], sorted(old["fields"])) == (True, ["price", "shade"])
    assert topic_record(readers, "old", as_of=day(4))["fields"]["price"]["history"][0]["value"] == "cheap"


def test_an_export_holds_what_is_detached_and_archived(readers):
    records = {record["id"]: record for record in export_records(readers)}
    assert (sorted(records["acme"]["fields"]), records["old"]["archived"]) == (["note", "owner"], True)


def test_the_files_by_scope_say_what_the_graph_does(readers):
    for reader in readers:
        assert fact_problems(reader.snapshot.path, reader.graph) == []


# Summaries

SUMMARY = {"from": "2026-01-02T00:00:00Z", "to": "2026-01-06T00:00:00Z", "count": 3, "first": "Ben", "last": "Dan"}


@pytest.fixture
def shortened(store, opened):
    """A field of five values, of which the older three are a summary."""
    store.topic("acme", title="Acme renewal", created_at=day(0))
    store.field("acme", "owner", (9, "Aya"), (8, "Priya"), (5, "Dan"), (3, "Cleo"), (1, "Ben"))
    store.compressed = compressed = store.revisions[2:]
    del store.revisions[2:]
    evidence = [name for row in compressed for name in row["evidence_ids"]]
    store.revisions.append(compressed[0] | {
        "id": "sum", "value_json": json.dumps(SUMMARY), "summarises": 3, "evidence_ids": sorted(evidence),
        "provenance": "revision",
    })  # fmt: skip
    return opened(store)


def values(record):
    return [revision["value"] for revision in record["fields"]["owner"]["history"]]


def test_a_history_ends_in_the_summary_with_the_number_of_its_revisions(shortened):
    record = topic_record(shortened, "acme", history=True)
    assert values(record) == ["Aya", "Priya", SUMMARY]
    assert [revision.get("summarises") for revision in record["fields"]["owner"]["history"]] == [None, None, 3]
    assert values(topic_record(shortened, "acme")) == ["Aya"]


def test_expanding_it_gives_the_trace_in_its_place(shortened):
    record = topic_record(shortened, "acme", history=True, expand=True)
    assert values(record) == ["Aya", "Priya", "Dan", "Cleo", "Ben"]
    assert all("summarises" not in revision for revision in record["fields"]["owner"]["history"])


@pytest.mark.parametrize(
    ("on", "expected"), [(1, ["Ben"]), (2, ["Ben"]), (4, ["Cleo", "Ben"]), (8, ["Priya", "Dan", "Cleo", "Ben"])]
)
def test_a_moment_inside_the_summarised_span_is_answered_from_the_trace(shortened, store, on, expected):
    record = topic_record(shortened, "acme", as_of=day(on), history=True)
    assert values(record) == expected
    [candidate] = answer(shortened, store.encoder, None, Question("Acme", scopes=("user:a",), as_of=day(on)))[
        "candidates"
    ]
    [field] = candidate["fields"]
    assert field["current"]["value"] == expected[0]


def test_before_the_first_value_there_is_no_field(shortened):
    assert topic_record(shortened, "acme", as_of=day(0))["fields"] == {}


def test_a_snapshot_without_a_trace_beside_it_can_be_read(store, opened):
    store.topic("acme")
    store.field("acme", "owner", (9, "Aya"))
    assert values(topic_record(opened(store), "acme", history=True, expand=True)) == ["Aya"]
    assert opened(Store())[0].compressed.collect().is_empty()


def facts(readers, subject, *, history):
    wanted = FactFilter(subject=subject, history=history)
    found, _ = facts_page(Listing(readers, ("user:a",), 100, DamagedShards()), wanted, None)
    return sorted((fact["predicate"], fact["object"]) for fact in found)


def test_facts_of_an_archived_topic_are_listed_where_its_id_is_given(readers):
    assert facts(readers, "old", history=True) == [("price", "cheap"), ("shade", "grey")]
    assert facts(readers, "old", history=False) == []
    assert ("price", "cheap") not in facts(readers, None, history=True)
