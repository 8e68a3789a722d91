"""Values that contradict each other show wherever a topic is read, as long as nothing has settled them."""

from __future__ import annotations

import json

import polars as pl
import pytest

from memstate_core.retrieve.index.facts_files import fact_problems
from memstate_core.retrieve.query import Question, answer
from memstate_core.retrieve.views.export import export_records
from memstate_core.retrieve.views.topic import topic_record
from memstate_core.state.graph import open_graph
from tests.core import reference
from tests.core.retrieve.conftest import Store
from tests.core.strategies import day, evidence_frame, field, folded, merge_decisions, observation

pytestmark = pytest.mark.slow

STREAM = [
    observation(1, topic_id="acme", title="Acme renewal", fields=[field("owner", '"Aya"'), field("stage", "1")]),
    observation(2, topic_id="other", title="Acme", fields=[field("owner", '"Priya"'), field("stage", "1")]),
    observation(3, topic_id="third", fields=[field("owner", "null"), field("size", "3")]),
]
CHAIN = [("other", "acme"), ("third", "other")]
SAID_AGAIN = observation(4, topic_id="acme", observed_at=day(5), fields=[field("owner", "null")])
MESSAGE = "field owner has 3 values as of 2026-01-01: null, Priya, Aya"


def stored(store: Store, *stream: dict) -> Store:
    """A store with what the fold makes of a stream, its topics merged into one."""
    state = folded(stream, merge_decisions(CHAIN, reference.fold(stream)))
    for topic in state.topics.to_dicts():
        store.topic(topic["id"], **{name: topic[name] for name in ("scope", "title", "state", "merged_into")})
    store.fields += state.fields.to_dicts()
    store.revisions += state.revisions.to_dicts()
    store.observed, store.decided_at = evidence_frame(stream).to_dicts(), day(3)
    return store


def ask(readers, store, **given):
    return answer(readers, store.encoder, None, Question(text="Who owns the Acme renewal?", **given))


def owner_of(answered) -> dict:
    return next(field for field in answered["candidates"][0]["fields"] if field["name"] == "owner")


def test_the_record_of_a_topic_names_the_other_values_and_warns(store, opened):
    record = topic_record(opened(stored(store, *STREAM)), "third")
    assert record["id"] == "acme"
    owner = record["fields"]["owner"]
    assert [revision["value"] for revision in owner["history"]] == [None]
    since = {"valid_from": "2026-01-01T00:00:00Z", "provenance": "api"}
    assert owner["conflict"] == [
        {"value": "Priya", **since, "evidence_ids": ["e02"]},
        {"value": "Aya", **since, "evidence_ids": ["e01"]},
    ]
    assert (record["fields"]["stage"]["conflict"], record["fields"]["size"]["conflict"]) == ([], [])
    warning = {"kind": "conflict", "message": MESSAGE, "field": "owner", "related_topic_id": None}
    assert record["warnings"] == [warning]


@pytest.mark.parametrize("history", [True, False])
def test_an_answer_names_them_too(store, opened, history):
    answered = ask(opened(stored(store, *STREAM)), store, history=history)
    owner = owner_of(answered)
    assert owner["current"]["value"] is None
    assert [other["value"] for other in owner["conflict"]] == ["Priya", "Aya"]
    assert [older["value"] for older in owner["history"]] == (["Priya", "Aya"] if history else [])
    assert [warning["message"] for warning in answered["candidates"][0]["warnings"]] == [MESSAGE]
    assert "owner: null (in conflict with Priya, Aya)" in answered["summary_text"]


def test_an_export_holds_what_the_topic_shows(store, opened):
    readers = opened(stored(store, *STREAM))
    exported = next(record for record in export_records(readers) if record["id"] == "acme")
    shown = topic_record(readers, "acme", history=True)
    assert exported["fields"] == shown["fields"]
    assert len(exported["fields"]["owner"]["conflict"]) == 2
    assert exported["warnings"] == shown["warnings"]
    assert json.loads(json.dumps(exported)) == exported


def test_a_later_assertion_settles_a_conflict_which_the_past_still_reports(store, opened):
    readers = opened(stored(store, *STREAM, SAID_AGAIN))
    assert topic_record(readers, "acme")["warnings"] == []
    assert owner_of(ask(readers, store))["conflict"] == []
    for history in (True, False):
        then = topic_record(readers, "acme", as_of=day(4), history=history)
        assert [other["value"] for other in then["fields"]["owner"]["conflict"]] == ["Priya", "Aya"]
        assert topic_record(readers, "acme", as_of=day(5), history=history)["fields"]["owner"]["conflict"] == []


def test_a_superseded_conflict_is_reported_for_its_own_time_only(store, opened):
    settled = observation(4, topic_id="acme", observed_at=day(5), fields=[field("owner", '"Cleo"')])
    readers = opened(stored(store, *STREAM, settled))
    assert topic_record(readers, "acme", history=True)["fields"]["owner"]["conflict"] == []
    assert [warning["message"] for warning in topic_record(readers, "acme", as_of=day(4))["warnings"]] == [MESSAGE]


def test_long_values_are_cut_in_the_warning_only(store, opened):
    words = " ".join(["word"] * 40)
    stream = [
        STREAM[0],
        observation(2, topic_id="other", fields=[field("owner", json.dumps(words))]),
        observation(3, topic_id="third"),
    ]
    record = topic_record(opened(stored(store, *stream)), "acme")
    [warning] = record["warnings"]
    assert len(warning["message"]) < 150
    assert "…, Aya" in warning["message"]
    assert record["fields"]["owner"]["history"][0]["value"] == words


def test_the_files_hold_the_rivals_and_are_checked_for_them(store, tmp_path):
    snapshot = stored(store, *STREAM).publish(tmp_path / "s")
    with open_graph(snapshot.path / "graph.kuzu", read_only=True, buffer_mib=256) as graph:
        assert fact_problems(snapshot.path, graph) == []
    file = snapshot.path / "facts" / "revisions.parquet"
    rows = pl.read_parquet(file)
    assert rows.filter(pl.col("name") == "owner").height == 3
    assert rows.filter(pl.col("name") != "owner").height == 2
    rows.filter(pl.col("rank") == 0).write_parquet(file)
    with open_graph(snapshot.path / "graph.kuzu", read_only=True, buffer_mib=256) as graph:
        assert fact_problems(snapshot.path, graph) == ["facts/revisions.parquet differs from the graph"]
