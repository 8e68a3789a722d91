"""A real store with every event that the conditions cover, made by real nights and corrections.

Days and what happens: 2 a first night; 3 a person merges two topics and pins one; 100 a night that archives and
detaches; 120 the last night, which updates, restores, archives, detaches and summarises, and queues dependents.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from memstate_core.forget.manual_actions import pin_decisions
from memstate_core.ingest.importer import import_paths
from memstate_core.model.ids import uuid_text
from memstate_core.model.ledger_tables import ACCESSES
from memstate_core.night.corrections import correct
from memstate_core.revise.verdicts import verdict_decisions
from memstate_core.run.served_state import read_served
from memstate_core.run.store import Store, open_store
from tests.core.revise.nights import night_without_duplicates as night
from tests.core.strategies import day

AYA, KITE = "user:aya", "project:kite"
LAST = 120
POLICY = """
[store]
keep_snapshots = 2

[policy]
salience_half_life_days = 10
topic_count_soft_limit = 3
max_active_topics = 9
summary_keep_revisions = 2

[[policy.rules]]
name = "logs stay short"
on = "nightly"
when = "topic_kind == 'log'"
do = "summarise"
"""


def key(name: str, scope: str = AYA) -> str:
    """The id of the topic that a key names."""
    return uuid_text("key", scope, name)


def field(name: str, value: Any, since: float | None = None, **more: Any) -> dict[str, Any]:
    stated = {"name": name, "value": value, **more}
    return stated if since is None else stated | {"valid_from": day(since).isoformat()}


def edge(kind: str, to: str) -> dict[str, Any]:
    return {"kind": kind, "to_topic_key": to}


def about(name: str, at: float, **said: Any) -> dict[str, Any]:
    """An observation that names its topic by key."""
    return {"topic_key": name, "observed_at": day(at).isoformat(), **said}


FIRST = [
    about("acme", 0, title="Acme renewal", summary="The contract", fields=[field("owner", "Aya"), field("stage", 1)]),
    about("acme-two", 0.5, title="Renewal of Acme", fields=[field("owner", "Ben")]),
    about("old", 0, title="Old barn", fields=[field("roof", "tin")]),
    about("older", 0, title="Older shed", fields=[field("roof", "slate"), field("floor", "clay")]),
    about("back", 0, title="Back office", fields=[field("desk", "oak")]),
    about("kept", 0, title="Kept for ever", fields=[field("value", 7)]),
    about("log", 0, title="Log of the pump", topic_kind="log", fields=[field("level", n, n) for n in range(5)]),
    {"title": "Acme renewal", "observed_at": day(1).isoformat(), "fields": [field("note", "by title alone")]},
]
SECOND = [
    about("boat", 97, title="Boat shed", fields=[field("owner", "Ben")], edges=[edge("part_of", "acme")]),
    about("clause", 97, title="Mooring clause", fields=[field("term", 2)], edges=[edge("part_of", "boat")]),
    about("acme", 98, fields=[field("owner", "Cleo")]),
    about("log", 98, fields=[field("level", 9)]),
    about("gone", 75, title="Gone harbour", topic_kind="harbour", fields=[field("depth", 4)]),
    about(
        "fading",
        85,
        title="Fading lighthouse",
        fields=[field("lamp", "lit"), field("keeper", "Dora", ref_topic_id=key("boat"))],
        edges=[edge("mentions", "acme")],
    ),
]
THIRD = [
    about(
        "acme",
        118,
        summary="The contract, signed",
        fields=[field("owner", "Dora"), field("price", [1, 2], field_type="list")],
    ),
    about("back", 118, fields=[field("desk", "pine")]),
    about("tide", 118, title="Tide table", topic_kind="log", fields=[field("tide", n, 110 + n) for n in range(6)]),
]
TURNS = [
    "The pump in the north cellar failed again and the water rose to the second stair.",
    "Replace the float switch of the pump, it sticks when the water is cold.",
    "I ordered a new float switch for the cellar pump from the harbour shop.",
    "The harbour shop delivers the switch on Friday before noon.",
    "Then the plumber fits the switch and tests the pump in the cellar.",
    "If the pump holds, the north cellar stays dry this winter.",
]


def grown(home: Path) -> Store:
    """The store after its last night."""
    home.mkdir(parents=True)
    (home / "memstate.toml").write_text(POLICY)
    store = open_store(home, {})
    _import(store, FIRST, 1)
    _import_refused(store, 1.2)
    _import(store, [about("kite", 1, title="Kite plan", fields=[field("wind", "west")])], 1.5, KITE)
    night(store, 2)
    _correct(store, verdict_decisions(read_served(store)["s0"], [(key("acme"), key("acme-two"), "same")]), 3)
    _correct(store, pin_decisions(read_served(store)["s0"], [key("kept")], on=True), 3.5)
    _import(store, SECOND, 99)
    night(store, 100)
    _import(store, THIRD, 119)
    _import(store, _turns(118.5), 119.5)
    _access(store, "kept", 119, fields=["value"])
    night(store, LAST)
    return store


def _turns(at: float) -> list[dict[str, Any]]:
    said = enumerate(TURNS)
    return [
        {
            "text": text,
            "kind": "user_message",
            "session_id": "cellar",
            "actor": "Ann" if turn % 2 else "Bo",
            "turn": turn,
            "observed_at": day(at + turn / 1000).isoformat(),
        }
        for turn, text in said
    ]


def _import(store: Store, rows: list[dict[str, Any]], at: float, scope: str = AYA) -> None:
    kind, _, name = scope.partition(":")
    path = store.home.root / f"day-{at}.jsonl"
    lines: list[Mapping[str, Any]] = [{"scope": {"type": kind, "id": name}, **row} for row in rows]
    path.write_text("".join(json.dumps(row) + "\n" for row in lines))
    report = import_paths(store.ledger, store.settings, [path], now=day(at), run_id=f"import-{at}")
    assert report.accepted == len(rows), report


def _import_refused(store: Store, at: float) -> None:
    """A row without anything to remember, for the quarantine."""
    path = store.home.root / f"day-{at}.jsonl"
    path.write_text("{}\n")
    report = import_paths(store.ledger, store.settings, [path], now=day(at), run_id=f"import-{at}")
    assert (report.accepted, report.quarantined) == (0, 1), report


def _access(store: Store, name: str, at: float, fields: list[str] | None = None) -> None:
    row = {
        "access_id": f"access-{name}", "scope": AYA, "topic_id": key(name), "fields": fields, "at": day(at),
        "source": "query", "failed": False, "recorded_at": day(at), "run_id": "collect",
    }  # fmt: skip
    with store.ledger.writing("a test"):
        store.ledger.append("accesses", pl.DataFrame([row], schema=ACCESSES), f"access-{name}")


def _correct(store: Store, decisions: pl.DataFrame, at: float) -> None:
    correct(store, "s0", f"correction-{at}", day(at), decisions, "a person decided it")
