"""Compares new shards with the served ones: every scope has the same state, and the same answers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from datetime import datetime
from typing import Any

import polars as pl

from memstate_core.embed.encoder import Encoder
from memstate_core.model.errors import ReshardMismatch
from memstate_core.night.resharding.inputs import Inputs
from memstate_core.policy.settings import Policy
from memstate_core.retrieve.query import Question, answer
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.run.run import GRAPH_FILE
from memstate_core.run.store import Store
from memstate_core.state.fold.strength import saliences
from memstate_core.state.graph import EDGE, FIELD, REVISION, TOPIC, open_graph
from memstate_core.state.snapshots import Snapshot
from memstate_core.state.state_hash import scope_hashes

ASKED_SCOPES = 64
"""Scopes whose answers are compared, spread over all of them; the state of every scope is."""


def require_same(store: Store, given: Inputs, made: Sequence[Snapshot]) -> int:
    """Compares the state of every scope, and answers of some, and returns how many scopes there are.

    Salience is compared at the time of the new shards, which may be later than that of an old one.

    Raises:
        ReshardMismatch: a scope has another state, or other answers.
    """
    served = [each.snapshot for each in given.served.values()]
    policy, now = Policy.recorded(given.pinned.policy), given.pinned.now
    before, after = (states(snapshots, now, policy) for snapshots in (served, made))
    changed = sorted(scope for scope in before.keys() | after.keys() if before.get(scope) != after.get(scope))
    if changed:
        raise ReshardMismatch(str(store.home.root), "another state", changed)
    aged = {snapshot.manifest.now for snapshot in served} != {now}
    if not aged and (changed := _otherwise_answered(store, served, made)):
        raise ReshardMismatch(str(store.home.root), "other answers", changed)
    return len(before)


def states(snapshots: Sequence[Snapshot], now: datetime, policy: Policy) -> dict[str, str]:
    """The hash of the state of each scope at a time."""
    found: dict[str, str] = {}
    for snapshot in snapshots:
        with open_graph(snapshot.path / GRAPH_FILE, read_only=True) as graph:
            topics, fields, revisions, edges = (graph.read(table) for table in (TOPIC, FIELD, REVISION, EDGE))
        fields, topics = saliences(fields.drop("salience"), topics.drop("salience", "failed_salience"), now, policy)
        named = zip((TOPIC, FIELD, REVISION, EDGE), (topics, fields, revisions, edges), strict=True)
        found |= scope_hashes({table.name: rows for table, rows in named})
    return found


def _otherwise_answered(store: Store, served: Sequence[Snapshot], made: Sequence[Snapshot]) -> list[str]:
    """The scopes, of some, in which a question has another answer."""
    with ExitStack() as stack:
        old, new = ([stack.enter_context(SnapshotReader(each)) for each in snapshots] for snapshots in (served, made))
        questions = _questions(old)
        return [each.scopes[0] for each in questions if each.scopes and _differ(store.encoder, old, new, each)]


def _questions(readers: Sequence[SnapshotReader]) -> list[Question]:
    """A question about one topic of each of some scopes: its title."""
    columns = ["id", "scope", "title"]
    topics = pl.concat([reader.graph.read(TOPIC, columns, "r.state = 'active'") for reader in readers])
    first = topics.sort("scope", "id").unique("scope", keep="first", maintain_order=True)
    some = first.gather_every(max(1, first.height // ASKED_SCOPES)).head(ASKED_SCOPES)
    return [Question(title, scopes=(scope,)) for scope, title in some.select("scope", "title").iter_rows()]


def _differ(encoder: Encoder, old: Sequence[SnapshotReader], new: Sequence[SnapshotReader], question: Question) -> bool:
    before, after = (_said(answer(readers, encoder, None, question)) for readers in (old, new))
    return before != after


def _said(document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name != "snapshot"}
