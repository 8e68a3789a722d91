"""The ledger accepts a batch once, remembers every version, and is written by one process at a time."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memstate_core.model.errors import FrameMismatch, StoreLocked
from memstate_core.model.ledger_tables import QUARANTINE, TRANSITIONS
from memstate_core.state.ledger.compaction import COMPACT_FILES
from memstate_core.state.ledger.ledger import TABLES, Ledger
from memstate_core.state.lock import exclusive, left_by_the_dead
from tests.core.frames import filled
from tests.core.strategies import day, edge, evidence_frame, field, observation

HOLD = """
import sys
from pathlib import Path
from memstate_core.state.lock import exclusive

with exclusive(Path(sys.argv[1]), sys.argv[2]):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger", lock_wait_seconds=0)


def batch(*numbers: int) -> pl.DataFrame:
    return evidence_frame([observation(number, topic_key="acme") for number in numbers])


def ids(rows: pl.LazyFrame) -> list[str]:
    return rows.collect()["evidence_id"].sort().to_list()


# Rows and versions


@pytest.mark.parametrize("table", TABLES)
def test_a_table_that_was_never_written_is_empty(ledger: Ledger, table: str) -> None:
    assert ledger.version(table) is None
    assert ledger.count(table) == 0
    assert ledger.last_transaction(table, "import") is None
    assert ledger.scan(table).collect().schema == TABLES[table]


def numbered(seq: int) -> pl.DataFrame:
    """A transition of which only the number matters."""
    return filled(pl.DataFrame({"seq": [seq]}), TRANSITIONS)


def test_reading_writes_nothing(ledger: Ledger) -> None:
    ledger.count("evidence")
    assert not ledger.root.exists()


@pytest.mark.parametrize(("table", "schema"), TABLES.items())
def test_rows_with_exactly_the_columns_of_the_table_are_written_and_no_others(
    ledger: Ledger, table: str, schema: Any
) -> None:
    row = filled(pl.DataFrame({"run_id": ["r"]}), schema)
    for refused in (row.drop("run_id"), row.with_columns(colour=pl.lit("red"))):
        with pytest.raises(FrameMismatch):
            ledger.append(table, refused, "a")
    ledger.append(table, row, "a")
    assert ledger.scan(table).collect().equals(row)
    assert ledger.scan(table).collect().schema == schema


def test_evidence_reads_back_as_it_was_written(ledger: Ledger) -> None:
    said = [
        observation(
            1,
            title="nul \x00, é, 🙂",
            fields=[field("owner", '"a\\u0000b"', valid_from=day(-900), ref_given=True), field("stage", "null")],
            edges=[edge("part_of", to_topic_key="acme", valid_until=day(1))],
        ),
        observation(2, topic_id="bare"),
    ]
    ledger.append("evidence", evidence_frame(said), "a")
    assert ledger.scan("evidence").sort("evidence_id").collect().equals(evidence_frame(said))


def test_an_older_version_reads_as_it_was(ledger: Ledger) -> None:
    versions = []
    for number in (1, 2, 3):
        ledger.append("evidence", batch(number), f"import/{number}")
        versions.append(ledger.version("evidence"))
    assert [ids(ledger.scan("evidence", version)) for version in versions] == [
        ["e01"],
        ["e01", "e02"],
        ["e01", "e02", "e03"],
    ]
    assert ids(ledger.scan("evidence")) == ["e01", "e02", "e03"]


def test_what_is_kept_of_a_version_is_read_once(ledger: Ledger) -> None:
    read: list[int] = []

    def kept(version: int | None, name: str = "ids") -> list[str]:
        def rows() -> pl.DataFrame:
            assert version is not None
            read.append(version)
            return ledger.scan("evidence", version).select("evidence_id").collect()

        assert version is not None
        return ids(ledger.kept("evidence", version, name, rows).lazy())

    for number in (1, 2):
        ledger.append("evidence", batch(number), f"import/{number}")
    second = ledger.version("evidence")
    assert second is not None
    assert [kept(second), kept(second)] == [["e01", "e02"]] * 2
    assert read == [second]
    assert kept(second - 1) == ["e01"]
    assert kept(second, "other") == ["e01", "e02"]
    assert read == [second, second - 1, second]


def test_what_is_kept_is_read_again_if_the_commit_is_another(ledger: Ledger) -> None:
    ledger.append("evidence", batch(1), "import/1")
    other = Ledger(ledger.root.with_name("other"))
    other.append("evidence", batch(2), "import/1")

    def kept() -> list[str]:
        rows = ledger.kept("evidence", 0, "ids", lambda: ledger.scan("evidence", 0).collect())
        return rows["evidence_id"].to_list()

    assert kept() == ["e01"]
    shutil.rmtree(ledger.root / "evidence")
    shutil.copytree(other.root / "evidence", ledger.root / "evidence")
    assert kept() == ["e02"]


# A batch is accepted once


def test_a_batch_that_the_table_knows_is_not_written_again(ledger: Ledger) -> None:
    assert ledger.append("evidence", batch(1, 2), "import/a") is True
    version = ledger.version("evidence")
    assert ledger.append("evidence", batch(1, 2), "import/a") is False
    assert Ledger(ledger.root).append("evidence", batch(1, 2), "import/a") is False
    assert ledger.version("evidence") == version
    assert ledger.count("evidence") == 2


def test_another_id_is_another_batch_even_with_equal_rows(ledger: Ledger) -> None:
    assert ledger.append("evidence", batch(1), "import/a")
    assert ledger.append("evidence", batch(1), "import/b")
    assert ledger.count("evidence") == 2


def test_of_one_id_only_a_higher_version_is_written(ledger: Ledger) -> None:
    written = [ledger.append("transitions", numbered(n), "publish/s0", n) for n in (1, 3, 2, 3, 4)]
    assert written == [True, True, False, False, True]
    assert ledger.last_transaction("transitions", "publish/s0") == 4
    assert ledger.scan("transitions").collect()["seq"].sort().to_list() == [1, 3, 4]


def test_an_id_is_known_to_the_table_that_took_it_and_to_no_other(ledger: Ledger) -> None:
    assert ledger.append("evidence", batch(1), "import/a")
    assert ledger.append("quarantine", filled(pl.DataFrame({"quarantine_id": ["q"]}), QUARANTINE), "import/a")


@pytest.mark.slow
def test_many_small_batches_are_compacted_and_nothing_is_forgotten(ledger: Ledger) -> None:
    """Compaction rewrites files; rows, transaction ids and older versions stay."""
    written = COMPACT_FILES + 6
    for number in range(written):
        ledger.append("transitions", numbered(number), f"batch/{number}")
        if number == 2:
            early = ledger.version("transitions")
    assert ledger.scan("transitions").collect()["seq"].sort().to_list() == list(range(written))
    assert ledger.scan("transitions", early).collect()["seq"].sort().to_list() == [0, 1, 2]
    assert not any(ledger.append("transitions", numbered(n), f"batch/{n}") for n in (0, 63, written - 1))
    newest = set(pl.scan_delta(str(ledger.root / "transitions")).select(pl.col("seq")).collect()["seq"])
    assert newest == set(range(written))


# One writer at a time


def test_the_error_of_a_second_holder_names_the_first(tmp_path: Path) -> None:
    words = "memstate maintain (process 42, since noon)"
    with holder(tmp_path / "run.lock", words):
        error = refusal(tmp_path / "run.lock")
    assert error.facts == {"home": str(tmp_path), "holder": words}
    assert words in str(error)
    assert error.exit_code == 3


def test_killing_the_holder_frees_the_lock(tmp_path: Path) -> None:
    assert left_by_the_dead(tmp_path / "run.lock") is None
    with holder(tmp_path / "run.lock", "the first") as process:
        assert left_by_the_dead(tmp_path / "run.lock") is None
        process.kill()
        process.wait()
        assert left_by_the_dead(tmp_path / "run.lock") == "the first"
        with exclusive(tmp_path / "run.lock", "the second"):
            assert refusal(tmp_path / "run.lock").facts["holder"] == "the second"
        assert left_by_the_dead(tmp_path / "run.lock") is None


def test_a_holder_that_ends_leaves_no_note(tmp_path: Path) -> None:
    with exclusive(tmp_path / "run.lock", "me"):
        assert (tmp_path / "run.holder.json").exists()
    assert not (tmp_path / "run.holder.json").exists()


def test_an_error_inside_frees_the_lock(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), exclusive(tmp_path / "run.lock", "me"):
        1 / 0  # noqa: B018
    with exclusive(tmp_path / "run.lock", "me again"):
        pass


def test_a_refused_asker_does_not_disturb_the_holder(tmp_path: Path) -> None:
    with holder(tmp_path / "run.lock", "the first"):
        for _ in range(2):
            assert refusal(tmp_path / "run.lock").facts["holder"] == "the first"


def test_a_holder_without_a_name_is_still_a_holder(tmp_path: Path) -> None:
    with holder(tmp_path / "run.lock", "the first"):
        (tmp_path / "run.holder.json").write_text("{")
        assert refusal(tmp_path / "run.lock").facts["holder"] == "a process that has not yet written its name"


def test_who_may_wait_gets_the_lock_when_it_is_free(tmp_path: Path) -> None:
    with holder(tmp_path / "run.lock", "the first") as process:
        ending = threading.Timer(0.3, process.kill)
        ending.start()
        began = time.monotonic()
        with exclusive(tmp_path / "run.lock", "me", wait_seconds=30):
            assert 0.2 < time.monotonic() - began < 20
        ending.join()


def test_the_ledger_is_written_by_one_process_at_a_time(ledger: Ledger) -> None:
    with holder(ledger.root / "ledger.lock", "memstate import"):
        with pytest.raises(StoreLocked, match="memstate import"), ledger.writing("memstate maintain"):
            pass
        assert ledger.count("evidence") == 0
    with ledger.writing("memstate maintain"):
        assert ledger.append("evidence", batch(1), "import/a")


def refusal(lock: Path) -> StoreLocked:
    """The error of a second process that asks for the lock."""
    with pytest.raises(StoreLocked) as refused, exclusive(lock, "somebody"):
        pass
    return refused.value


@contextmanager
def holder(lock: Path, words: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds a lock until the block ends."""
    command = [sys.executable, "-c", HOLD, str(lock), words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()
