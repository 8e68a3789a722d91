"""The export of Claude.ai."""

from __future__ import annotations

from tests.core.ingest.formats.samples import as_json, claude_conversation, claude_message


def read(desk, *conversations):
    path = desk.folder / "conversations.json"
    path.write_bytes(as_json(list(conversations)))
    return desk.read(path)


def test_messages_in_their_order(desk):
    read(desk, claude_conversation("k", claude_message("1", "human", "Hi"), claude_message("2", "assistant", "Yes")))
    rows = sorted(desk.evidence(), key=lambda row: row["turn"])
    assert [(row["observation_id"], row["kind"], row["actor"], row["text"]) for row in rows] == [
        ("claude/k/1", "user_message", "human", "Hi"),
        ("claude/k/2", "assistant_message", "assistant", "Yes"),
    ]
    assert {(row["session_id"], row["source_uri"]) for row in rows} == {("claude/k", "claude:k")}
    assert '"conversation":"Plan"' in rows[0]["payload_json"]


def test_blocks_and_attachments_are_turns_of_their_own(desk):
    blocks = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "I look it up."},
        {"type": "tool_use", "name": "search", "input": {"q": "roses"}},
        {"type": "tool_result", "name": "search", "content": [{"type": "text", "text": "many"}]},
        {"type": "text", "text": "Many."},
    ]
    file = {"file_name": "plan.txt", "extracted_content": "Bed one: roses."}
    asked = claude_message(
        "1", "human", "Read this", attachments=[file, {"file_name": "empty"}, 5], files=[{"file_name": "x.png"}]
    )
    report = read(desk, claude_conversation("k", asked, claude_message("2", "assistant", "", content=blocks)))
    rows = sorted(desk.evidence(), key=lambda row: row["turn"])
    assert [(row["observation_id"], row["kind"], row["text"]) for row in rows] == [
        ("claude/k/1", "user_message", "Read this"),
        ("claude/k/1/1", "user_message", "Bed one: roses."),
        ("claude/k/2", "assistant_message", "I look it up."),
        ("claude/k/2/1", "tool_call", 'search({"q":"roses"})'),
        ("claude/k/2/2", "tool_result", "many"),
        ("claude/k/2/3", "assistant_message", "Many."),
    ]
    assert '"attachment":"plan.txt"' in rows[1]["payload_json"]
    assert report.files[0].notes == ("left out: 1 thinking",)


def test_of_two_messages_with_one_id_the_second_is_refused_not_lost(desk):
    one, other = claude_message("1", "human", "one"), claude_message("1", "human", "other")
    report = read(desk, claude_conversation("k", one, one, other, claude_message("2", "human", "two")))
    assert {row["text"] for row in desk.evidence()} == {"one", "two"}
    assert (report.accepted, report.quarantined) == (2, 1)
    [refused] = desk.quarantine()
    assert "chat_messages[2].uuid is that of another message ('1')" in refused["detail"]


def test_an_older_export_has_only_the_text(desk):
    message = {"uuid": "1", "text": "Hi", "sender": "human", "created_at": None}
    read(desk, claude_conversation("k", message))
    [row] = desk.evidence()
    assert (row["text"], f"{row['observed_at']:%Y-%m-%d %H:%M}") == ("Hi", "2025-02-01 10:00")


def test_edited_messages_are_branches_if_parents_are_named(desk):
    messages = [
        claude_message("1", "human", "first", parent_message_uuid="00000000-0000-4000-8000-000000000000"),
        claude_message("2", "assistant", "old answer", parent_message_uuid="1"),
        claude_message("3", "assistant", "new answer", parent_message_uuid="1"),
        claude_message("4", "human", "thanks", parent_message_uuid="3"),
    ]
    read(desk, claude_conversation("k", *messages))
    assert {row["text"]: (row["session_id"], row["turn"]) for row in desk.evidence()} == {
        **{"first": ("claude/k", 0), "new answer": ("claude/k", 1), "thanks": ("claude/k", 2)},
        **{"old answer": ("claude/k#branch-2", 1)},
    }


def test_a_newer_export_adds_only_what_is_new(desk):
    messages = [claude_message(f"{at}", "human", f"text {at}") for at in range(4)]
    read(desk, claude_conversation("k", *messages[:2]))
    newer = [message | {"updated_at": "2026-01-01T00:00:00Z"} for message in messages]
    report = read(desk, claude_conversation("new", messages[0]), claude_conversation("k", *newer) | {"name": "Renamed"})
    assert (report.accepted, report.duplicate, report.quarantined) == (3, 2, 0)


def test_junk_in_a_conversation_is_refused_alone(desk):
    report = read(desk, claude_conversation("k", 5, "x", claude_message("1", "human", "Hi")), {"chat_messages": 7}, 3)
    assert (report.accepted, dict(report.reasons)) == (1, {"wrong_type": 4})
