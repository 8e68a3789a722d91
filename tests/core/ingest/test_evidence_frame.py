"""The evidence of an accepted row: its columns, defaults and identity."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from hashlib import sha256

import pytest

from memstate_core.model.ledger_tables import EVIDENCE

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)

STRUCTURED = {
    "observation_id": "crm/42", "scope": {"type": "user", "id": "aya"}, "kind": "explicit_memory",
    "observed_at": "2026-04-22T14:00:00+02:00", "provenance": "ui", "source_uri": "crm/export-2026-04",
    "placement": "version_field", "topic_id": None, "topic_key": "acme-renewal", "topic_kind": "deal",
    "title": "Acme renewal", "summary": "Renewal of the Acme contract",
    "fields": [
        {"name": "owner", "value": "Aya", "field_type": "string", "ref_topic_id": None, "why_changed": "handoff",
         "impact_expected": None, "confidence": 0.9, "valid_from": "2026-04-20"},
        {"name": "amount", "value": 5, "field_type": "int"},
    ],
    "edges": [{"to_topic_id": None, "to_topic_key": "acme", "kind": "part_of"}],
}  # fmt: skip
TURN = {
    "observation_id": "conv-26/D1:3", "scope": {"type": "project", "id": "conv-26"}, "kind": "user_message",
    "actor": "Caroline", "session_id": "conv-26/session_1", "turn": 3, "observed_at": "2023-05-08T13:56:00Z",
    "text": "I went to a support group yesterday.",
}  # fmt: skip


def test_a_structured_row_fills_its_columns(desk):
    desk.rows(STRUCTURED)
    [row] = desk.evidence()
    assert list(row) == list(EVIDENCE)
    plain = ("observation_id", "scope", "kind", "provenance", "placement", "topic_id", "topic_key", "title")
    assert [row[name] for name in plain] == [
        "crm/42", "user:aya", "explicit_memory", "ui", "version_field", None, "acme-renewal", "Acme renewal",
    ]  # fmt: skip
    assert row["observed_at"] == datetime(2026, 4, 22, 12, tzinfo=UTC)
    owner, amount = row["fields"]
    assert owner == {
        "name": "owner", "value_json": '"Aya"', "field_type": "string", "ref_given": True, "ref_topic_id": None,
        "why_changed": "handoff", "impact_expected": None, "confidence": 0.9,
        "valid_from": datetime(2026, 4, 20, tzinfo=UTC),
    }  # fmt: skip
    assert (amount["value_json"], amount["ref_given"], amount["valid_from"]) == ("5", False, None)
    assert row["edges"] == [
        {"kind": "part_of", "to_topic_id": None, "to_topic_key": "acme", "valid_from": None, "valid_until": None}
    ]


def test_a_turn_keeps_its_text_and_has_no_payload(desk):
    desk.rows(TURN)
    [row] = desk.evidence()
    assert (row["text"], row["turn"], row["actor"]) == (TURN["text"], 3, "Caroline")
    assert row["payload_json"] is None
    assert row["fields"] == row["edges"] == []
    assert (row["imported_at"], row["run_id"]) == (NOW, "run-1")


def test_the_payload_holds_the_structure_and_unknown_keys(desk):
    desk.rows(STRUCTURED | {"crm_stage": {"b": 1, "a": None}})
    payload = json.loads(desk.evidence()[0]["payload_json"])
    assert set(payload) == {
        "placement", "topic_key", "topic_kind", "title", "summary", "fields", "edges", "crm_stage",
    }  # fmt: skip
    assert payload["crm_stage"] == {"b": 1, "a": None}
    assert payload["fields"][0]["ref_topic_id"] is None
    assert "impact_expected" not in payload["fields"][0]
    assert payload["fields"][0]["valid_from"] == "2026-04-20T00:00:00Z"


def test_a_turn_with_an_unknown_key_keeps_it_in_the_payload(desk):
    desk.rows(TURN | {"channel": "#general"}, {"text": "b", "scope": {"type": "user", "id": "a", "org": "x"}})
    assert [row["payload_json"] for row in desk.evidence()] == [
        '{"channel":"#general"}',
        '{"scope":{"id":"a","org":"x","type":"user"}}',
    ]


@pytest.mark.parametrize(
    ("row", "kind", "provenance"),
    [
        ({"text": "a"}, "user_message", "import"),
        ({"text": "a", "topic_kind": "deal", "summary": "s"}, "user_message", "import"),
        ({"title": "a"}, "explicit_memory", "api"),
        ({"text": "a", "topic_id": "t"}, "explicit_memory", "api"),
        ({"text": "a", "topic_key": "t"}, "explicit_memory", "api"),
        ({"text": "a", "fields": [{"name": "n", "value": 1}]}, "explicit_memory", "api"),
        ({"text": "a", "edges": [{"kind": "mentions", "to_topic_id": "t"}]}, "explicit_memory", "api"),
        ({"text": "a", "title": " ", "fields": [], "edges": None}, "user_message", "import"),
    ],
)
def test_kind_and_provenance_follow_from_structure(desk, row, kind, provenance):
    desk.rows(row)
    [kept] = desk.evidence()
    assert (kept["kind"], kept["provenance"]) == (kind, provenance)


@pytest.mark.parametrize(
    "row",
    [
        {"text": "a"},
        {"title": "a"},
        *({"topic_key": "k"} | content for content in (
            {"summary": "s"}, {"text": "t"}, {"fields": [{"name": "n", "value": 1}]},
            {"edges": [{"kind": "mentions", "to_topic_id": "t"}]},
        )),
        {"topic_id": "t", "summary": "s"},
    ],
)  # fmt: skip
def test_a_row_with_something_to_remember_is_accepted(desk, row):
    assert desk.rows(row).accepted == 1


def test_blank_names_count_as_absent(desk):
    desk.rows({"text": "a", "title": " ", "topic_id": "", "topic_key": "\t", "topic_kind": " ", "session_id": ""})
    [row] = desk.evidence()
    assert [row[name] for name in ("title", "topic_id", "topic_key", "topic_kind", "session_id")] == [None] * 5
    assert row["payload_json"] is None


def test_a_row_without_scope_goes_to_the_default_scope(desk):
    desk.rows({"text": "a"})
    desk.read(desk.file("b.jsonl", {"text": "b"}), default_scope="user:aya")
    desk.rows({"text": "c", "scope": {"type": "global"}})
    assert sorted((row["text"], row["scope"]) for row in desk.evidence()) == [
        ("a", "global:global"),
        ("b", "user:aya"),
        ("c", "global:global"),
    ]


def test_a_default_scope_that_is_none_is_a_mistake_of_the_caller(desk):
    with pytest.raises(ValueError, match="TYPE:ID"):
        desk.read(default_scope="aya")


def test_without_a_time_the_import_is_the_time_of_observation(desk):
    desk.rows({"text": "a"})
    assert desk.evidence()[0]["observed_at"] == NOW


def test_the_filled_in_time_is_no_part_of_the_identity(desk):
    path = desk.file("a.jsonl", {"text": "a"})
    desk.read(path)
    assert desk.read(path, now=NOW + timedelta(days=3)).duplicate == 1


def test_ids_come_from_the_content(desk):
    desk.rows({"text": "a"})
    [row] = desk.evidence()
    canonical = b'{"scope":"global:global","text":"a"}'
    assert row["content_sha256"] == sha256(canonical).hexdigest() == row["observation_id"]
    assert row["evidence_id"] == row["content_sha256"][:32]


SAME = [
    (b'{"text":"a","turn":1}', b'{ "turn" : 1, "text" : "\\u0061" }'),
    (b'{"text":"a"}', b'{"text":"a","title":null,"fields":[],"edges":null}'),
    (b'{"text":"a"}', b'{"text":"a","scope":{"type":"global","id":null}}'),
    (b'{"text":"a","observed_at":"2026-01-01T00:00:00Z"}', b'{"text":"a","observed_at":"2026-01-01T02:00:00+02:00"}'),
    (b'{"text":"a","observed_at":"2026-01-01T00:00:00Z"}', b'{"text":"a","observed_at":"2026-01-01"}'),
    (
        b'{"title":"a","fields":[{"name":"n","value":1,"valid_from":"2026-01-01","why_changed":null}]}',
        b'{"title":"a","fields":[{"valid_from":"2026-01-01T00:00:00.000Z","value":1,"name":"n"}]}',
    ),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_spelling_does_not_change_the_identity(desk, one, other):
    report = desk.rows(one, other)
    assert (report.accepted, report.duplicate) == (1, 1)


DIFFERENT = [
    ({"text": "a"}, {"text": "A"}),
    ({"text": "a"}, {"text": "a", "seen_in": "slack"}),
    ({"text": "a"}, {"text": "a", "scope": {"type": "user", "id": "b"}}),
    ({"title": "a", "fields": [{"name": "n", "value": 1}]},
     {"title": "a", "fields": [{"name": "n", "value": 1, "ref_topic_id": None}]}),
    ({"title": "a", "fields": [{"name": "n", "value": None}]}, {"title": "a"}),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_whatever_the_writer_said_is_part_of_the_identity(desk, one, other):
    assert desk.rows(one, other).accepted == 2


@pytest.mark.parametrize(
    "moment",
    ["2026-01-02T03:04:05.678901+00:00", "0001-01-01T00:00:00+00:00", "0001-01-02T00:00:00+03:00"],
)
def test_moments_are_kept_to_the_microsecond(desk, moment):
    desk.rows({"text": "a", "observed_at": moment})
    assert desk.evidence()[0]["observed_at"] == datetime.fromisoformat(moment)


def test_characters_of_every_kind_are_kept(desk):
    text = "NUL \0, line\u2028separator, 😀, \N{COMBINING ACUTE ACCENT}, \x1f, \r\n"
    desk.rows({"text": text, "title": text})
    [row] = desk.evidence()
    assert row["text"] == row["title"] == text
