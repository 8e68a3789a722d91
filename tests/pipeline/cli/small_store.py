"""A small store that shows everything a command may print."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from memstate_core.ingest.importer import import_paths
from memstate_core.model.ledger_tables import DECISION
from memstate_core.model.text import parse_moment
from memstate_core.night.corrections import correct
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.retrieve.views.export import export_records
from memstate_core.run.store import Store, open_store
from memstate_core.state.current import served
from memstate_pipeline.run import maintain
from tests.core.frames import filled
from tests.pipeline.conftest import NIGHT

SETTINGS = """[store]
niceness = 0
[policy]
topic_count_soft_limit = 0
salience_half_life_days = 2.0
half_life_growth_max = 1.0
"""
NEXT, LATER = "2026-04-07T02:00:00Z", "2026-04-08T02:00:00Z"
"""The second night, whose state is served, and the time of what tests do to the store."""
HOSTILE = "Red \x1b[31malert\x07 \u202egnp.exe\nforged line"


def row(key: str, title: str, at: str = "2026-04-05", **more: Any) -> dict[str, Any]:
    named = {"observation_id": f"{key}/{at}", "topic_key": key, "title": title}
    return named | {"scope": {"type": "user", "id": "ines"}, "observed_at": f"{at}T00:00:00Z"} | more


def field(name: str, value: str, why: str | None = None) -> dict[str, Any]:
    return {"name": name, "value": value, "why_changed": why}


ROWS = [
    row("yard", "Old Ferry Yard", summary="Pocket park at the harbour.\nOpens in May.", fields=[field("gate", "shut")]),
    row("yard", "Old Ferry Yard", observation_id="rival", fields=[field("gate", "open")]),
    row("yard", "Old Ferry Yard", "2026-04-04", fields=[field("gate", "ajar", "the lock was oiled")]),
    row("budget", "Budget of the spring", topic_kind="plan", edges=[{"to_topic_key": "yard", "kind": "part_of"}]),
    row("tree", "Serviceberry", summary="Chosen by the children after a vote in the courtyard of their school"),
    row("wall", "Dry stone wall", "2026-02-01", fields=[field("height", "120 cm")]),
    row("hostile", HOSTILE, fields=[field("colour\x1b]0;title\x07", "\x9b31mred")]),
]


def make(home: Path) -> None:
    """Two nights: one topic archived, one stale, one in conflict, one with a hostile title; a pair to review."""
    home.mkdir(0o700, parents=True)
    (home / "memstate.toml").write_text(SETTINGS)
    store = open_store(home)
    for number, (rows, night) in enumerate(
        [(ROWS, NIGHT), ([row("yard", "Old Ferry Yard", "2026-04-06", summary="It is flooded.")], NEXT)]
    ):
        dump(home / f"{number}.jsonl", rows)
        import_paths(store.ledger, store.settings, [home / f"{number}.jsonl"], now=parse_moment(night), run_id=night)
        maintain(store, parse_moment(night))
    suggest(store)


def dump(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in rows))
    return path


def suggest(store: Store) -> None:
    """Records a pair for review, as a night does."""
    a, b = sorted(topic for name, topic in ids(store).items() if name in ("Budget", "Serviceberry"))
    features = [{"name": "title", "value": 0.5, "weight": -0.4}, {"name": "meaning", "value": 2.0, "weight": 1.25}]
    payload = {"a": a, "b": b, "probability": 0.4, "weight": -0.4, "value": 0.8, "features": features}
    decision = {"kind": "pair_suggested", "scope": "user:ines", "topic_id": a, "payload_json": json.dumps(payload)}
    at = datetime(2026, 4, 7, 2, tzinfo=UTC)
    correct(store, "s0", "night", at, filled(pl.DataFrame([decision]), DECISION), "similar")


def ids(store: Store) -> dict[str, str]:
    """Topic ids by the first word of the title."""
    (snapshot,) = served(store.home, store.shards)
    with SnapshotReader(snapshot) as reader:
        return {record["title"].split()[0]: record["id"] for record in export_records([reader])}
