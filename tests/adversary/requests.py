"""Random sequences of HTTP requests by two tenants, over every route, with ids that are own, foreign or unknown."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any
from urllib.parse import quote

from memstate_core.model.forms.core_block import CORE_BLOCK, CoreBlock
from memstate_core.model.ids import uuid_text
from tests.adversary.attack import Row
from tests.adversary.rows import MINE, THEIRS, hostile, rows_of

_QUESTIONS = ("Is the gate of the yard open?", "contract renewal", "Secret", "Ada Lindqvist", "ferry last January")
_MOMENTS = ("2026-01-02T12:00:00Z", "2026-01-03", "2025-12-01", "2027-01-01")


@dataclass(frozen=True)
class Request:
    """A request of one of the tenants; `follows` reads the later pages of a listing too."""

    is_mine: bool
    method: str
    path: str
    body: Any = None
    follows: bool = False


def sequence(random: Random, ids: Sequence[str], count: int) -> list[Request]:
    """Reads and writes of mine, between which the other tenant writes, reads and aims at mine."""
    mine = [(_read if random.random() < 0.6 else _write)(random, ids, number) for number in range(count)]
    theirs = [_of_theirs(random, ids, number) for number in range(count // 2)]
    for each in theirs:
        mine.insert(random.randrange(len(mine) + 1), each)
    return mine


def reads(random: Random, ids: Sequence[str], count: int) -> list[Request]:
    """Reads of mine, and each id once, as after a night."""
    return [_topic(name) for name in ids] + [_read(random, ids, number) for number in range(count)]


def _topic(name: str, after: str = "") -> Request:
    return Request(True, "GET", f"/v1/topics/{quote(name)}{after}")


def _read(random: Random, ids: Sequence[str], _number: int) -> Request:
    name = random.choice(ids)
    match random.randrange(7):
        case 0 | 1:
            return Request(True, "POST", "/v1/query", _question(random, ids))
        case 2:
            body = {"q": random.choice(_QUESTIONS), "budget": random.choice((0, 300, 4000))}
            return Request(True, "POST", "/v1/context", body | _narrowed(random))
        case 3:
            asked = random.choice(("", "?pending=true", *(f"?as_of={moment}" for moment in _MOMENTS)))
            return _topic(name, asked)
        case 4:
            return _topic(name, random.choice(("/history", "/history?expand=true", f"/history?as_of={_MOMENTS[0]}")))
        case 5:
            return _listing(random, name)
        case _:
            path = random.choice(("/readyz", "/health/graph", "/metrics", "/v1/runs", "/v1/events", "/healthz"))
            return Request(True, "GET", path)


def _question(random: Random, ids: Sequence[str]) -> Row:
    body: Row = {"q": random.choice(_QUESTIONS), "top_k": 50, "evidence_k": random.choice((0, 50))} | _narrowed(random)
    extra: tuple[Row, ...] = (
        {"explain": True},
        {"pending": True},
        {"history": True},
        {"topic_ids": random.sample(list(ids), 3)},
        {"field_names": ["owner"]},
        {"stages": ["semantic"]},
    )
    for part in random.sample(extra, random.randrange(3)):
        body |= part
    return body


def _narrowed(random: Random) -> Row:
    scope = random.choice((None, None, MINE, THEIRS, [MINE, THEIRS]))
    as_of = random.choice((None, None, None, *_MOMENTS))
    return ({} if scope is None else {"scope": scope}) | ({} if as_of is None else {"as_of": as_of})


def _listing(random: Random, name: str) -> Request:
    scope = random.choice(("", f"&scope={MINE}", f"&scope={THEIRS}", f"&scope={MINE}&scope={THEIRS}"))
    forged = urlsafe_b64encode(json.dumps([random.choice((MINE, THEIRS, "user:")), name]).encode()).decode()
    cursor = random.choice(("", "", f"&cursor={quote(forged)}"))
    return Request(True, "GET", f"/v1/topics?limit={random.choice((1, 2, 100))}{scope}{cursor}", follows=True)


def _write(random: Random, ids: Sequence[str], number: int) -> Request:
    if random.random() < 0.3:
        return _feedback(random, ids, is_mine=True)
    rows = rows_of(random, MINE, random.randrange(1, 4), "mine")
    for at, row in enumerate(rows):
        row["observation_id"] = f"http/{number}/{at}"
        row |= random.choice(_REACHING)(random.choice(ids))
    return Request(True, "POST", "/v1/ingest", rows[0] if len(rows) == 1 else rows)


_REACHING: tuple[Any, ...] = (
    lambda _: {},
    lambda _: {},
    lambda name: {"topic_id": name},
    lambda name: {"edges": [{"to_topic_id": name, "kind": "part_of"}], "topic_key": "mine1"},
    lambda name: {"fields": [{"name": "seen", "value": "x", "ref_topic_id": name}], "topic_key": "mine2"},
    lambda _: {"observation_id": "theirs/mine/0"},
    lambda _: {"scope": {"type": "user", "id": "theirs"}},
    lambda _: {"suggest_similar": True},
    lambda _: {"topic_kind": CORE_BLOCK},
    lambda _: {"topic_key": CoreBlock.key_of("persona")},
)


def _feedback(random: Random, ids: Sequence[str], *, is_mine: bool) -> Request:
    verdict = random.choice(({"used": True}, {"failed": True}, {"failed": True, "fields": ["owner"]}))
    body = {"topic_id": random.choice(ids), "at": "2026-01-04T00:00:00Z"} | verdict
    return Request(is_mine, "POST", "/v1/feedback", body)


def _of_theirs(random: Random, ids: Sequence[str], number: int) -> Request:
    match random.randrange(5):
        case 0:
            return _feedback(random, ids, is_mine=False)
        case 1:
            return Request(False, "POST", "/v1/query", _question(random, ids))
        case 2:
            return Request(False, "GET", f"/v1/topics/{quote(random.choice(ids))}?pending=true")
        case _:
            rows = hostile(random, random.choice((1, 3, 40)))
            for at, row in enumerate(rows):
                row["observation_id"] = f"http/{number}/{at}"
                if random.random() < 0.5:
                    row["observed_at"] = "1970-01-01T00:00:00Z"
                if "topic_id" in row and random.random() < 0.8:
                    row["topic_id"] = uuid_text("key", THEIRS, "mine0")
            return Request(False, "POST", "/v1/ingest", rows)
