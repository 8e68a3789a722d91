"""OpenAI chat completions: fine-tuning data and logs."""

from __future__ import annotations

import json

from tests.core.ingest.formats.samples import as_lines

SYSTEM = {"role": "system", "content": "Be kind."}
ASKED = {
    "role": "user",
    "content": [{"type": "text", "text": "Which rose?"}, {"type": "image_url", "image_url": {"url": "x"}}],
}
ANSWERED = {"role": "assistant", "content": "The red one."}
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "1", "function": {"name": "find", "arguments": '{"q":1}'}}],
}
FOUND = {"role": "tool", "tool_call_id": "1", "content": "red"}


def read(desk, *lines):
    path = desk.folder / "chat.jsonl"
    path.write_bytes(as_lines(list(lines)))
    return desk.read(path)


def test_messages_parts_and_tools(desk):
    report = read(desk, {"messages": [SYSTEM, ASKED | {"name": "ann"}, CALL, FOUND, ANSWERED]})
    assert report.files[0].format == "openai"
    rows = sorted(desk.evidence(), key=lambda row: row["turn"])
    assert [(row["kind"], row["actor"], row["text"]) for row in rows] == [
        ("system_event", "system", "Be kind."),
        ("user_message", "ann", "Which rose?\n[image_url]"),
        ("tool_call", "assistant", 'find({"q":1})'),
        ("tool_result", "tool", "red"),
        ("assistant_message", "assistant", "The red one."),
    ]
    assert json.loads(rows[2]["payload_json"])["details"] == {"tool": "find", "arguments": {"q": 1}}
    sessions = [row["session_id"] for row in rows]
    assert sessions[0] is None
    assert len(set(sessions[1:])) == 1


def test_instructions_that_many_conversations_share_are_one_piece_of_evidence(desk):
    report = read(desk, *[{"messages": [SYSTEM, {"role": "user", "content": f"ask {at}"}]} for at in range(5)])
    assert (report.accepted, report.duplicate) == (6, 4)
    assert len({row["session_id"] for row in desk.evidence()}) == 6


def test_a_log_that_repeats_its_history_adds_each_message_once(desk):
    more = {"role": "user", "content": "Why?"}
    lines = [
        {
            "id": "1",
            "request": {"messages": [SYSTEM, ASKED]},
            "response": {"created": 1_700_000_000, "choices": [{"message": ANSWERED}]},
        },
        {"id": "2", "body": {"messages": [SYSTEM, ASKED, ANSWERED, more]}},
    ]
    report = read(desk, *lines)
    assert (report.read, report.accepted, report.duplicate) == (7, 4, 3)
    assert len({row["session_id"] for row in desk.evidence()}) == 2
    assert read(desk, *reversed(lines)).duplicate == 7


def test_further_choices_are_branches(desk):
    choices = [{"index": at, "message": {"role": "assistant", "content": f"answer {at}"}} for at in range(3)]
    read(desk, {"messages": [ASKED], "choices": choices, "created": 1_700_000_000})
    rows = {row["text"]: row for row in desk.evidence()}
    main = rows["answer 0"]["session_id"]
    assert rows["Which rose?\n[image_url]"]["session_id"] == main
    for text in ("answer 1", "answer 2"):
        assert rows[text]["session_id"].startswith(f"{main}#branch-")
        assert (rows[text]["turn"], '"branch"' in rows[text]["payload_json"]) == (1, True)


def test_a_line_without_messages_is_described_as_it_is(desk):
    read(desk, {"messages": [ASKED]}, {"messages": []}, {"messages": None, "choices": "none"}, {"model": "gpt"})
    details = [row["detail"].partition(", expected")[0] for row in desk.quarantine()]
    assert details == ["found `messages`: []", 'found `choices`: "none"', "found neither `messages` nor `choices`"]


def test_junk_is_refused_alone(desk):
    report = read(desk, {"messages": [ASKED, 5]}, {"messages": []}, {"choices": [{"message": 7}]}, 3)
    assert (report.accepted, dict(report.reasons)) == (1, {"wrong_type": 4})
