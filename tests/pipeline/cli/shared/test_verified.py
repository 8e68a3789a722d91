"""`memstate verify` beside writers: what they changed meanwhile is no damage, and damage is found at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from memstate_core.model.errors import StoreLocked
from memstate_core.night.verify import Verdict, verify, verify_store
from memstate_core.run.store import open_store
from memstate_core.state.current import current_snapshot
from memstate_core.state.home import Home
from memstate_core.state.lock import exclusive
from memstate_pipeline.cli.shared.verified import verified
from tests.pipeline.conftest import NIGHT, run_memstate

pytestmark = pytest.mark.slow


@pytest.fixture
def home(tmp_path: Path) -> Path:
    inbox = tmp_path / "home" / "inbox"
    inbox.mkdir(parents=True)
    (inbox / "one.jsonl").write_text('{"title": "Yard", "observed_at": "2026-01-01"}\n')
    assert run_memstate(tmp_path / "home", "maintain", "--now", NIGHT).code == 0
    return tmp_path / "home"


def counted(home: Path, before: Callable[[], object]) -> tuple[Callable[[], dict[str, list[Verdict]]], list[int]]:
    """A verification of the snapshot that was served when it began, after which a writer goes on, and its calls."""
    calls: list[int] = []

    def verifying() -> dict[str, list[Verdict]]:
        store = open_store(home, {})
        snapshot = current_snapshot(store.home, "s0")
        assert snapshot is not None
        calls.append(snapshot.manifest.number)
        if len(calls) == 1:
            before()
        return {snapshot.name: verify(open_store(home, {}), snapshot)}

    return verifying, calls


def topic(home: Path) -> str:
    return str(run_memstate(home, "export", "--json").document["topics"][0]["id"])


def test_what_a_correction_replaced_meanwhile_is_verified_again(home: Path) -> None:
    yard = topic(home)
    verifying, calls = counted(home, lambda: run_memstate(home, "pin", yard))
    found = verified(Home(home), verifying)
    assert calls == [1, 2]
    assert all(verdict.passed for verdicts in found.values() for verdict in verdicts)


def test_damage_is_found_at_once(home: Path) -> None:
    with (home / "snapshots" / "s0" / "1" / "graph.kuzu").open("ab") as file:
        file.write(b"x")
    verifying, calls = counted(home, lambda: None)
    found = verified(Home(home), verifying)
    assert calls == [1]
    assert not all(verdict.passed for verdicts in found.values() for verdict in verdicts)
    assert run_memstate(home, "verify").code == 1


def test_what_fails_while_an_erasure_goes_on_is_no_verdict(home: Path) -> None:
    Home(home).begun_erasure.parent.mkdir(parents=True, exist_ok=True)
    for file in (home / "ledger" / "evidence").glob("*.parquet"):
        file.unlink()
    Home(home).begun_erasure.write_bytes(b"{}")
    with exclusive(Home(home).lock, "process 1 (memstate erase)"), pytest.raises(StoreLocked, match="memstate erase"):
        verified(Home(home), lambda: verify_store(open_store(home, {})))
    Home(home).begun_erasure.unlink()
    assert run_memstate(home, "verify").code == 1
