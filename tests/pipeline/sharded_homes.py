"""Stores of several scopes with decisions of every kind, and what is compared between two of them."""

from __future__ import annotations

import json
from collections.abc import Collection
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from memstate_core.ingest.accesses.collect import collect_accesses
from memstate_core.night.resharding.compare import states
from memstate_core.policy.settings import Policy
from memstate_core.run.store import Store, open_store
from memstate_core.state.current import served
from tests.core.revise import nights as steps
from tests.core.strategies import EPOCH
from tests.pipeline.conftest import Answer, run_memstate

SCOPES = [f"user:u{number}" for number in range(6)]
NIGHTS = [f"2026-04-{number:02}T02:00:00Z" for number in range(2, 12)]
SETTINGS = """# mine
[store]
shards = {shards}  # as it began
niceness = 0
[embedding]
model = "hashing"
[policy]
topic_count_soft_limit = 0
salience_half_life_days = 3.0
half_life_growth_max = 1.0
"""
OWNED = {"fields": [{"name": "owner", "value": "Aya"}, {"name": "since", "value": "2019-03-04"}]}
QUARTZ = {"title": "Quartz lagoon harvest", "summary": "Signing with the northern partner at the harbour office"}


def done(home: Path, *arguments: str, **environment: str) -> dict[str, Any]:
    """The document of a command that succeeds."""
    answer: Answer = run_memstate(home, *arguments, "--json", **environment)
    assert answer.code == 0, answer.stderr
    return dict(answer.document)


def rows_of(night: int) -> list[dict[str, Any]]:
    """What each scope gets before a night: topics, duplicates from the second on, edges, turns."""
    found: list[dict[str, Any]] = []
    for place, scope in enumerate(SCOPES):
        kind, _, name = scope.partition(":")
        given = {"scope": {"type": kind, "id": name}, "observed_at": NIGHTS[night]}
        if night < 2 or (night == 3 and place % 2):
            found.append(given | QUARTZ | OWNED | {"observation_id": f"{name}-q{night}", "placement": "new_topic"})
        found.append(
            given
            | {"observation_id": f"{name}-y{night}", "topic_key": f"yard-{name}", "title": f"Old Ferry Yard {name}"}
            | {"fields": [{"name": "gate", "value": f"open {night}"}]}
        )
        if night == 0:
            found.append(
                given
                | {"observation_id": f"{name}-b", "topic_key": f"budget-{name}", "title": f"Spring budget {name}"}
                | {"edges": [{"to_topic_key": f"yard-{name}", "kind": "part_of"}]}
            )
        if night == 1:
            text = f"I went to the {name} support group yesterday and it moved me"
            found.append(given | {"observation_id": f"{name}-t", "kind": "user_message", "turn": 1, "text": text})
    return found


def imported(home: Path, night: int, scopes: Collection[str] = SCOPES) -> None:
    """Imports what comes before a night, in some scopes."""
    dump = home.parent / f"{home.name}-{night}.jsonl"
    rows = (row for row in rows_of(night) if f"user:{row['scope']['id']}" in scopes)
    dump.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done(home, "import", str(dump), "--now", NIGHTS[night])


def begun(home: Path, shards: int) -> Path:
    """An empty store of so many shards."""
    home.mkdir()
    (home / "memstate.toml").write_text(SETTINGS.format(shards=shards))
    return home


def slept(home: Path, now: str) -> None:
    """A night of every shard, of its steps alone: no one looks at its report, its checks and its run in Dagster."""
    store, at = open_store(home, {}), datetime.fromisoformat(now)
    collect_accesses(store.home, store.ledger, store.settings, at, f"accesses-{now}")
    for shard in store.shards:
        steps.night(store, (at - EPOCH) / timedelta(days=1), shard=shard)


def lived(home: Path) -> Path:
    """Four nights with merges, and between them an undo, a pin, feedback, archiving by age, a restoration."""
    for night in range(3):
        imported(home, night)
        slept(home, NIGHTS[night])
    merges = {merge["scope"]: merge["id"] for merge in done(home, "merges")["merges"]}
    done(home, "undo", merges[min(merges)], "--now", NIGHTS[2])
    named = topics(home)
    done(home, "pin", named[SCOPES[1], "Spring budget u1"], "--now", NIGHTS[2])
    done(home, "feedback", named[SCOPES[2], "Old Ferry Yard u2"], "--failed", "--now", NIGHTS[2])
    slept(home, "2026-04-20T02:00:00Z")
    archived = topics(home, "archived")
    done(home, "restore", min(archived.values()), "--now", "2026-04-20T02:00:00Z")
    return home


def snapshots(home: Path) -> list[Any]:
    """What is served, by shard."""
    store = open_store(home, {})
    return served(store.home, store.shards)


def topics(home: Path, state: str = "active") -> dict[tuple[str, str], str]:
    """Ids of topics by scope and title."""
    from memstate_core.retrieve.reader import SnapshotReader
    from memstate_core.state.graph import TOPIC

    found: dict[tuple[str, str], str] = {}
    for snapshot in snapshots(home):
        with SnapshotReader(snapshot) as reader:
            rows = reader.graph.read(TOPIC, ["id", "scope", "title"], f"r.state = '{state}'")
        found |= {(scope, title): topic for topic, scope, title in rows.iter_rows()}
    return found


def scope_states(home: Path) -> dict[str, str]:
    """The hash of the state of each scope, at the latest time that is served."""
    found = snapshots(home)
    now = max(snapshot.manifest.now for snapshot in found)
    return states(found, now, Policy.recorded(found[0].manifest.policy))


def decisions(store: Store) -> pl.DataFrame:
    """All that the ledger records."""
    return store.ledger.scan("transitions").sort("seq").collect()


def verified(home: Path) -> None:
    """Asserts that `verify` and `rebuild` pass."""
    answer = run_memstate(home, "verify", "--json")
    assert (answer.code, answer.document["passed"]) == (0, True), answer.stdout
