"""Inputs of every kind about one scope, with a mark of its own in every field that holds text."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import polars as pl
import zstandard

from tests.core.ingest.formats.samples import (
    as_json,
    as_lines,
    chatgpt_conversation,
    claude_conversation,
    claude_message,
    code_event,
    codex_message,
    node,
    slack,
    slack_message,
    zipped_by_name,
)

Row = dict[str, Any]


class Marks:
    """Hands out marks; each is a word of its own, followed by letters that files may write as escapes."""

    def __init__(self) -> None:
        self.given: list[str] = []

    def __call__(self, words: str = "ü") -> str:
        mark = f"zq7x{len(self.given):03}"
        self.given.append(mark)
        return f"{mark} {words}"

    def name(self) -> str:
        """A mark without a space, for names and ids."""
        return self("").strip()


def observation(m: Marks, scope: Row, at: str, **more: Any) -> Row:
    """An observation with every column that holds text, and one that has no column."""
    field = {"name": m.name(), "value": m(), "field_type": "string", "why_changed": m(), "impact_expected": m()}
    listed = {"name": m.name(), "value": [m(), m()], "field_type": "list"}
    nested = {"name": m.name(), "value": {m.name(): [m()]}, "field_type": "json"}
    named = {"title": m("harvest at the quay"), "summary": m("Who signs at the harbour office. And when."), "text": m()}
    ids = {"observation_id": m.name(), "session_id": m.name(), "source_uri": f"https://x.example/{m.name()}"}
    edges = [{"to_topic_key": m.name(), "kind": "part_of"}]
    base = {"scope": scope, "actor": m(), "observed_at": at, "topic_key": m.name(), "topic_kind": m.name()}
    return base | ids | named | {"fields": [field, listed, nested], "edges": edges} | more


def twins(m: Marks, scope: Row, at: str, count: int = 3) -> list[Row]:
    """Observations of one thing that begin topics of their own, which a night merges."""
    title, summary = m("festival of quartz"), m("Signing with the partners at the harbour")
    value = m()
    return [
        {"observation_id": m.name(), "scope": scope, "observed_at": at, "placement": "new_topic", "title": title}
        | {"summary": summary, "fields": [{"name": "phone", "value": value}]}
        for _ in range(count)
    ]


def turns(m: Marks, scope: Row, at: str, count: int = 6) -> list[Row]:
    session, actor = m.name(), m("Bo")
    return [
        {"observation_id": m.name(), "scope": scope, "observed_at": at, "session_id": session, "turn": turn}
        | {"actor": actor, "kind": "user_message", "text": m(f"The boat {turn} needs paint before the summer.")}
        for turn in range(count)
    ]


def refused(m: Marks, scope: Row) -> list[Row]:
    """Rows of the scope that validation refuses, each for another reason."""
    base = {"scope": scope, "text": m(), "observed_at": "2026-04-01T00:00:00Z"}
    wrong = [{"title": 5}, {"observed_at": m()}, {"fields": [{"name": m(), "value": 1, "field_type": m.name()}]}]
    return [base | {"observation_id": m.name()} | each for each in wrong]


def exports(m: Marks) -> dict[str, bytes]:
    """A chat export of each format, by the name of its file."""
    chatgpt = chatgpt_conversation(
        m.name(), node(m.name(), "root", "user", m()), title=m(), gizmo_id=m.name(), default_model_slug=m.name()
    )
    says = (claude_message(m.name(), who, m(), attachments=[{"file_name": m()}]) for who in ("human", "assistant"))
    claude = claude_conversation(m.name(), *says) | {"name": m()}
    code = code_event(m.name(), "user", m(), cwd=f"/home/{m.name()}", sessionId=m.name(), gitBranch=m.name())
    meta = {"timestamp": "2025-10-29T00:59:00Z", "type": "session_meta", "payload": {"id": m.name(), "cwd": m.name()}}
    users = [{"id": "U1", "name": m.name(), "real_name": m(), "profile": {"display_name": m()}}]
    channels = [{"id": "C1", "name": (channel := m.name()), "members": ["U1"]}]
    days = {f"{channel}/2024-01-01.json": [slack_message("1704100000.000100", m())]}
    sharegpt = [{"id": m.name(), "conversations": [{"from": "human", "value": m()}, {"from": "gpt", "value": m()}]}]
    openai = [{"messages": [{"role": "user", "content": m()}, {"role": "assistant", "content": m()}]}]
    chat = f"31/12/20, 23:58 - {m.name()}: {m()}\n01/01/21, 00:02 - Ben Ray: {m()}\n".encode()
    return {
        f"{m.name()}.zip": zipped_by_name({"conversations.json": as_json([chatgpt]), "chat.html": f"<p>{m()}</p>"}),
        f"{m.name()}.json": as_json([claude]),
        f"{m.name()}.jsonl": as_lines([code]),
        f"codex-{m.name()}.jsonl": as_lines([meta, codex_message("user", m()), codex_message("assistant", m(), 1)]),
        f"slack-{m.name()}.zip": slack(days, users=users, channels=channels),
        f"sharegpt-{m.name()}.json": as_json(sharegpt),
        f"openai-{m.name()}.jsonl": as_lines(openai),
        f"whatsapp-{m.name()}.txt": chat,
    }


def packed(m: Marks, rows: list[Row]) -> dict[str, bytes]:
    """Rows as every kind of dump, by the name of its file; only the first kind has all of them."""
    lines = "".join(json.dumps(row, ensure_ascii=len(rows) % 2 == 0) + "\n" for row in rows).encode()
    flat = [{name: value for name, value in row.items() if isinstance(value, str)} for row in rows]
    scoped = [row | {"scope": each["scope"]} for row, each in zip(flat, rows, strict=True)]
    parquet = io.BytesIO()
    pl.DataFrame(scoped, infer_schema_length=None).write_parquet(parquet)
    return {
        f"{m.name()}.jsonl": lines,
        f"{m.name()}.jsonl.gz": gzip.compress(lines),
        f"{m.name()}.jsonl.zst": zstandard.compress(lines),
        f"array-{m.name()}.json": json.dumps(rows).encode(),
        f"{m.name()}.parquet": parquet.getvalue(),
    }


def put(folder: Path, files: dict[str, bytes]) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return [folder / name for name in files]
