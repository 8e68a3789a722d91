"""A language model's part, played from the truth of the chats of `made_updates.py`, over a real OpenAI-compatible API.

Each statement becomes a topic for the person and the fact, with the value that holds; a fact that was withdrawn gets
the value "none". A topic continues the known one of the same title, if the prompt shows it. A share of the statements
can be missed, as a model misses some. Small talk is left to placement without a model.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from typing import Any

Statements = dict[tuple[str, str], dict[str, Any]]
"""What a turn states, by its actor and its text."""


def read_statements(path: Path, missed: float, seed: int) -> Statements:
    """The statements of a file of `made_updates.py`, without a share of them.

    Args:
        path: `statements.jsonl`.
        missed: the share that is left out, 0 to 1.
        seed: chooses which.
    """
    rng = Random(seed)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return {(row["actor"], row["text"]): row for row in rows if rng.random() >= missed}


def understood(statements: Statements, prompt: str) -> dict[str, Any]:
    """The answer to a prompt: a topic for each turn that states something."""
    rows = [json.loads(line) for line in prompt.splitlines() if line.startswith("{")]
    handles = {row["title"]: row["handle"] for row in rows if "handle" in row}
    topics: list[dict[str, Any]] = []
    for row in rows:
        stated = statements.get((row.get("by"), row.get("text")))
        if stated is not None and "turn" in row:
            topics.append(_topic(stated, row["turn"], handles))
    return {"topics": topics}


def _topic(stated: dict[str, Any], turn: int, handles: dict[str, str]) -> dict[str, Any]:
    title = f"{stated['actor']}'s {stated['fact'].replace('_', ' ')}"
    value = {"name": stated["fact"], "value": stated["value"] or "none", "field_type": "string", "confidence": 0.9}
    named = {"title": title, "summary": stated["text"], "topic_kind": "fact", "turns": [turn]}
    return named | {"extends": handles.get(title), "why": "the same fact", "fields": [value], "edges": []}


@contextmanager
def serving(statements: Statements) -> Iterator[str]:
    """The API on a port of its own for the length of the block; gives its base URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            content = json.dumps(understood(statements, request["messages"][1]["content"]))
            choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}
            usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
            kind = {"id": "x", "object": "chat.completion", "created": 0, "model": "m"}
            body = json.dumps(kind | {"choices": [choice], "usage": usage}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
