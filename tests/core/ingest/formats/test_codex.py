"""Sessions of Codex."""

from __future__ import annotations

import json

from tests.core.ingest.formats.samples import CODEX_META, as_lines, codex_item, codex_message


def read(desk, *events):
    path = desk.folder / "rollout.jsonl"
    path.write_bytes(as_lines(list(events)))
    return desk.read(path)


EVENTS = [
    CODEX_META,
    codex_message("developer", "Be brief."),
    codex_message("user", "<environment_context>\n  <cwd>/w</cwd>"),
    codex_message("user", "What is here?", 1),
    {
        "timestamp": "2025-10-29T00:59:01Z",
        "type": "event_msg",
        "payload": {"type": "user_message", "message": "What is here?"},
    },
    codex_item({"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}, 2),
    codex_item({"type": "function_call", "name": "shell", "arguments": '{"command":["ls"]}', "call_id": "1"}, 3),
    codex_item({"type": "function_call_output", "call_id": "1", "output": "rose.txt"}, 4),
    codex_message("assistant", "A rose.", 5),
]


def test_a_session_with_tools(desk):
    report = read(desk, *EVENTS)
    rows = sorted(desk.evidence(), key=lambda row: row["turn"])
    assert [(row["kind"], row["text"]) for row in rows] == [
        ("system_event", "Be brief."),
        ("system_event", "<environment_context>\n  <cwd>/w</cwd>"),
        ("user_message", "What is here?"),
        ("tool_call", 'shell({"command":["ls"]})'),
        ("tool_result", "rose.txt"),
        ("assistant_message", "A rose."),
    ]
    assert [json.loads(row["payload_json"])["details"] for row in rows[3:5]] == [
        {"tool": "shell", "arguments": {"command": ["ls"]}},
        {"tool": "shell"},
    ]
    assert {(row["session_id"], row["source_uri"]) for row in rows} == {("codex/c1", "codex:c1")}
    assert all(row["observation_id"].startswith("codex/c1/") for row in rows)
    assert report.files[0].notes == ("left out: 1 event_msg, 1 reasoning",)


def test_a_session_that_goes_on_adds_only_what_is_new_even_in_the_same_words(desk):
    read(desk, *EVENTS)
    report = read(desk, *EVENTS, codex_message("user", "What is here?", 9), codex_message("assistant", "A rose.", 10))
    assert (report.accepted, report.duplicate, report.quarantined) == (2, 6, 0)


def test_an_older_file_has_bare_items_without_times(desk):
    report = read(
        desk,
        {"id": "old", "timestamp": "2025-06-01T10:00:00Z", "instructions": "Be kind.", "git": {}},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
    )
    assert report.files[0].format == "codex"
    [row] = desk.evidence()
    assert (row["session_id"], row["text"], f"{row['observed_at']:%H:%M}") == ("codex/old", "Hi", "10:00")


def test_junk_is_refused_alone(desk):
    report = read(desk, CODEX_META, {"type": "response_item", "payload": 5}, [], codex_message("user", "Hi"))
    assert (report.accepted, dict(report.reasons)) == (1, {"wrong_type": 2})
