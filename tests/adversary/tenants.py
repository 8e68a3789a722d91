"""Two tenants: what one of them asks is answered alike in two worlds that differ only in the rows of the other."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

from memstate_core.model.errors import TopicNotFound
from memstate_core.model.ids import uuid_text
from memstate_core.retrieve.query import Question, answer
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.retrieve.topic import topic_record
from memstate_core.run.store import Store
from memstate_core.state.current import served
from tests.adversary.attack import Row, a_store, imported
from tests.core.revise.nights import night
from tests.core.strategies import day

MINE, THEIRS = "user:mine", "user:theirs"
_WORDS = ("gate", "yard", "quay", "renewal", "contract", "ferry", "lamp", "bench")
_QUESTIONS = ("Is the gate of the yard open?", "contract renewal", "Secret")


def rows_of(random: Random, scope: str, count: int, keys: str) -> list[Row]:
    """Observations and turns of a scope, with topics named by keys that begin alike."""
    kind, _, name = scope.partition(":")
    rows = []
    for number in range(count):
        words = " ".join(random.choices(_WORDS, k=4))
        row: Row = {"scope": {"type": kind, "id": name}, "observation_id": f"{name}/{keys}/{number}"}
        row["observed_at"] = f"2026-01-0{random.randrange(1, 4)}T{random.randrange(24):02}:00:00Z"
        if random.random() < 0.4:
            row |= {"text": f"We spoke of the {words}", "session_id": f"s{random.randrange(2)}", "actor": "Ines"}
        else:
            fields = [{"name": random.choice(("owner", "state")), "value": random.choice(_WORDS)}]
            row |= {"topic_key": f"{keys}{random.randrange(4)}", "title": words, "fields": fields}
        rows.append(row)
    return rows


def _hostile(random: Random, count: int) -> list[Row]:
    """Rows of the other tenant that aim at ids, keys, titles and edges of mine."""
    rows = rows_of(random, THEIRS, count, "mine")
    for row in rows:
        aimed = uuid_text("key", MINE, f"mine{random.randrange(4)}")
        match random.randrange(4):
            case 0:
                row |= {"topic_id": aimed, "title": "Secret of another"}
            case 1:
                row |= {"edges": [{"to_topic_id": aimed, "kind": "part_of"}], "title": "Secret edge"}
            case 2:
                fields = [{"name": "owner", "value": "Secret", "ref_topic_id": aimed}]
                row |= {"topic_key": "mine1", "title": "Secret reference", "fields": fields}
            case _:
                pass
    return rows


def _world(folder: Path, mine: list[Row], theirs: list[Row]) -> Store:
    store = a_store(folder)
    imported(store, [*mine, *theirs], at=4)
    night(store, 5)
    return store


def _seen(store: Store) -> list[Any]:
    """Everything that my tenant is shown."""
    with ExitStack() as stack:
        readers = [stack.enter_context(SnapshotReader(snapshot)) for snapshot in served(store.home, store.shards)]
        seen: list[Any] = []
        for text in _QUESTIONS:
            for as_of in (None, day(1)):
                question = Question(text, scopes=(MINE,), explain=True, top_k=50, evidence_k=50, as_of=as_of)
                seen.append(answer(readers, store.encoder, store.home.cache, question))
        ids = [uuid_text("key", scope, f"mine{number}") for scope in (MINE, THEIRS) for number in range(4)]
        return [*seen, *(_record(readers, topic_id) for topic_id in ids)]


def _record(readers: list[SnapshotReader], topic_id: str) -> Any:
    try:
        return topic_record(readers, topic_id, history=True, scopes=(MINE,))
    except TopicNotFound:
        return None


def attack(random: Random, folder: Path, count: int = 12) -> int:
    """The worlds with and without the other tenant's rows look alike from my scope."""
    mine = rows_of(random, MINE, count, "mine")
    worlds = [_world(folder / name, mine, theirs) for name, theirs in (("with", _hostile(random, count)), ("none", []))]
    with_them, alone = (_seen(store) for store in worlds)
    assert "Secret of another" not in json.dumps(with_them, default=str)
    assert alike(with_them, alone), "rows of another tenant change what mine is shown"
    return count


def alike(one: Any, other: Any) -> bool:
    """Equal but for rounding: vectors differ in their last digits with the batch that they are computed in."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-4, abs_tol=1e-6)
    return bool(one == other)
