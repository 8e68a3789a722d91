"""What the checkers find is handed over once, and the same evidence is not looked at again."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memstate_core.ingest.importer import import_paths
from memstate_core.ingest.inbox import import_inbox
from memstate_core.night.verification import record
from memstate_core.night.verification.record import hand_over_findings
from memstate_core.run.store import Store, open_store

NOW = datetime(2026, 4, 1, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "home", {})


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often the checkers looked."""
    times: list[int] = []
    real = record.found_by_checkers

    def counted(*given: Any) -> Any:
        times.append(len(times))
        return real(*given)

    monkeypatch.setattr(record, "found_by_checkers", counted)
    return times


def imported(store: Store, name: str, **row: Any) -> None:
    dump = store.home.root.parent / f"{name}.jsonl"
    dump.write_text(
        json.dumps({"observation_id": name, "observed_at": "2026-01-01", **(row or {"title": name})}) + "\n"
    )
    assert import_paths(store.ledger, store.settings, [dump], now=NOW, run_id=name).accepted == 1


def read(store: Store) -> None:
    import_inbox(store.home, store.ledger, store.settings, now=NOW, run_id="findings")


def test_the_evidence_in_which_nothing_was_found_is_not_looked_at_again(store: Store, looked: list[int]) -> None:
    assert hand_over_findings(store, NOW) == 0
    fact = {"type": "fact", "subject": "key:yard", "predicate": "gate", "object": "open", "sources": ["gone"]}
    imported(store, "yard", memory=fact)
    looked.clear()
    assert hand_over_findings(store, NOW) == 1
    read(store)
    assert [hand_over_findings(store, NOW) for _ in range(3)] == [0, 0, 0]
    assert len(looked) == 2, "what was found, and once more in what the finding became"
    imported(store, "gone")
    assert hand_over_findings(store, NOW + timedelta(days=1)) == 1, "the observation is there now"
    read(store)
    assert hand_over_findings(store, NOW + timedelta(days=2)) == 0


def test_a_finding_that_no_import_has_read_is_found_again(store: Store, looked: list[int]) -> None:
    imported(store, "yard", memory={"type": "fact", "subject": "key:yard", "predicate": "gate", "object": "open",
                                    "sources": ["gone"]})  # fmt: skip
    assert [hand_over_findings(store, NOW) for _ in range(2)] == [1, 1]
    assert len(looked) == 2


def test_another_version_or_other_evidence_of_the_same_number_is_looked_at(
    store: Store, looked: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    imported(store, "yard")
    hand_over_findings(store, NOW)
    hand_over_findings(store, NOW)
    assert len(looked) == 1
    with monkeypatch.context() as patch:
        patch.setattr(record, "__version__", "9.9.9")
        hand_over_findings(store, NOW)
    assert len(looked) == 2
    hand_over_findings(store, NOW)
    other = open_store(tmp_path / "other" / "home", {})
    other.home.root.mkdir(parents=True)
    imported(other, "quay")
    assert other.ledger.version("evidence") == store.ledger.version("evidence")
    other.home.verified_evidence.parent.mkdir()
    other.home.verified_evidence.write_bytes(store.home.verified_evidence.read_bytes())
    looked.clear()
    hand_over_findings(other, NOW)
    assert len(looked) == 1, "as after a restore"


def test_where_files_are_looked_at_they_are_each_night(tmp_path: Path, looked: list[int]) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "memstate.toml").write_text(f"[verification]\nroots = [{json.dumps(str(tmp_path))}]\n")
    store = open_store(tmp_path / "home", {})
    imported(store, "yard")
    hand_over_findings(store, NOW)
    hand_over_findings(store, NOW)
    assert len(looked) == 2
