"""The export of ChatGPT: the tree, its visible path, and changes in newer exports."""

from __future__ import annotations

import json
import re
from typing import Any

from memstate_core.ingest.formats import chatgpt
from tests.core.ingest.formats.samples import as_json, chatgpt_conversation, node, zipped_by_name


def said(desk: Any, *conversations: Any) -> dict[str, dict[str, Any]]:
    path = desk.folder / "conversations.json"
    path.write_bytes(as_json(list(conversations)))
    report = desk.read(path)
    assert report.errors == ()
    return {row["text"]: row for row in desk.evidence()}


def regenerated(current: str) -> Any:
    nodes = [
        node("q", "root", "user", "Which rose?"),
        node("a1", "q", "assistant", "The red one."),
        node("a2", "q", "assistant", "The white one."),
        node("q2", current, "user", "Why?"),
    ]
    return chatgpt_conversation("c", *nodes, current="q2")


def test_the_shown_line_is_one_session_and_the_rest_are_branches(desk):
    rows = said(desk, regenerated("a2"))
    main = [rows[text] for text in ("Which rose?", "The white one.", "Why?")]
    assert [(row["session_id"], row["turn"]) for row in main] == [("chatgpt/c", 0), ("chatgpt/c", 1), ("chatgpt/c", 2)]
    left = rows["The red one."]
    assert (left["session_id"], left["turn"]) == ("chatgpt/c#branch-a1", 1)
    assert '"branch":"a1"' in left["payload_json"]
    assert "branch" not in main[1]["payload_json"]
    assert left["observation_id"] == "chatgpt/c/m-a1"
    assert {row["source_uri"] for row in rows.values()} == {"chatgpt:c"}


def test_asking_again_makes_no_conflict_with_the_older_export(desk):
    nodes = [node("q", "root", "user", "Which rose?"), node("a1", "q", "assistant", "The red one.")]
    said(desk, chatgpt_conversation("c", *nodes))
    path = desk.folder / "newer.json"
    path.write_bytes(as_json([regenerated("a2") | {"title": "Another name"}]))
    report = desk.read(path)
    assert (report.accepted, report.duplicate, report.quarantined) == (2, 2, 0)


def test_branches_that_fork_are_kept_apart(desk):
    nodes = [
        node("q", "root", "user", "q"),
        node("x", "q", "assistant", "x"),
        node("x1", "x", "user", "x1"),
        node("x2", "x", "user", "x2"),
        node("x11", "x1", "assistant", "x11"),
        node("y", "q", "assistant", "y"),
    ]
    rows = said(desk, chatgpt_conversation("c", *nodes, current="y"))
    found = {text: (row["session_id"].partition("#")[2], row["turn"]) for text, row in rows.items()}
    assert found == {
        **{"q": ("", 0), "y": ("", 1), "x": ("branch-x", 1)},
        **{"x1": ("branch-x1", 2), "x11": ("branch-x1", 3), "x2": ("branch-x2", 2)},
    }


def test_kinds_names_and_contents(desk):
    code = {"content_type": "code", "language": "python", "text": "print(1)"}
    output = {"content_type": "execution_output", "text": "1"}
    image = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://1"}
    nodes = [
        node("s", "root", "system", "Be kind."),
        node("u", "s", "user", ["Look:", image]),
        node("c", "u", "assistant", "", content=code, recipient="python"),
        node("o", "c", "tool", "", author={"role": "tool", "name": "python"}, content=output),
        node("v", "o", "user", [{"content_type": "audio_transcription", "text": "spoken"}]),
    ]
    rows = said(desk, chatgpt_conversation("c", *nodes))
    assert {text: (row["kind"], row["actor"], row["turn"]) for text, row in rows.items()} == {
        "Be kind.": ("system_event", "system", 0),
        "Look:\n[image_asset_pointer]": ("user_message", "user", 1),
        "print(1)": ("tool_call", "assistant", 2),
        "1": ("tool_result", "python", 3),
        "spoken": ("user_message", "user", 4),
    }
    called = [json.loads(rows[text]["payload_json"])["details"] for text in ("print(1)", "1")]
    assert called == [{"tool": "python"}] * 2


def test_what_is_not_shown_is_left_out_and_counted(desk):
    thoughts = {"content_type": "thoughts", "thoughts": [{"content": "hm"}]}
    nodes = [
        node("h", "root", "system", "secret", metadata={"is_visually_hidden_from_conversation": True}),
        node("w", "h", "user", "weightless", weight=0),
        node("t", "w", "assistant", "", content=thoughts),
        node("e", "t", "assistant", ""),
        node("u", "e", "user", "shown"),
    ]
    path = desk.folder / "a.json"
    path.write_bytes(as_json([chatgpt_conversation("c", *nodes)]))
    report = desk.read(path)
    assert [(row["text"], row["turn"]) for row in desk.evidence()] == [("shown", 0)]
    assert report.files[0].notes == ("left out: 2 hidden message, 1 message without text, 1 thoughts",)


def test_times_are_taken_over_from_before(desk):
    nodes = [
        node("a", "root", "user", "a", create_time=None),
        node("b", "a", "assistant", "b", create_time=1_700_000_100),
        node("c", "b", "user", "c", create_time=None),
    ]
    rows = said(desk, chatgpt_conversation("c", *nodes))
    assert [f"{rows[text]['observed_at']:%H:%M:%S}" for text in "abc"] == ["22:13:20", "22:15:00", "22:15:00"]


def test_odd_trees_are_read_as_far_as_they_go(desk):
    nodes = [
        node("a", "b", "user", "in a circle"),
        node("b", "a", "assistant", "with me"),
        node("o", "gone", "user", "orphan"),
        node("m", "root", "user", "main"),
    ]
    odd = chatgpt_conversation("c", *nodes, current="nowhere") | {"conversation_id": None, "id": None}
    odd["mapping"]["junk"] = 5
    odd["mapping"]["junk2"] = {"message": "text", "parent": ["x"], "children": 7}
    path = desk.folder / "a.json"
    path.write_bytes(as_json([odd, {"mapping": []}, {"title": "none"}]))
    report = desk.read(path)
    assert (report.accepted, dict(report.reasons)) == (4, {"wrong_type": 4})
    assert {row["observation_id"] for row in desk.evidence()} == {f"chatgpt/root/m-{name}" for name in "abom"}


def test_a_time_that_is_none_refuses_the_message_alone(desk):
    nodes = [node("a", "root", "user", "a", create_time="soon"), node("b", "a", "user", "b", create_time=1e300)]
    path = desk.folder / "a.json"
    path.write_bytes(as_json([chatgpt_conversation("c", *nodes, node("d", "b", "user", "d"))]))
    report = desk.read(path)
    assert (report.accepted, dict(report.reasons)) == (1, {"bad_time": 2})


def test_a_message_without_a_time_has_the_last_known_one(desk):
    nodes = [
        node("a", "root", "user", "a", create_time=1_700_000_100),
        node("b", "a", "assistant", "b", create_time="abc"),
        node("c", "b", "user", "c", create_time=None),
        node("d", "c", "assistant", "d", create_time=0),
    ]
    rows = said(desk, chatgpt_conversation("c", *nodes))
    assert {text: f"{row['observed_at']:%Y %H:%M:%S}" for text, row in rows.items()} == dict.fromkeys(
        "acd", "2023 22:15:00"
    )
    assert [row["reason"] for row in desk.quarantine()] == ["bad_time"]


MARKED = "Roses need sun. \ue200cite\ue202turn0search1\ue202turn2news10\ue201"
MARKED += " And water\ue200filecite\ue202turn0file2\ue202L3-L9\ue201."


def test_marks_of_citations_are_left_out_and_what_a_reader_sees_stays(desk):
    entity = 'In \ue200entity\ue202["city","Turin"]\ue201.'
    nodes = [node("a", "root", "assistant", MARKED), node("b", "a", "assistant", entity)]
    rows = said(
        desk, chatgpt_conversation("c", *nodes, node("x", "b", "assistant", "\ue200cite\ue202turn0search1\ue201"))
    )
    assert [*rows] == ["Roses need sun. And water.", entity]


def test_a_message_with_marks_is_known_again(desk, monkeypatch):
    export = chatgpt_conversation("c", node("a", "root", "assistant", MARKED))
    with monkeypatch.context() as before:
        before.setattr(chatgpt, "_CITATION", re.compile("(?!)"))
        assert said(desk, export).keys() == {MARKED}
    assert said(desk, export).keys() == {MARKED}, "imported before marks were left out, so not again"


def test_an_export_in_parts_is_read_whole(desk):
    parts = {
        f"export/conversations-00{at}.json": as_json(
            [chatgpt_conversation(f"c{at}", node("a", "root", "user", f"{at}"))]
        )
        for at in range(3)
    }
    path = desk.folder / "a.zip"
    path.write_bytes(zipped_by_name({**parts, "__MACOSX/export/._conversations-000.json": b"\0"}))
    assert desk.read(path).accepted == 3
