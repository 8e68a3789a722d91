"""The soak: what it counts as a violation, and some seconds of it."""

from __future__ import annotations

from collections import Counter
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from tests import warm
from tests.pipeline.conftest import clean_environment

BENCHMARKS = Path(__file__).parents[1]
GOOD, BAD = ("t", "2026-01-01T00:00:00Z", False), ("t", "2026-01-01T00:00:00Z", True)


@pytest.fixture
def soak(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script as a module; it is outside of any package, beside the modules that it imports."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return import_module("soak")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, ""),
        ({"held": {"a": 1}}, "1 acknowledged writes are not in the ledger, first b"),
        ({"held": {"a": 1, "b": 2, "c": 1}}, "1 writes are in the ledger more than once, first b"),
        ({"held": {"a": 1, "b": 1, "x": 1}}, "1 writes in the ledger were never sent, first x"),
        ({"accesses": {BAD: 1}}, f"1 acknowledged accesses are not in the ledger, first {BAD}"),
        ({"flushed": {GOOD: 3}}, f"1 flushed accesses are not in the ledger, first {GOOD}"),
        ({"recorded": {GOOD: 3}}, f"1 accesses are in the ledger more often than in the journal, first {GOOD}"),
    ],
)
def test_violations(soak: ModuleType, changed: dict[str, object], said: str) -> None:
    sound = {
        "sent": {"a", "b", "c"}, "written": {"a", "b"}, "held": {"a": 1, "b": 1, "c": 1},
        "accesses": {GOOD: 1}, "flushed": {GOOD: 2}, "recorded": {GOOD: 2},
    }  # fmt: skip
    assert "; ".join(soak.violations(**sound | changed)) == said


def test_a_journal_may_grow_and_lose_nothing(soak: ModuleType) -> None:
    line = b'{"segment": "s"}\n{"topic_id": "t", "at": "2026-01-01T00:00:00Z", "source": "x", "failed": true}\n'
    assert soak.broken_segments({"s": line}, {"s": line + line, "other": b""}) == []
    assert soak.broken_segments({"s": line}, {})
    assert soak.broken_segments({"s": line}, {"s": line[:-4]})
    assert soak.accesses_in({"s": line, "torn": line + b'{"topic_id": "u", "at'}) == Counter({BAD: 2})


@pytest.mark.slow
def test_some_seconds_of_kills_lose_and_double_nothing(soak: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "memstate.toml").write_text("[store]\nniceness = 0\n")  # the clients would leave a run no core
    run = soak.Soak(tmp_path, 7, lambda command, out, log: warm.Process(command, clean_environment(), out, log))
    assert run.run(seconds=1) == []
    assert run.kills
    assert run.runs
    assert all(run.seen.answers[what] for what in ("ingest", "query", "feedback"))
