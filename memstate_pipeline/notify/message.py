"""What a notification says: a JSON document of a fixed form, and the same as text for e-mail.

Messages, names and paths may come from dumps, so control characters in them are made visible.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from memstate_pipeline.cli.shared.terminal import cut

SCHEMA = "memstate.notification/1"
Kind = Literal["error", "check", "warning"]
Event = Literal["night_failed", "night_warned", "snapshot_stale", "fault_ended", "test"]
NEXT_STEPS: dict[str, str] = {
    "night_failed": "Read the page, remove the cause and run `memstate maintain`; what was published before is served.",
    "night_warned": "Read the page; the night is published.",
    "snapshot_stale": "See why no night published: `memstate status`, `memstate doctor`, and the schedule in the UI.",
    "fault_ended": "Nothing: these faults did not occur in this night, which is published.",
    "test": "Nothing: somebody ran `memstate notify --test`.",
}
GATE_STEP = (
    "Look at what the gates name; remove the cause, or let the night through once with"
    " `memstate maintain --accept CHECK --why TEXT`."
)
LONGEST, _MOST = 1000, 50
"""Characters of a message, and problems, that a document holds."""


@dataclass(frozen=True)
class Problem:
    """What is wrong with a night.

    Attributes:
        key: what stays the same while the fault lasts, from night to night; not part of the document.
        kind: `error` (which ended the run), `check` (which failed) or `warning` (of the report).
        name: the class of the error, or the name of the check; null for a warning.
        message: what was found.
        since: when the first night with this fault ended; ISO 8601.
    """

    key: str
    kind: Kind
    name: str | None
    message: str
    since: str

    def to_json(self) -> dict[str, str | None]:
        """The problem as the document holds it."""
        name = None if self.name is None else cut(self.name, LONGEST)
        return {"kind": self.kind, "name": name, "message": cut(self.message, LONGEST), "since": self.since}


@dataclass(frozen=True)
class Night:
    """A night that ended.

    Attributes:
        run_id: its run.
        shard: its shard.
        at: when it ended, by the machine's clock; ISO 8601.
        now: its logical time.
        is_published: whether it published.
        snapshot: what the shard serves after it.
        page: its report, if it has one.
        problems: its error, its failed checks and its warnings.
    """

    run_id: str
    shard: str
    at: str
    now: str | None
    is_published: bool
    snapshot: str | None
    page: str | None
    problems: tuple[Problem, ...]


def night_document(event: Event, home: str, night: Night, problems: tuple[Problem, ...]) -> dict[str, Any]:
    """The document of a night.

    Args:
        event: what happened.
        home: the name of the home's folder.
        night: the night.
        problems: its problems; of `fault_ended` those that ended.
    """
    refused = any(problem.name == "GateRefused" for problem in problems) and event == "night_failed"
    return _empty(event, home, night.at) | {
        "shard": night.shard,
        "run_id": night.run_id,
        "now": night.now,
        "snapshot": night.snapshot,
        "problems": [problem.to_json() for problem in problems[:_MOST]],
        "problems_total": len(problems),
        "page": None if night.page is None else cut(night.page, 4 * LONGEST),
        "next_step": GATE_STEP if refused else NEXT_STEPS[event],
    }


def stale_document(home: str, shard: str, snapshot: str, at: str, problem: Problem) -> dict[str, Any]:
    """The document of a served snapshot that went stale; `at` is when that was seen."""
    found = {"shard": shard, "snapshot": snapshot, "problems": [problem.to_json()], "problems_total": 1}
    return _empty("snapshot_stale", home, at) | found


def test_document(home: str, at: str) -> dict[str, Any]:
    """The document of `memstate notify --test`."""
    return _empty("test", home, at)


def encoded(document: dict[str, Any]) -> bytes:
    """The bytes that are posted and signed."""
    return json.dumps(document, ensure_ascii=False).encode("utf-8", "backslashreplace")


def subject(document: dict[str, Any]) -> str:
    """The subject of an e-mail."""
    shard = f", shard {document['shard']}" if document["shard"] else ""
    return f"memstate: {document['event'].replace('_', ' ')} in {document['home']}{shard}"


def text(document: dict[str, Any]) -> str:
    """The content of an e-mail."""
    return "\n".join(_lines(document)) + "\n"


def _lines(document: dict[str, Any]) -> Iterator[str]:
    yield subject(document)
    for problem in document["problems"]:
        named = f"{problem['name']}: " if problem["name"] else ""
        yield f"- {named}{problem['message']} (since {problem['since']})"
    for name in ("run_id", "at", "now", "snapshot", "page"):
        if document[name] is not None:
            yield f"{name.replace('_', ' ')}: {document[name]}"
    yield document["next_step"]


def _empty(event: Event, home: str, at: str) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "event": event,
        "home": cut(home, LONGEST),
        "shard": None,
        "run_id": None,
        "at": at,
        "now": None,
        "snapshot": None,
        "problems": [],
        "problems_total": 0,
        "page": None,
        "next_step": NEXT_STEPS[event],
    }
