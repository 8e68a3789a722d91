"""Refused rows: their codes and messages."""

from __future__ import annotations

from typing import Any

import pytest


def structured(**changes: Any) -> dict[str, Any]:
    return {"title": "Acme renewal", "fields": [{"name": "owner", "value": "Aya"}]} | changes


def field(**changes: Any) -> dict[str, Any]:
    return structured(fields=[{"name": "owner", "value": "Aya"} | changes])


def edge(**changes: Any) -> dict[str, Any]:
    return structured(edges=[{"kind": "part_of", "to_topic_key": "acme"} | changes])


REFUSED = [
    pytest.param(b'{"text": "caf\xe9"}', "not_utf8", "byte 13 is 0xe9", id="latin-1"),
    pytest.param(b'{"text": "a", ', "broken_json", "expected one JSON object", id="cut off"),
    pytest.param(b'{"text": "a"} {"text": "b"}', "broken_json", "at character 14", id="two objects"),
    pytest.param(b'{"text": "\\ud800"}', "broken_json", "surrogate", id="half a surrogate pair"),
    pytest.param(b'{"text": "a", "x": NaN}', "not_a_number", "found NaN", id="NaN"),
    pytest.param(b'{"text": "a", "x": {"y": [-Infinity]}}', "not_a_number", "found -Infinity", id="infinity"),
    pytest.param(b'{"text": "a", "x": 1e999}', "not_a_number", "too large", id="overflow"),
    pytest.param(b"42", "wrong_type", "found a number, expected an object", id="number"),
    pytest.param(b'[{"text": "a"}]', "wrong_type", "found an array", id="array in a line"),
    pytest.param(b"null", "wrong_type", "found null", id="null"),
    pytest.param(b'{"text": "a", "x": ' + b"[" * 101 + b"]" * 101 + b"}", "too_deep", "100 levels", id="deep"),
    pytest.param(b"[" * 100_000, "too_deep", "100 levels", id="very deep"),
    pytest.param({"text": 5}, "wrong_type", "`$.text`", id="text a number"),
    pytest.param({"text": "a", "turn": "3"}, "wrong_type", "`$.turn`", id="turn a string"),
    pytest.param({"text": "a", "turn": 2**63}, "bad_value", "64-bit", id="turn too large"),
    pytest.param({"text": "a", "observed_at": 1683554160}, "wrong_type", "`$.observed_at`", id="epoch seconds"),
    pytest.param({"text": "a", "scope": "user:aya"}, "wrong_type", "`$.scope`", id="scope a string"),
    pytest.param(
        {"text": "a", "scope": "user:ben"},
        "wrong_type",
        '; write "scope": {"type":"user","id":"ben"}',
        id="scope as TYPE:ID",
    ),
    pytest.param(
        {"text": "a", "scope": "ben"}, "wrong_type", '; write "scope": {"type":"user","id":"aya"}', id="scope as a word"
    ),
    pytest.param({"text": "a", "scope": {}}, "wrong_type", "`type`", id="scope without type"),
    pytest.param({"text": "a", "observation_id": "  "}, "wrong_type", "observation_id is blank", id="blank id"),
    pytest.param(field(name=7), "wrong_type", "`$.fields[0].name`", id="name a number"),
    pytest.param(field(name=" "), "wrong_type", "$.fields[0].name is blank", id="blank name"),
    pytest.param(field(ref_topic_id=""), "wrong_type", "ref_topic_id is blank", id="blank reference"),
    pytest.param(structured(fields=[{"name": "owner"}]), "wrong_type", "`value`", id="no value"),
    pytest.param(structured(fields=["owner"]), "wrong_type", "`$.fields[0]`", id="field a string"),
    pytest.param(edge(kind=" "), "wrong_type", "$.edges[0].kind is blank", id="blank edge kind"),
    pytest.param({}, "missing_content", "nothing to remember", id="empty"),
    pytest.param({"text": " \n"}, "missing_content", "nothing to remember", id="blank text"),
    pytest.param({"title": "\t"}, "missing_content", "nothing to remember", id="blank title"),
    pytest.param({"summary": "s"}, "missing_content", "nothing to remember", id="only a summary"),
    pytest.param({"topic_key": "acme"}, "missing_content", "nothing about it", id="only a key"),
    pytest.param({"topic_key": " ", "summary": "s"}, "missing_content", "nothing to remember", id="blank key"),
    pytest.param(edge(to_topic_key=None), "missing_content", "$.edges[0] names no topic", id="edge to nowhere"),
    pytest.param(edge(to_topic_key=" "), "missing_content", "to_topic_id or to_topic_key", id="edge to blank"),
    pytest.param({"text": "a", "observed_at": "yesterday"}, "bad_time", "ISO 8601", id="no time"),
    pytest.param({"text": "a", "observed_at": ""}, "bad_time", "$.observed_at", id="blank time"),
    pytest.param({"text": "a", "observed_at": "0001-01-01T00:00:00+05:00"}, "bad_time", "", id="before year 1"),
    pytest.param(field(valid_from="soon"), "bad_time", "$.fields[0].valid_from", id="field time"),
    pytest.param(edge(valid_from="soon"), "bad_time", "$.edges[0].valid_from", id="edge start"),
    pytest.param(edge(valid_until="soon"), "bad_time", "$.edges[0].valid_until", id="edge end"),
    pytest.param({"text": "a", "observed_at": "2026-06-01T12:00:01Z"}, "future_time", "max_future_days", id="future"),
    pytest.param(field(valid_from="2027-01-01"), "future_time", "$.fields[0].valid_from", id="field in the future"),
    pytest.param(edge(valid_from="2027-01-01"), "future_time", "$.edges[0].valid_from", id="edge in the future"),
    pytest.param(field(confidence=1.01), "bad_value", "between 0 and 1", id="confidence above 1"),
    pytest.param(field(confidence=-0.1), "bad_value", "between 0 and 1", id="confidence below 0"),
    pytest.param(field(confidence=True), "wrong_type", "confidence", id="confidence a boolean"),
    pytest.param(field(value=[1]), "bad_value", "list or json", id="undeclared list"),
    pytest.param(field(value={"a": 1}), "bad_value", "list or json", id="undeclared object"),
    pytest.param({"text": "a", "scope": {"type": "user"}}, "scope_without_id", "type user", id="no scope id"),
    pytest.param({"text": "a", "scope": {"type": "user", "id": " "}}, "scope_without_id", "", id="blank scope id"),
    pytest.param({"text": "a", "placement": "merge"}, "unknown_placement", "new_topic, extend_topic", id="placement"),
    pytest.param({"text": "a", "kind": "note"}, "unknown_word", "assistant_message, explicit_memory", id="kind"),
    pytest.param({"text": "a", "provenance": "x"}, "unknown_word", "api, ui, llm", id="provenance"),
    pytest.param({"text": "a", "scope": {"type": "team", "id": "x"}}, "unknown_word", "global, user", id="scope type"),
    pytest.param(field(field_type="text"), "unknown_word", "string, int, float", id="field type"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("row", "reason", "words"), REFUSED)
def test_a_bad_row_is_refused_with_its_reason(refusal, row, reason, words):
    found, detail = refusal(row)
    assert found == reason
    assert words in detail


FITTING = [
    ("string", "5", '"5"'), ("int", 5, "5"), ("int", 10**30, "1" + "0" * 30), ("float", 0.5, "0.5"),
    ("float", 5, "5.0"), ("bool", True, "true"), ("date", "2026-04-22", '"2026-04-22"'),
    ("date", "2026-04", '"2026-04"'), ("date", "14 April", '"14 April"'),
    ("datetime", "2026-01-01T00:00:00", '"2026-01-01T00:00:00"'), ("list", [1, {"b": 1, "a": 2}], '[1,{"a":2,"b":1}]'),
    ("json", {"b": [1], "a": None}, '{"a":null,"b":[1]}'), ("json", 5, "5"), ("json", "x", '"x"'),
    (None, "plain", '"plain"'), (None, 5, '"5"'), (None, 2.5, '"2.5"'), (None, True, '"true"'),
]  # fmt: skip


@pytest.mark.parametrize(("declared", "value", "stored"), FITTING)
def test_a_value_that_fits_its_type_is_kept(desk, declared, value, stored):
    assert desk.rows(field(value=value, field_type=declared)).accepted == 1
    [[kept]] = [row["fields"] for row in desk.evidence()]
    assert (kept["value_json"], kept["field_type"]) == (stored, declared or "string")


@pytest.mark.parametrize("declared", ["string", "int", "float", "bool", "date", "datetime", "list", "json", None])
def test_null_fits_every_type(desk, declared):
    assert desk.rows(field(value=None, field_type=declared)).accepted == 1
    assert desk.evidence()[0]["fields"][0]["value_json"] == "null"


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        ("string", 5), ("string", ["a"]), ("int", "5"), ("int", 5.0), ("int", True), ("float", "5"), ("float", False),
        ("float", 10**400), ("bool", 1), ("bool", "true"), ("date", 20260101), ("datetime", 5), ("list", "a, b"),
        ("date", "now"), ("date", "next week"), ("date", ""), ("datetime", "now"),
        ("list", {"a": 1}),
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit_is_refused_and_not_coerced(refusal, declared, value):
    reason, detail = refusal(field(value=value, field_type=declared))
    assert reason == "bad_value"
    assert f"field_type {declared}" in detail


def test_times_up_to_the_allowed_future_are_accepted(desk):
    assert desk.rows({"text": "a", "observed_at": "2026-06-01T12:00:00Z"}).accepted == 1


def test_an_edge_may_end_in_the_future(desk):
    assert desk.rows(edge(valid_until="2099-01-01")).accepted == 1


def test_long_values_are_cut_out_of_the_detail(refusal):
    _, detail = refusal({"text": "a", "observed_at": "x" * 100_000})
    assert len(detail) < 1000
