"""Evidence that is set aside is read by nothing: no fold can digest it, whatever moment it is asked for."""

from __future__ import annotations

import polars as pl
import pytest

from memstate_core.model.ledger_tables import DECISION
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.run.store import Store
from memstate_core.serve.pending.unpublished import UnpublishedView
from tests.core.frames import filled
from tests.core.night import corrections
from tests.core.night.corrections import ACME, CAT, SCOPE, decide, shard, undo
from tests.core.strategies import day

pytestmark = pytest.mark.slow

first_night, store = corrections.first_night, corrections.store


def set_aside(store: Store, topic: str) -> str:
    """Sets the one piece of evidence of a topic aside; its id."""
    (name,) = shard(store).evidence_topic.filter(pl.col("topic_id") == topic)["evidence_id"]
    row = {"kind": "set_aside", "scope": SCOPE, "evidence_ids": [name], "payload_json": "{}", "reason": "test"}
    decide(store, filled(pl.DataFrame([row]), DECISION), 3)
    return str(name)


def topics_as_of(store: Store, at: float) -> set[str]:
    with SnapshotReader(shard(store).snapshot) as reader:
        return set(reader.past(SCOPE, day(at)).topics["id"])


def test_as_of_holds_nothing_that_was_set_aside_later(store: Store) -> None:
    assert {ACME, CAT} <= topics_as_of(store, 2)
    name = set_aside(store, CAT)
    assert CAT not in topics_as_of(store, 2)
    assert CAT not in topics_as_of(store, 4)
    assert ACME in topics_as_of(store, 2)
    undo(store, name, 5)
    assert CAT in topics_as_of(store, 2)


def test_pending_evidence_holds_nothing_that_was_set_aside(store: Store) -> None:
    view = UnpublishedView(store)
    name = set_aside(store, CAT)
    rows = view.of([], day(4)).rows
    assert name not in set(rows["evidence_id"])
    assert rows.height == store.ledger.count("evidence") - 1
