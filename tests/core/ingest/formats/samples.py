"""Small exports of each format, made here."""

from __future__ import annotations

import io
import json
import sqlite3
import zipfile
from contextlib import closing
from typing import Any

Json = dict[str, Any]


def zipped(**members: bytes | str) -> bytes:
    """A zip; `/` in a name is written `__`."""
    return zipped_by_name({name.replace("__", "/"): data for name, data in members.items()})


def zipped_by_name(members: dict[str, bytes | str]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return packed.getvalue()


def as_json(content: Any) -> bytes:
    return json.dumps(content).encode()


def as_lines(rows: list[Any]) -> bytes:
    return b"".join(as_json(row) + b"\n" for row in rows)


def node(name: str, parent: str | None, role: str, text: Any, **more: Any) -> Json:
    message = {
        "id": f"m-{name}",
        "author": {"role": role, "name": None},
        "create_time": more.pop("create_time", 1_700_000_000.25),
        "content": {"content_type": "text", "parts": [text] if isinstance(text, str) else text},
        "metadata": {},
        "recipient": "all",
        "weight": 1.0,
    }
    return {"id": name, "message": message | more, "parent": parent, "children": []}


def chatgpt_conversation(name: str, *nodes: Json, current: str | None = None, **more: Any) -> Json:
    root = {"id": "root", "message": None, "parent": None, "children": []}
    mapping = {item["id"]: item for item in (root, *nodes)}
    for item in nodes:
        if item["parent"] in mapping:
            mapping[item["parent"]]["children"].append(item["id"])
    shown = current or (nodes[-1]["id"] if nodes else "root")
    head = {"title": "Roses", "create_time": 1_700_000_000.0, "update_time": 1_700_000_009.0, "mapping": mapping}
    return head | {"current_node": shown, "conversation_id": name, "id": name} | more


def talk(name: str, length: int) -> Json:
    """A ChatGPT conversation of so many messages, each after the other."""
    nodes = [
        node(f"{name}{at}", f"{name}{at - 1}" if at else "root", ("user", "assistant")[at % 2], f"{name} says {at}")
        for at in range(length)
    ]
    return chatgpt_conversation(name, *nodes)


def claude_conversation(name: str, *messages: Json, **more: Any) -> Json:
    head = {"uuid": name, "name": "Plan", "created_at": "2025-02-01T10:00:00.000000Z", "updated_at": None}
    return head | {"account": {"uuid": "a"}, "chat_messages": list(messages)} | more


def claude_message(name: str, sender: str, text: str, **more: Any) -> Json:
    times = {"created_at": "2025-02-01T10:00:05.000000Z", "updated_at": "2025-02-03T10:00:05.000000Z"}
    return {"uuid": name, "text": text, "sender": sender, "content": [{"type": "text", "text": text}]} | times | more


def code_event(name: str, role: str, content: Any, **more: Any) -> Json:
    event = {"parentUuid": None, "isSidechain": False, "cwd": "/home/ann/garden", "sessionId": "s1", "type": role}
    return (
        event
        | {"message": {"role": role, "content": content}, "uuid": name, "timestamp": "2025-10-01T08:00:00.5Z"}
        | more
    )


def codex_item(payload: Json, second: int = 0) -> Json:
    return {"timestamp": f"2025-10-29T00:59:{second:02}.317Z", "type": "response_item", "payload": payload}


def codex_message(role: str, text: str, second: int = 0) -> Json:
    kind = "output_text" if role == "assistant" else "input_text"
    return codex_item({"type": "message", "role": role, "content": [{"type": kind, "text": text}]}, second)


CODEX_META = {"timestamp": "2025-10-29T00:59:00Z", "type": "session_meta", "payload": {"id": "c1", "cwd": "/w"}}


def slack(days: dict[str, list[Any]], **files: Any) -> bytes:
    """A Slack export; `days` by path, such as `general/2024-01-01.json`."""
    people = [
        {"id": "U1", "name": "ann", "real_name": "Ann Lee", "profile": {"display_name": "Ann", "real_name": "Ann Lee"}},
        {"id": "U2", "name": "ben", "real_name": "Ben Ray", "profile": {"display_name": ""}},
    ]
    lists = {"users": people, "channels": [{"id": "C1", "name": "general", "members": ["U1"]}], **files}
    packed = {f"{name}.json": as_json(content) for name, content in lists.items()}
    return zipped_by_name({**packed, **{path: as_json(rows) for path, rows in days.items()}})


def slack_message(ts: str, text: str, user: str = "U1", **more: Any) -> Json:
    return {"type": "message", "user": user, "text": text, "ts": ts} | more


def memory_file(*texts: str) -> bytes:
    """A SQLite file with an event for each text."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE evidence_events (id TEXT PRIMARY KEY, kind, content, created_at)")
        rows = [(f"e{at}", "user_message", text, 1_767_225_600 + at) for at, text in enumerate(texts)]
        connection.executemany("INSERT INTO evidence_events VALUES (?, ?, ?, ?)", rows)
        connection.commit()
        return connection.serialize()


SHAREGPT = [{"id": "g1", "conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello"}]}]
OPENAI = [{"messages": [{"role": "user", "content": "Which rose?"}, {"role": "assistant", "content": "The red one."}]}]
WHATSAPP = b"31/12/20, 23:58 - Ann: Happy new year\nto all of you\n01/01/21, 00:02 - Ben Ray: Same to you\n"
OBSERVATIONS = [{"observation_id": "o1", "text": "first"}, {"observation_id": "o2", "text": "second"}]

SAMPLES: dict[str, list[bytes]] = {
    "observations": [as_lines(OBSERVATIONS), as_json(OBSERVATIONS)],
    "chatgpt": [
        as_json([talk("a", 2)]),
        zipped_by_name({"conversations.json": as_json([talk("a", 2)]), "user.json": b"{}", "chat.html": "<html>"}),
        json.dumps(talk("a", 2), indent=2).encode(),
    ],
    "claude": [
        as_json(
            [claude_conversation("k", claude_message("1", "human", "Hi"), claude_message("2", "assistant", "Yes"))]
        ),
        zipped_by_name(
            {
                "conversations.json": as_json(
                    [
                        claude_conversation(
                            "k", claude_message("1", "human", "Hi"), claude_message("2", "assistant", "Yes")
                        )
                    ]
                ),
                "users.json": b"[]",
                "projects.json": b"[]",
            }
        ),
    ],
    "claude-code": [
        as_lines(
            [
                {"type": "summary", "summary": "Roses", "leafUuid": "x"},
                code_event("1", "user", "Hi"),
                code_event("2", "assistant", [{"type": "text", "text": "Yes"}]),
            ]
        )
    ],
    "codex": [as_lines([CODEX_META, codex_message("user", "Hi"), codex_message("assistant", "Yes", 1)])],
    "slack": [
        slack(
            {
                "general/2024-01-01.json": [
                    slack_message("1704100000.000100", "Hi"),
                    slack_message("1704100001.000100", "Yes"),
                ]
            }
        )
    ],
    "sharegpt": [as_json(SHAREGPT), as_lines(SHAREGPT)],
    "memory-sqlite": [memory_file("first", "second")],
    "openai": [as_lines(OPENAI)],
    "whatsapp": [WHATSAPP, zipped_by_name({"_chat.txt": WHATSAPP})],
}
"""Each of them holds two turns."""
