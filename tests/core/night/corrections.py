"""What tests of corrections share: a small real store, manual decisions on it, and its content afterwards."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memstate_core.model.ids import key_id
from memstate_core.night.corrections import correct
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.retrieve.views.export import export_records
from memstate_core.revise.undo import undo_decisions
from memstate_core.revise.verdicts import verdict_decisions
from memstate_core.run.served_state import Served, read_served
from memstate_core.run.store import Store, open_store
from tests.core.revise.nights import night_without_duplicates as night
from tests.core.revise.nights import record_by_key as record
from tests.core.strategies import day

Said = dict[str, dict[str, Any]]
"""What is observed, by the key of the topic; "" names none."""

SCOPE = "user:aya"
BEFORE: Said = {
    "acme": {"title": "Acme renewal", "fields": [{"name": "owner", "value": "Aya"}]},
    "boat": {"title": "Boat shed", "fields": [{"name": "owner", "value": "Ben"}]},
    "cat": {"title": "Cat food", "edges": [{"to_topic_key": "boat", "kind": "part_of"}]},
}
LATER: Said = {
    "boat": {"fields": [{"name": "owner", "value": "Cleo"}]},
    "acme": {"title": "Acme", "summary": "Signed at last"},
    "dune": {"title": "Dune buggy"},
}
ACME, BOAT, CAT = (pl.select(key_id(pl.lit(SCOPE), pl.lit(key))).item() for key in ("acme", "boat", "cat"))


def shard(store: Store) -> Served:
    return read_served(store)["s0"]


def decide(store: Store, decisions: pl.DataFrame | None, at: float) -> str:
    """One correction; answers the state hash."""
    assert decisions is not None
    count = store.ledger.scan("transitions").select(pl.len()).collect().item()
    return correct(store, "s0", f"correction-{count}", day(at), decisions, "a person said so").manifest.state_hash


def merge(store: Store, a: str, b: str, at: float = 2) -> str:
    return decide(store, verdict_decisions(shard(store), [(a, b, "same")]), at)


def undo(store: Store, name: str, at: float = 2) -> str:
    return decide(store, undo_decisions(shard(store), name), at)


def state_hash(store: Store) -> str:
    return shard(store).snapshot.manifest.state_hash


def exported(store: Store) -> list[dict[str, Any]]:
    with ExitStack() as stack:
        return list(export_records([stack.enter_context(SnapshotReader(shard(store).snapshot))]))


def without_marks(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Records without the review queue, which is not part of the state."""
    return [{name: value for name, value in row.items() if name not in ("stale", "warnings")} for row in records]


def homes(store: Store) -> dict[str, str]:
    """The topic that each of the three resolves to."""
    served = shard(store)
    return {name: str(served.living(topic)) for name, topic in (("acme", ACME), ("boat", BOAT), ("cat", CAT))}


def begun(home: Path, **policy: Any) -> Store:
    home.mkdir()
    lines = [f"{name} = {value}" for name, value in policy.items()]
    (home / "memstate.toml").write_text("\n".join(["[policy]", *lines, ""]))
    store = open_store(home, {})
    record(store, BEFORE, 0)
    night(store, 2)
    return store


@pytest.fixture(scope="module")
def first_night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home after its first night; tests copy it."""
    return begun(tmp_path_factory.mktemp("first") / "home").home.root


@pytest.fixture
def store(first_night: Path, tmp_path: Path) -> Store:
    return open_store(shutil.copytree(first_night, tmp_path / "home"), {})
