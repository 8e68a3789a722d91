"""Commands on damaged homes end in our own words: no traceback, no panic, no unforeseen error, no foreign link."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.pipeline.conftest import NIGHT, run_memstate

pytestmark = pytest.mark.slow
EXIT_CODES = {0, 1, 3, 4}
FOREIGN = ("Traceback", "panicked", "sqlalche.me", "RUST_BACKTRACE", "POLARS_VERBOSE", "unexpected ")
BASE = "snapshots/s0/1"


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def garbled(path: Path) -> None:
    path.write_bytes(b"damaged")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


FAULTS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "topics emptied": (f"{BASE}/topics.parquet", emptied),
    "vectors cut": (f"{BASE}/topic_vectors.npy", cut),
    "facts garbled": (f"{BASE}/facts/fields.parquet", garbled),
    "graph cut": (f"{BASE}/graph.kuzu", cut),
    "graph gone": (f"{BASE}/graph.kuzu", Path.unlink),
    "manifest cut": (f"{BASE}/manifest.json", cut),
    "CURRENT garbled": ("snapshots/s0/CURRENT", garbled),
    "evidence emptied": ("ledger/evidence/*.parquet", emptied),
    "evidence gone": ("ledger/evidence/*.parquet", Path.unlink),
    "commit cut": ("ledger/transitions/_delta_log/*.json", cut),
    "chain cut": ("ledger/chain.jsonl", cut),
    "cache garbled": ("cache/embeddings.sqlite", garbled),
    "settings of Dagster garbled": ("dagster/dagster.yaml", garbled),
    "history garbled": ("dagster/history/runs.db", garbled),
}
NIGHTLY = {"settings of Dagster garbled", "history garbled", "commit cut", "graph cut"}
"""Faults that `maintain` meets in different places; of the others `test_run_refuses_damage.py` has the runs."""


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("damaged")
    scope = {"type": "user", "id": "u1"}
    rows = [
        {
            "title": f"Yard {at}",
            "observed_at": "2026-01-01",
            "scope": scope,
            "fields": [{"name": "gate", "value": value}],
        }
        for at in range(4)
        for value in ("shut", "open")
    ]
    (folder / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run_memstate(folder / "home", "import", str(folder / "a.jsonl")).code == 0
    assert run_memstate(folder / "home", "maintain", "--now", NIGHT).code == 0
    return folder / "home"


def commands(topic: str, fault: str) -> list[tuple[str, ...]]:
    reading = [(name,) for name in ("status", "doctor", "verify", "export", "merges", "review", "confirm", "report")]
    asking = [("query", "yard"), ("context", "yard", "--budget", "100"), ("topic", topic), ("doctor", "--topic", topic)]
    writing = [("undo", "x"), ("pin", topic, "--now", NIGHT), ("erase", "--topic", topic, "--dry-run")]
    keeping = [("retention", "--dry-run"), ("quarantine", "list")]
    return [*reading, *asking, *keeping, *writing, *([("maintain", "--now", NIGHT)] if fault in NIGHTLY else [])]


@pytest.mark.parametrize("fault", FAULTS)
def test_every_command_ends_in_our_own_words(sound: Path, tmp_path: Path, fault: str) -> None:
    topic = run_memstate(sound, "export", "--json").document["topics"][0]["id"]
    home = tmp_path / "home"
    shutil.copytree(sound, home)
    name, damage = FAULTS[fault]
    (file,) = home.glob(name)
    damage(file)
    answers = {" ".join(command): run_memstate(home, *command) for command in commands(topic, fault)}
    foreign = {
        command: said
        for command, answer in answers.items()
        if any(word in (said := answer.stdout + answer.stderr) for word in FOREIGN) or answer.code not in EXIT_CODES
    }
    assert foreign == {}
    assert any(answer.code for answer in answers.values()) or fault in ("CURRENT garbled", "cache garbled")


def test_an_impossible_home_is_named(tmp_path: Path) -> None:
    file = tmp_path / "home"
    file.write_text("a file")
    for command in [*commands("x", "graph cut"), ("import", str(file)), ("backup", str(tmp_path / "copy"))]:
        answer = run_memstate(file, *command)
        said = answer.stdout + answer.stderr
        assert answer.code in EXIT_CODES - {0}, command
        assert not any(word in said for word in FOREIGN), said


def test_status_answers_without_the_ledger(sound: Path, tmp_path: Path) -> None:
    shutil.copytree(sound, tmp_path / "home")
    next((tmp_path / "home/ledger/evidence").glob("*.parquet")).unlink()
    status = run_memstate(tmp_path / "home", "status", "--json").document
    assert (status["snapshot"], status["evidence"], status["waiting"]) == ("s0/1", None, None)
    assert "`memstate verify` names the damage" in status["warnings"][0]
    assert "evidence: unknown" in run_memstate(tmp_path / "home", "status").stdout
