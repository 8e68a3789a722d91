"""The chain of the ledger: what was acknowledged is on disk, and neither a lost commit nor a changed byte goes unseen.

Before the chain, a ledger whose last commit was emptied opened without complaint, nothing of an import was flushed, and
a third of single-bit flips in evidence changed values in silence.
"""

from __future__ import annotations

import json
import os
import random
from hashlib import sha256
from pathlib import Path

import polars as pl
import pytest

from memstate_core.model.errors import LedgerDamaged
from memstate_core.state.ledger.chain import CHAIN
from memstate_core.state.ledger.commits import added_data, commit_name
from memstate_core.state.ledger.compaction import COMPACT_FILES
from memstate_core.state.ledger.ledger import Ledger
from tests.core.strategies import evidence_frame, observation

pytestmark = pytest.mark.slow


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """A ledger with three commits of evidence."""
    made = Ledger(tmp_path / "ledger")
    for number in (1, 2, 3):
        append(made, number)
    return made


def append(ledger: Ledger, number: int) -> None:
    rows = evidence_frame([observation(number, topic_key="acme", text=f"The boat number {number} is at the pier.")])
    with ledger.writing("a test"):
        assert ledger.append("evidence", rows, f"import/{number}")


def commit(ledger: Ledger, version: int) -> Path:
    return ledger.root / "evidence" / commit_name(version)


def data(ledger: Ledger) -> list[Path]:
    return sorted((ledger.root / "evidence").glob("*.parquet"))


def rows(ledger: Ledger) -> pl.DataFrame:
    return ledger.scan("evidence").sort("evidence_id").collect()


# What is acknowledged is on disk


def test_all_that_an_append_wrote_is_flushed_when_it_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: set[str] = set()
    flush = os.fsync

    def recording(handle: int) -> None:
        flushed.add(str(Path(f"/proc/self/fd/{handle}").readlink()))
        flush(handle)

    monkeypatch.setattr(os, "fsync", recording)
    ledger = Ledger(tmp_path / "home" / "ledger")
    append(ledger, 1)
    table = ledger.root / "evidence"
    written = {path for path in ledger.root.rglob("*") if not path.name.startswith("ledger.lock")}
    assert {str(path) for path in written} <= flushed
    assert {str(folder) for folder in (table, ledger.root, ledger.root.parent, tmp_path)} <= flushed


def test_each_entry_names_every_new_file_and_the_entry_before_it(ledger: Ledger) -> None:
    lines = (ledger.root / CHAIN).read_bytes().splitlines()
    entries = [json.loads(line) for line in lines]
    assert [entry["previous"] for entry in entries] == ["", *(sha256(line).hexdigest() for line in lines[:-1])]
    assert ledger.chain.head == sha256(lines[-1]).hexdigest()
    named = {name: digest for entry in entries for name, digest in entry["files"].items()}
    found = {path for path in (ledger.root / "evidence").rglob("*") if path.is_file()}
    assert named == {
        str(path.relative_to(ledger.root / "evidence")): sha256(path.read_bytes()).hexdigest() for path in found
    }


def test_compacted_files_and_checkpoints_are_recorded(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    for number in range(COMPACT_FILES + 40):
        append(ledger, number)
    assert list((ledger.root / "evidence" / "_delta_log").glob("*.checkpoint.parquet"))
    assert ledger.chain.damage() == []
    for path in (file for file in (ledger.root / "evidence").rglob("*") if file.is_file()):
        sound = path.read_bytes()
        path.write_bytes(sound[:-1] + bytes([sound[-1] ^ 1]))
        assert [path.name in problem for problem in ledger.chain.damage()] == [True]
        path.write_bytes(sound)


# Damage


@pytest.mark.parametrize("damage", [lambda path: path.write_bytes(b""), Path.unlink], ids=["emptied", "removed"])
@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_lost_commit_is_named(ledger: Ledger, damage: object, version: int) -> None:
    assert callable(damage)
    damage(commit(ledger, version))
    (problem,) = ledger.chain.damage()
    assert problem.startswith(f"evidence: {commit_name(version)} ")


@pytest.mark.parametrize("damage", [lambda path: path.write_bytes(b""), Path.unlink], ids=["emptied", "removed"])
def test_nothing_is_written_after_a_lost_last_commit(ledger: Ledger, damage: object) -> None:
    """Delta would write the lost commit's number again."""
    assert callable(damage)
    damage(commit(ledger, 2))
    with pytest.raises(LedgerDamaged, match=commit_name(2)):
        append(ledger, 4)
    assert not commit(ledger, 3).exists()


def test_a_writer_that_cannot_read_a_damaged_file_names_it(ledger: Ledger) -> None:
    """An import ended in an error of Polars that named no file."""
    damaged = data(ledger)[0]
    damaged.write_bytes(b"garbage" * 100)
    with pytest.raises(LedgerDamaged, match=damaged.name), ledger.writing("a test"):
        rows(ledger)


def test_an_error_of_a_writer_over_a_sound_ledger_is_its_own(ledger: Ledger) -> None:
    with pytest.raises(OSError, match="no space"), ledger.writing("a test"):
        raise OSError("no space")


def test_every_single_bit_flip_of_evidence_is_found(tmp_path: Path) -> None:
    """Parquet reads a good part of the flips as other values in silence; none passes the chain."""
    ledger, dice = Ledger(tmp_path / "ledger"), random.Random(5)
    said = [observation(number, topic_key=f"{dice.random()}", text=dice.randbytes(60).hex()) for number in range(200)]
    with ledger.writing("a test"):
        ledger.append("evidence", evidence_frame(said), "import")
    file, sound, expected, silent = data(ledger)[0], data(ledger)[0].read_bytes(), rows(ledger), 0
    for bit in dice.sample(range(8 * len(sound)), 300):
        flipped = bytearray(sound)
        flipped[bit // 8] ^= 1 << bit % 8
        file.write_bytes(flipped)
        (problem,) = ledger.chain.damage()
        assert file.name in problem
        silent += reads_otherwise(ledger, expected)
    assert silent > 50


def reads_otherwise(ledger: Ledger, expected: pl.DataFrame) -> bool:
    """Whether rows are read without an error, and are not those that were written."""
    try:
        return not rows(ledger).equals(expected)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        return False


def test_a_changed_entry_is_named_and_stops_writers(ledger: Ledger) -> None:
    path = ledger.root / CHAIN
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[1].replace(b'"evidence"', b'"accesses"') + lines[2])
    assert any(f"{CHAIN}, line 3" in problem for problem in ledger.chain.damage())
    with pytest.raises(LedgerDamaged, match="does not follow"):
        append(ledger, 4)


def test_a_chain_without_the_entry_of_a_snapshot_is_named(ledger: Ledger) -> None:
    head = ledger.chain.head
    path = ledger.root / CHAIN
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))
    assert head is not None
    assert any(head in problem for problem in ledger.chain.damage(head))


# Killed writers, and ledgers from before the chain


def test_a_ledger_without_a_chain_gets_it_at_the_next_write(ledger: Ledger) -> None:
    (ledger.root / CHAIN).unlink()
    old = Ledger(ledger.root)
    assert (old.chain.head, old.chain.damage()) == (None, [])
    append(old, 4)
    assert rows(old).height == 4
    data(old)[0].write_bytes(b"")
    assert old.chain.damage()


def test_a_ledger_without_a_chain_is_not_recorded_if_data_is_missing(ledger: Ledger) -> None:
    (ledger.root / CHAIN).unlink()
    data(ledger)[0].unlink()
    with pytest.raises(LedgerDamaged, match="is missing"):
        append(Ledger(ledger.root), 4)


def forget_last_entry(ledger: Ledger) -> None:
    """What a kill between the commit and its entry leaves."""
    path = ledger.root / CHAIN
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))


def test_a_whole_commit_without_an_entry_is_recorded_by_the_next_writer(ledger: Ledger) -> None:
    forget_last_entry(ledger)
    append(ledger, 4)
    assert rows(ledger).height == 4
    assert ledger.chain.damage() == []
    commit(ledger, 2).write_bytes(b"")
    assert ledger.chain.damage()


@pytest.mark.parametrize("torn", ["commit", "data"])
def test_a_commit_that_a_power_cut_tore_was_never_acknowledged_and_is_set_aside(ledger: Ledger, torn: str) -> None:
    (last,) = added_data(ledger.root / "evidence", 2)
    forget_last_entry(ledger)
    (commit(ledger, 2) if torn == "commit" else ledger.root / "evidence" / last).write_bytes(b"")
    append(ledger, 4)
    assert rows(ledger)["evidence_id"].to_list() == ["e01", "e02", "e04"]
    assert ledger.chain.damage() == []
    assert list((ledger.root / "evidence").glob("unfinished-*.json"))


def test_an_entry_that_was_cut_short_is_written_again(ledger: Ledger) -> None:
    path = ledger.root / CHAIN
    path.write_bytes(path.read_bytes()[:-20])
    append(ledger, 4)
    assert Ledger(ledger.root).chain.damage() == []
    assert rows(ledger).height == 4
