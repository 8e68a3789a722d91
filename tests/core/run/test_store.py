"""A store opens if its path can be addressed; otherwise it is refused before anything is written."""

from __future__ import annotations

import string
from pathlib import Path

import polars as pl
import pytest

from memstate_core.model.errors import HomeUnsupported
from memstate_core.model.ledger_tables import ACCESSES
from memstate_core.run.store import open_store

UNSUPPORTED = "?[]|^\\"
NAMES = [
    *(f"a{letter}b" for letter in string.printable if letter.isprintable() and letter not in UNSUPPORTED + "/"),
    " leading", "trailing ", "müßig", "日本語", "עברית", "100%", "%zz", "..hidden", "-option", "x" * 200,
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_ledger_is_written_and_read_under_any_supported_name(tmp_path: Path, name: str) -> None:
    ledger = open_store(tmp_path / name).ledger
    row = pl.DataFrame({column: [None] for column in ACCESSES}, schema=ACCESSES)
    with ledger.writing("a test"):
        ledger.append("accesses", row.with_columns(access_id=pl.lit("first")), "one")
        before = ledger.version("accesses")
        ledger.append("accesses", row.with_columns(access_id=pl.lit("second")), "two")
    assert sorted(ledger.scan("accesses").collect()["access_id"]) == ["first", "second"]
    assert ledger.scan("accesses", before).collect()["access_id"].to_list() == ["first"]
    assert ledger.since("accesses", before).collect()["access_id"].to_list() == ["second"]
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", [*(f"a{letter}b" for letter in UNSUPPORTED), "a%20b", "a\tb", "a\x7fb", "a\udcffb"])
def test_a_path_that_cannot_be_addressed_is_refused_before_anything_is_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(HomeUnsupported, match="Choose another folder"):
        open_store(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_the_target_of_a_symbolic_link_counts(tmp_path: Path) -> None:
    (tmp_path / "a[b]").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a[b]")
    with pytest.raises(HomeUnsupported):
        open_store(tmp_path / "link")
