"""ShareGPT: conversations without times and often without ids."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.core.ingest.formats.samples import as_json, as_lines


def talk(*texts, **more):
    return {
        "conversations": [{"from": ("human", "gpt")[at % 2], "value": text} for at, text in enumerate(texts)],
        **more,
    }


def read(desk, *conversations, **options):
    path = desk.folder / "share.json"
    path.write_bytes(as_json(list(conversations)))
    return desk.read(path, **options)


def test_roles_and_sessions(desk):
    system = {"from": "system", "value": "Be kind."}
    tool = {"from": "tool", "value": "42"}
    read(
        desk, {"id": "g", "items": [system, *talk("Hi", "Hello")["conversations"], tool, {"from": "gpt", "value": " "}]}
    )
    rows = sorted(desk.evidence(), key=lambda row: row["turn"])
    assert [(row["kind"], row["actor"], row["text"], row["session_id"]) for row in rows] == [
        ("system_event", "system", "Be kind.", "sharegpt/g"),
        ("user_message", "human", "Hi", "sharegpt/g"),
        ("assistant_message", "gpt", "Hello", "sharegpt/g"),
        ("tool_result", "tool", "42", "sharegpt/g"),
    ]


@pytest.mark.parametrize("ids", [{"id": "g"}, {}, {"id": 7}])
def test_a_conversation_that_goes_on_keeps_its_ids_at_any_time(desk, ids):
    read(desk, talk("Hi", "Hello", **ids))
    later = datetime(2027, 1, 1, tzinfo=UTC)
    report = read(desk, talk("other"), talk("Hi", "Hello", "And?", "Hello", **ids), now=later)
    assert (report.accepted, report.duplicate, report.quarantined) == (3, 2, 0)
    assert len({row["session_id"] for row in desk.evidence()}) == 2


def test_lines_and_arrays_are_the_same(desk):
    conversations = [talk("Hi", "Hello"), talk("Hi", "Good day", id="x")]
    read(desk, *conversations)
    path = desk.folder / "share.jsonl"
    path.write_bytes(as_lines(list(reversed(conversations))))
    assert desk.read(path).duplicate == 4


def test_equal_ids_in_two_collections_are_no_conflict(desk):
    read(desk, talk("Hi", id="1"))
    assert read(desk, talk("Bye", id="1")).accepted == 1


def test_junk_is_refused_alone(desk):
    report = read(desk, talk("Hi"), {"conversations": 5}, {"conversations": [5]}, "x")
    assert (report.accepted, dict(report.reasons)) == (1, {"wrong_type": 3})
