"""A topic id that a key of another scope takes over later: two real nights, all checks, separate topics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memstate_core.model.ids import uuid_text
from tests.pipeline.conftest import run_memstate

pytestmark = pytest.mark.slow

KEY, PINNED = (uuid_text("key", "user:victim", key) for key in ("acme", "boat"))
SCOPES = {name: {"type": "user", "id": name} for name in ("attacker", "victim")}


def imported(home: Path, *rows: dict[str, Any]) -> None:
    dump = home.parent / "dump.jsonl"
    dump.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = run_memstate(home, "import", str(dump), "--now", "2026-04-05T00:00:00Z")
    assert result.code == 0, result.stderr


def test_a_night_separates_topics_of_two_scopes_with_one_id_and_passes_its_checks(tmp_path: Path) -> None:
    home = tmp_path / "home"
    base = {"scope": SCOPES["attacker"], "observed_at": "2026-04-01T00:00:00Z"}
    imported(
        home,
        base | {"topic_id": KEY, "title": "Acme", "summary": "Occupied"},
        base | {"topic_id": PINNED, "title": "Boat", "summary": "Occupied"},
        base | {"topic_key": "twin", "title": "Acme twin", "fields": [{"name": "owner", "value": "Mallory"}]},
    )
    assert run_memstate(home, "maintain", "--now", "2026-04-06T02:00:00Z").code == 0
    twin = uuid_text("key", "user:attacker", "twin")
    result = run_memstate(home, "review", "--decide", f"{KEY}:{twin}=same", "--now", "2026-04-06T03:00:00Z", "--json")
    assert result.code == 0, result.stderr
    assert run_memstate(home, "pin", PINNED, "--now", "2026-04-06T04:00:00Z").code == 0
    secret = {"scope": SCOPES["victim"], "topic_key": "acme", "title": "Acme", "summary": "A secret"}
    imported(
        home,
        secret | {"observed_at": "2026-04-02T00:00:00Z", "fields": [{"name": "price", "value": 7}]},
        {"scope": SCOPES["victim"], "topic_key": "boat", "title": "Boat", "observed_at": "2026-04-02T00:00:00Z"},
    )
    night = run_memstate(home, "maintain", "--now", "2026-04-07T02:00:00Z")
    assert night.code == 0, night.stderr
    topics = {topic["id"]: topic for topic in run_memstate(home, "export", "--json").document["topics"]}
    mine, theirs = topics[KEY], topics[twin]
    assert (mine["scope"], mine["summary"], set(mine["fields"])) == ("user:victim", "A secret", {"price"})
    assert (theirs["scope"], set(theirs["fields"])) == ("user:attacker", {"owner"})
    assert (topics[PINNED]["scope"], topics[PINNED]["pinned"]) == ("user:victim", False)
    assert run_memstate(home, "verify").code == 0
