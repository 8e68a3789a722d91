"""Damage to the bytes of a store, one file at a time: `verify` names it, by the check that covers it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memstate_core.night.verify import Verdict, verify_store
from memstate_core.state.snapshots import MANIFEST
from tests.core.night.checks.damage import Home

pytestmark = pytest.mark.slow

SERVED = (
    "graph.kuzu", "topic_vectors.npy", "evidence_vectors.npy", "windows.npy", "window_lengths.npy", "topics.parquet",
    "evidence.parquet", "aliases.parquet", "compressed.parquet", "scopes.parquet", "facts/fields.parquet",
    "facts/revisions.parquet", "facts/edges.parquet", "facts/reviews.parquet", "facts/places.parquet",
    "facts/superseded.parquet", "notes.parquet", "problems.parquet",
)  # fmt: skip
Change = Callable[[Path], Any]


def flipped(path: Path) -> None:
    """One bit in the middle of the file is another one."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def halved(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def emptied(path: Path) -> None:
    os.truncate(path, 0)


def copied(path: Path) -> None:
    """A foreign file beside it."""
    shutil.copyfile(path, path.with_name("copy-of-" + path.name))


CHANGES: dict[str, Change] = {
    "flipped": flipped, "halved": halved, "emptied": emptied, "removed": Path.unlink, "copied": copied
}  # fmt: skip
FIELDS: dict[str, Any] = {
    "number": 4, "now": "2026-05-01T00:00:01Z", "run_id": "another", "embedding_model": "another",
    "policy_hash": "0" * 64, "evidence_version": 0, "accesses_version": None, "graph_fresh_bytes": 1,
    "state_hash": "0" * 64, "counts": {"active": 1}, "policy": {},
}  # fmt: skip


def failed(home: Home) -> dict[str, str]:
    """The failed checks of `verify`, with their details."""
    return {
        verdict.name: verdict.detail
        for verdicts in verify_store(home.store).values()
        for verdict in verdicts
        if not verdict.passed
    }


def failures(verdicts: list[Verdict]) -> list[str]:
    return [verdict.name for verdict in verdicts if not verdict.passed]


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_served_file_that_changed_is_named(home: Home, change: Change) -> None:
    """Each file in turn; the original is restored before the next."""
    for name in SERVED:
        path = home.served / name
        sound = path.read_bytes()
        change(path)
        found = failed(home)
        assert list(found) == ["file digests"], name
        assert path.name in found["file digests"]
        path.with_name("copy-of-" + path.name).unlink(missing_ok=True)
        path.write_bytes(sound)
    assert failed(home) == {}


def test_every_served_file_is_damaged_here(home: Home) -> None:
    served = {file.relative_to(home.served).as_posix() for file in home.served.rglob("*") if file.is_file()}
    assert {name for name in served if not name.startswith("lexical/")} - {MANIFEST} == set(SERVED)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_file_of_the_lexical_index_that_changed_is_named(home: Home, change: Change) -> None:
    file = min(file for file in (home.served / "lexical").rglob("*") if file.is_file() and file.stat().st_size)
    change(file)
    assert list(failed(home)) == ["file digests"]


@pytest.mark.parametrize("name", FIELDS)
def test_a_manifest_that_is_not_the_recorded_one_is_named(home: Home, name: str) -> None:
    path = home.served / MANIFEST
    path.write_text(json.dumps({**json.loads(path.read_text()), name: FIELDS[name]}))
    found = failed(home)
    assert {"manifest", "served snapshot"} & found.keys()
    assert not [name for name in found if name.startswith("C")]


@pytest.mark.parametrize("change", [halved, emptied, Path.unlink], ids=["halved", "emptied", "removed"])
def test_a_manifest_that_cannot_be_read_is_named(home: Home, change: Change) -> None:
    change(home.served / MANIFEST)
    assert MANIFEST in failed(home)["served snapshot"]


@pytest.mark.parametrize("text", ["", "\n", "garbage", "-1", "5.0", "\u0665", "\x00\x00", "99"])
def test_current_that_names_no_snapshot_is_named(home: Home, text: str) -> None:
    (home.served.parent / "CURRENT").write_text(text)
    assert list(failed(home)) == ["served snapshot"]


def test_current_that_is_missing_beside_snapshots_is_named(home: Home) -> None:
    (home.served.parent / "CURRENT").unlink()
    assert list(failed(home)) == ["served snapshot"]


def test_current_that_names_an_older_snapshot_is_named(home: Home) -> None:
    (home.served.parent / "CURRENT").write_text("4\n")
    assert "s0/5 as published" in failed(home)["L3 rebuild"]


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_file_of_a_kept_snapshot_that_changed_is_named_where_all_are_verified(home: Home, change: Change) -> None:
    """As-of queries read the older snapshots."""
    change(home.served.parent / "4" / "compressed.parquet")
    assert failed(home) == {}
    found = verify_store(home.store, deep=True)
    assert all(verdict.passed for verdict in found.pop("s0/5"))
    assert {name: failures(verdicts) for name, verdicts in found.items()} == {"s0/4": ["file digests"]}


@pytest.mark.parametrize(("text", "expected"), [("", "kept snapshot"), ('"now": "2026-05-01T00:00:01Z"', "manifest")])
def test_a_manifest_of_a_kept_snapshot_that_changed_is_named(home: Home, text: str, expected: str) -> None:
    path = home.served.parent / "4" / MANIFEST
    path.write_text(text and json.dumps({**json.loads(path.read_text()), **json.loads(f"{{{text}}}")}))
    assert failures(verify_store(home.store, deep=True)["s0/4"]) == [expected]


TABLES = ("evidence", "transitions", "accesses", "quarantine")


def log_of(home: Home, table: str) -> list[Path]:
    return sorted((home.store.ledger.root / table / "_delta_log").glob("*.json"))


def data_of(home: Home, table: str) -> Path:
    """The largest file of data of a table."""
    return max((home.store.ledger.root / table).glob("*.parquet"), key=lambda file: (file.stat().st_size, file.name))


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize(
    "change", [flipped, halved, emptied, Path.unlink], ids=["flipped", "halved", "emptied", "removed"]
)
def test_data_of_the_ledger_that_is_damaged_is_named(home: Home, table: str, change: Change) -> None:
    change(data_of(home, table))
    found = failed(home)
    # A byte of the transitions may be one of the manifest on record.
    assert "ledger" in found
    assert found.keys() <= ({"ledger", "manifest"} if table == "transitions" else {"ledger"})
    assert found["ledger"].startswith(f"{table}: ")


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("commit", [0, -1], ids=["first", "last"])
@pytest.mark.parametrize(
    "change", [flipped, halved, emptied, Path.unlink], ids=["flipped", "halved", "emptied", "removed"]
)
def test_a_commit_of_the_ledger_that_is_damaged_is_named(home: Home, table: str, commit: int, change: Change) -> None:
    change(log_of(home, table)[commit])
    found = failed(home)
    assert found
    assert not [name for name in found if name.startswith("C")]
    named = found.get("ledger", "") + found.get("manifest", "")
    assert f"{table}: " in named or (table == "transitions" and "records no snapshot" in named)


@pytest.mark.parametrize("table", TABLES)
def test_a_log_that_is_gone_is_named(home: Home, table: str) -> None:
    shutil.rmtree(home.store.ledger.root / table / "_delta_log")
    assert f"{table}: " in failed(home)["ledger"]


@pytest.mark.parametrize("table", TABLES)
def test_a_table_that_is_gone_is_named(home: Home, table: str) -> None:
    shutil.rmtree(home.store.ledger.root / table)
    assert f"{table}: " in failed(home)["ledger"]
