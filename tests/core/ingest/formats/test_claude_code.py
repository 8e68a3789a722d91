"""Sessions of Claude Code."""

from __future__ import annotations

import json

from tests.core.ingest.formats.samples import as_lines, code_event


def read(desk, *events):
    path = desk.folder / "session.jsonl"
    path.write_bytes(as_lines(list(events)))
    return desk.read(path)


def test_a_session_with_tools(desk):
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "rose.txt"}
    report = read(
        desk,
        {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}},
        code_event("1", "user", "What is here?"),
        code_event(
            "2", "assistant", [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "I look."}, call]
        ),
        code_event("3", "user", [result], toolUseResult={"stdout": "rose.txt"}),
        {"type": "system", "content": "Stopped", "uuid": "4", "sessionId": "s1", "timestamp": "2025-10-01T09:00:00Z"},
    )
    rows = sorted(desk.evidence(), key=lambda row: row["turn"])
    assert [(row["observation_id"], row["kind"], row["actor"], row["text"]) for row in rows] == [
        ("claude-code/1", "user_message", "user", "What is here?"),
        ("claude-code/2", "assistant_message", "assistant", "I look."),
        ("claude-code/2/1", "tool_call", "assistant", 'Bash({"command":"ls"})'),
        ("claude-code/3", "tool_result", "tool", "rose.txt"),
        ("claude-code/4", "system_event", "system", "Stopped"),
    ]
    assert [json.loads(row["payload_json"] or "{}").get("details") for row in rows[2:4]] == [
        {"tool": "Bash", "arguments": {"command": "ls"}},
        {"tool": "Bash", "status": "ok"},
    ]
    assert {row["session_id"] for row in rows} == {"claude-code/s1"}
    assert report.files[0].notes == ("left out: 1 file-history-snapshot, 1 thinking",)


def test_details_name_the_file_and_leave_long_arguments_to_the_text(desk):
    long = {"type": "tool_use", "id": "t", "name": "Write", "input": {"file_path": "a.py", "content": "x" * 20_000}}
    failed = {"type": "tool_result", "tool_use_id": "t", "content": "No such folder", "is_error": True}
    assert read(desk, code_event("1", "assistant", [long]), code_event("2", "user", [failed])).accepted == 2
    details = [
        json.loads(row["payload_json"])["details"] for row in sorted(desk.evidence(), key=lambda row: row["turn"])
    ]
    assert details == [{"tool": "Write", "path": "a.py"}, {"tool": "Write", "status": "error"}]


def test_helpers_have_sessions_of_their_own_and_meta_is_left_out(desk):
    report = read(
        desk,
        code_event("1", "user", "Do it", isSidechain=True, agentId="h1"),
        code_event("2", "user", "caveat", isMeta=True),
        code_event("3", "user", "So far: roses", isCompactSummary=True),
    )
    found = {row["text"]: (row["session_id"], row["kind"]) for row in desk.evidence()}
    assert found == {
        "Do it": ("claude-code/s1#sidechain-h1", "user_message"),
        "So far: roses": ("claude-code/s1", "system_event"),
    }
    assert report.files[0].notes == ("left out: 1 meta message",)


def test_a_session_that_goes_on_or_is_resumed_repeats_nothing(desk):
    events = [code_event(f"{at}", "user", f"text {at}") for at in range(4)]
    read(desk, *events[:2])
    report = read(desk, *[event | {"sessionId": "s2"} for event in events])
    assert (report.accepted, report.duplicate, report.quarantined) == (2, 2, 0)


def test_a_line_that_is_still_being_written_is_refused(desk):
    path = desk.folder / "s.jsonl"
    path.write_bytes(as_lines([code_event("1", "user", "Hi"), code_event("2", "user", "Yes")])[:-30])
    report = desk.read(path)
    assert (report.accepted, dict(report.reasons)) == (1, {"broken_json": 1})
    assert read(desk, code_event("1", "user", "Hi"), code_event("2", "user", "Yes")).accepted == 1


def test_events_without_type_or_id_are_refused(desk):
    report = read(desk, code_event("1", "user", "Hi"), {"sessionId": "s"}, code_event("", "user", "x"), [1])
    assert (report.accepted, dict(report.reasons)) == (1, {"wrong_type": 3})
