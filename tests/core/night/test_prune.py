"""Old snapshots go by number, by age and by total size; the served one never."""

from __future__ import annotations

from pathlib import Path

import pytest

from memstate_core.run.store import open_store
from memstate_core.state.current import current_number
from memstate_core.state.snapshots import numbers
from tests.core.revise.nights import night_without_duplicates, record

NIGHTS = (2, 3, 25, 26)


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        ("keep_snapshots = 3", [2, 3, 4]),
        ("keep_snapshot_days = 10", [3, 4]),
        ("keep_snapshots = 3\nkeep_snapshot_days = 23.5", [2, 3, 4]),
        ("keep_snapshot_mib = 1", [4]),
        ("keep_snapshot_mib = 100000", [1, 2, 3, 4]),
    ],
)
def test_only_what_all_limits_allow_is_kept(tmp_path: Path, settings: str, kept: list[int]) -> None:
    (tmp_path / "memstate.toml").write_text(f"[store]\n{settings}\n")
    store = open_store(tmp_path, {})
    for at in NIGHTS:
        record(store, {f"note-{at}": {"title": f"Note {at}"}}, at)
        night_without_duplicates(store, at)
    assert (numbers(store.home, "s0"), current_number(store.home, "s0")) == (kept, 4)


def test_a_snapshot_whose_manifest_cannot_be_read_has_no_age(tmp_path: Path) -> None:
    (tmp_path / "memstate.toml").write_text("[store]\nkeep_snapshot_days = 10\n")
    store = open_store(tmp_path, {})
    for at in NIGHTS[:2]:
        record(store, {f"note-{at}": {"title": f"Note {at}"}}, at)
        night_without_duplicates(store, at)
    (store.home.snapshots("s0") / "1" / "manifest.json").write_text("damaged")
    night_without_duplicates(store, 30)
    assert numbers(store.home, "s0") == [1, 3]
