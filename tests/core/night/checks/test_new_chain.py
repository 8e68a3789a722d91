"""A chain that alone was lost or cut is begun anew from a proven ledger, and never in silence."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memstate_core.model.errors import ChainNotBegun, LedgerDamaged
from memstate_core.night.backup.back_up import back_up
from memstate_core.night.backup.verify import verify_backups
from memstate_core.night.new_chain import begin_chain_anew
from memstate_core.night.rebuild import rebuild
from memstate_core.night.verify import verify_store
from memstate_core.run.base_check import require_chain
from memstate_core.run.store import open_store
from memstate_core.state.ledger.chain import CHAIN
from memstate_pipeline.doctor import data
from tests.core.night.checks.damage import Home
from tests.core.night.checks.test_run_refuses_damage import begin
from tests.core.strategies import day

pytestmark = pytest.mark.slow

AT = day(130)
WHY = "the disk lost a sector"


def again(home: Home) -> str:
    return begin_chain_anew(home.store, AT, "aya", WHY).text


def chain(home: Home) -> Path:
    return home.store.ledger.root / CHAIN


def passed(home: Home) -> bool:
    return all(verdict.passed for found in verify_store(home.store).values() for verdict in found)


def lines(path: Path, keep: slice) -> None:
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[keep]))


LOSSES: dict[str, Callable[[Path], object]] = {
    "removed": Path.unlink,
    "emptied": lambda path: path.write_bytes(b""),
    "cut in half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "without its first line": lambda path: lines(path, slice(1, None)),
    "garbage": lambda path: path.write_bytes(b"garbage\n" * 3),
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_lost_chain_is_begun_anew_and_its_record_stays(home: Home, name: str, tmp_path: Path) -> None:
    before = chain(home).read_bytes()
    LOSSES[name](chain(home))
    lost = chain(home).read_bytes() if chain(home).exists() else None
    with pytest.raises(LedgerDamaged, match="--new-chain"):
        begin(home)
    with pytest.raises(LedgerDamaged, match="--new-chain"):
        require_chain(home.store)  # of compactions and erasures
    assert (chain(home).read_bytes() if chain(home).exists() else None) == lost
    text = again(home)
    assert f"by aya: {WHY}" in text
    assert again(home) == text  # as after a kill before the rebuild
    kept = [path.read_bytes() for path in home.store.ledger.root.glob("replaced-chain-*")]
    assert kept == ([] if lost is None else [lost])
    assert passed(home)
    rebuild(home.store, "s0", "rebuilt")
    with pytest.raises(ChainNotBegun, match="it is whole"):
        again(home)
    begin(home)

    assert passed(home)
    (served, *_) = verify_store(home.store).values()
    assert [each.detail for each in served if each.name == "ledger chain"] == [text]
    assert text in data.ledger(home.store).detail
    assert chain(home).read_bytes() != before
    if name == "removed":
        _backups_and_rewrites_keep_the_record(home, tmp_path, text)


def _backups_and_rewrites_keep_the_record(home: Home, tmp_path: Path, text: str) -> None:
    back_up(home.store, tmp_path / "backups", datetime.now(UTC))
    (found,) = verify_backups(tmp_path / "backups", deep=False).values()
    assert [each.detail for each in found if each.name == "ledger chain"] == [text]
    with home.store.ledger.writing("a test"):
        home.store.ledger.rewrite({})
    again = open_store(home.store.home.root, {}).ledger.chain
    assert [beginning.text for beginning in again.begun] == [text]
    assert again.damage() == []
    with chain(home).open("ab") as file:
        file.write(b"garbage\n")
    begin_chain_anew(home.store, AT, "ben", "and again")
    assert [beginning.by for beginning in home.store.ledger.chain.begun] == ["aya", "ben"]


def test_nothing_else_that_was_changed_gets_a_chain(home: Home) -> None:
    """Data, a commit, rows with digests that fit, and lines that are left and name other bytes."""
    chain(home).unlink()
    root = home.store.ledger.root
    data_file = max((root / "evidence").glob("*.parquet"), key=lambda path: path.stat().st_size)
    commit = max((root / "quarantine" / "_delta_log").glob("*.json"))
    for file, content in ((data_file, b"garbage"), (commit, b"")):
        sound = file.read_bytes()
        file.write_bytes(content)
        with pytest.raises(ChainNotBegun):
            again(home)
        file.write_bytes(sound)
    assert not chain(home).exists()
    gone = home.store.ledger.scan("evidence").collect()["evidence_id"].sort()[0]
    home.ledger("evidence", lambda rows: rows.filter(rows["evidence_id"] != gone))
    with pytest.raises(ChainNotBegun, match="s0/5"):
        again(home)
    assert not chain(home).exists()


def test_lines_that_are_left_are_compared(home: Home) -> None:
    lines(chain(home), slice(0, -3))
    first = chain(home).read_bytes().splitlines()[0]
    named = json.loads(first)
    name = next(name for name in named["files"] if name.endswith(".json"))
    file = home.store.ledger.root / named["table"] / name
    file.write_bytes(file.read_bytes().replace(b'"timestamp":1', b'"timestamp":2'))
    with pytest.raises(ChainNotBegun, match="has SHA-256"):
        again(home)
    assert chain(home).read_bytes().splitlines()[0] == first


def test_a_chain_that_an_import_began_is_no_way_around(home: Home, caplog: pytest.LogCaptureFixture) -> None:
    chain(home).unlink()
    with home.store.ledger.writing("an import"):
        pass
    assert "has no chain" in caplog.text
    with pytest.raises(LedgerDamaged, match="--new-chain"):
        begin(home)
    assert WHY in again(home)


def test_a_whole_chain_is_not_begun_anew(home: Home) -> None:
    with pytest.raises(ChainNotBegun, match="it is whole"):
        again(home)
    assert home.store.ledger.chain.begun == []
