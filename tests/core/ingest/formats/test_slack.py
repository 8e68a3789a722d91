"""The export of a Slack workspace."""

from __future__ import annotations

from typing import Any

import pytest

from memstate_core.ingest.formats.shared.slack_text import Names
from tests.core.ingest.formats.samples import slack, slack_message


def read(desk: Any, days: dict[str, list[Any]], **files: Any) -> Any:
    path = desk.folder / "slack.zip"
    path.write_bytes(slack(days, **files))
    report = desk.read(path)
    assert report.errors == ()
    return report


def texts(desk: Any) -> dict[str, dict[str, Any]]:
    return {row["text"]: row for row in desk.evidence()}


def test_people_channels_days_and_threads(desk):
    day = [
        slack_message("1704100000.000100", "<@U2>: see <#C1|general>", thread_ts="1704100000.000100"),
        slack_message("1704100001.000200", "answer", "U2", thread_ts="1704100000.000100"),
        slack_message("1704100002.000300", "something else", "U9"),
    ]
    read(desk, {"general/2024-01-01.json": day})
    rows = texts(desk)
    asked, answer, other = rows["@Ben Ray: see #general"], rows["answer"], rows["something else"]
    assert asked["session_id"] == answer["session_id"] == "slack/C1/1704100000.000100"
    assert (asked["actor"], answer["actor"], other["actor"]) == ("Ann", "Ben Ray", "U9")
    assert other["session_id"] == "slack/C1/2024-01-01"
    assert (other["observation_id"], other["source_uri"]) == ("slack/C1/1704100002.000300", "slack:general")
    assert other["observed_at"].microsecond == 300


def test_who_comes_and_goes_is_left_out(desk):
    joined = slack_message("1704100000.000100", "<@U1> has joined", subtype="channel_join")
    empty = slack_message("1704100000.000200", "")
    topic = slack_message("1704100000.000300", "set the topic: roses", subtype="channel_topic")
    report = read(desk, {"general/2024-01-01.json": [joined, empty, topic]})
    assert [(row["text"], row["kind"]) for row in desk.evidence()] == [("set the topic: roses", "system_event")]
    assert report.files[0].notes == ("left out: 1 channel_join, 1 message without text",)


def test_programs_files_and_what_they_attach(desk):
    note = {"pretext": "New:", "title": "<https://x.y/1|one>", "text": "a &amp; b", "fallback": "no"}
    day = [
        {
            "type": "message",
            "subtype": "bot_message",
            "username": "git",
            "text": "",
            "ts": "1704100000.000100",
            "attachments": [note],
        },
        slack_message("1704100000.000200", "look", files=[{"title": "plan.pdf"}, {"id": "F"}, 5]),
        slack_message("1704100000.000300", "gone", "U9", user_profile={"display_name": "", "real_name": "Cy Ott"}),
    ]
    read(desk, {"general/2024-01-01.json": day})
    assert {text: (row["kind"], row["actor"]) for text, row in texts(desk).items()} == {
        "New:\none (https://x.y/1)\na & b": ("assistant_message", "git"),
        "look\n[file: plan.pdf]": ("user_message", "Ann"),
        "gone": ("user_message", "Cy Ott"),
    }


def test_a_program_that_writes_blocks_alone_is_read(desk):
    said = [
        {"type": "text", "text": "a < b, ask "},
        {"type": "user", "user_id": "U2"},
        {"type": "text", "text": " "},
        {"type": "emoji", "name": "tada"},
        {"type": "link", "url": "https://x.y/1", "text": "here"},
        {"type": "odd"},
        5,
    ]
    listed = {"type": "rich_text_list", "elements": [{"type": "rich_text_section", "elements": said}]}
    button = {"type": "button", "text": {"type": "plain_text", "text": "Approve"}}
    blocks = [
        {"type": "header", "text": {"type": "plain_text", "text": "Deploy"}},
        {"type": "rich_text", "elements": [listed, {"type": "rich_text_section", "elements": 5}]},
        {"type": "section", "text": {"type": "mrkdwn", "text": "to <#C1>"}, "fields": [{"text": "v7"}]},
        {"type": "actions", "elements": [button]},
    ]
    attached = [{"fallback": "[no preview available]", "blocks": [{"type": "section", "text": {"text": "attached"}}]}]
    day = [
        slack_message("1704100000.000100", "", blocks=blocks),
        slack_message("1704100000.000200", "", blocks="x", attachments=attached),
        slack_message("1704100000.000250", "", blocks=blocks[:1], attachments=attached),
        slack_message("1704100000.000300", "its text", blocks=blocks),
    ]
    report = read(desk, {"general/2024-01-01.json": day})
    assert set(texts(desk)) == {
        "Deploy\na < b, ask @Ben Ray :tada:here (https://x.y/1)\nto #general\nv7",
        "attached",
        "Deploy\nattached",
        "its text",
    }
    assert report.files[0].notes == ()


def test_an_edited_message_is_new_evidence_beside_the_old(desk):
    message = slack_message("1704100000.000100", "Tuesday")
    read(desk, {"general/2024-01-01.json": [message]})
    edited = message | {"text": "Monday", "edited": {"user": "U1", "ts": "1704100100.000000"}}
    report = read(desk, {"general/2024-01-01.json": [edited]})
    assert (report.accepted, report.quarantined) == (1, 0)
    assert texts(desk)["Monday"]["observation_id"] == "slack/C1/1704100000.000100/edited-1704100100.000000"
    assert '"edited_at":"2024-01-01T09:08:20Z"' in texts(desk)["Monday"]["payload_json"]


def test_renamed_people_and_channels_and_first_replies_make_nothing_new(desk):
    message = slack_message("1704100000.000100", "Hi <@U2>")
    read(desk, {"general/2024-01-01.json": [message]})
    people = [{"id": "U2", "name": "benjamin"}, {"id": "U1", "name": "anna"}]
    later = [message | {"thread_ts": message["ts"], "reply_count": 1}]
    reply = slack_message("1704200000.000100", "Hello", "U2", thread_ts=message["ts"])
    renamed = {"users": people, "channels": [{"id": "C1", "name": "all"}]}
    report = read(desk, {"all/2024-01-01.json": later, "all/2024-01-02.json": [reply]}, **renamed)
    assert (report.accepted, report.duplicate, report.quarantined) == (1, 1, 0)


def test_conversations_of_two_bear_the_names_of_both(desk):
    read(
        desk,
        {"D1/2024-01-01.json": [slack_message("1704100000.000100", "psst")]},
        dms=[{"id": "D1", "members": ["U1", "U2"]}],
    )
    [row] = desk.evidence()
    assert (row["session_id"], row["source_uri"]) == ("slack/D1/2024-01-01", "slack:Ann, Ben Ray")


def test_junk_is_refused_with_its_place(desk):
    day = [
        5,
        slack_message("soon", "when"),
        {"type": "message", "text": "no time"},
        slack_message("1704100000.000100", "Hi"),
    ]
    report = read(desk, {"general/2024-01-01.json": day}, users=[3, {"id": 5}])
    assert (report.accepted, dict(report.reasons)) == (1, {"bad_time": 2, "wrong_type": 2})
    assert {(row["file"], row["line"]) for row in desk.quarantine()} == {
        ("slack.zip/users.json", 1),
        *(("slack.zip/general/2024-01-01.json", line) for line in (1, 2, 3)),
    }


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("<@U1> and <@U7|seven> and <@U8>", "@Ann and @seven and @U8"),
        ("<#C1> <#C2|two> <!here> <!subteam^S1|@crew> <!date^1^{date}|today>", "#general #two @here @crew today"),
        ("<https://x.y> <https://x.y|https://x.y> <https://x.y|site>", "https://x.y https://x.y site (https://x.y)"),
        ("<mailto:a@b.c|a@b.c> 1 &lt; 2 &amp;&amp; <not closed", "a@b.c 1 < 2 && <not closed"),
        ("&amp;lt;", "&lt;"),
    ],
)
def test_mark_up_becomes_plain_text(written, plain):
    names = Names()
    names.users["U1"], names.channels["C1"] = "Ann", "general"
    assert names.plain(written) == plain
