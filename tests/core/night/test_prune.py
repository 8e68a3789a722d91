"""Old snapshots go by number, by age and by total size; the served one never."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from memstate_core.run.store import Store, open_store
from memstate_core.state.current import current_number
from memstate_core.state.snapshots import numbers
from tests.core.revise.nights import night_without_duplicates, record

pytestmark = pytest.mark.slow


def nights(home: Path, settings: str, *days: int) -> Store:
    """A store after a night on each of these days, with a new observation each."""
    (home / "memstate.toml").write_text(f"[store]\n{settings}\n")
    store = open_store(home, {})
    for at in days:
        record(store, {f"note-{at}": {"title": f"Note {at}"}}, at)
        night_without_duplicates(store, at)
    return store


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home after three nights, whose snapshots are all kept."""
    store = nights(tmp_path_factory.mktemp("three"), "keep_snapshot_mib = 100000", 2, 3, 25)
    assert numbers(store.home, "s0") == [1, 2, 3]
    return store.home.root


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        ("keep_snapshots = 3", [2, 3, 4]),
        ("keep_snapshot_days = 10", [3, 4]),
        ("keep_snapshots = 3\nkeep_snapshot_days = 23.5", [2, 3, 4]),
        ("keep_snapshots = 4\nkeep_snapshot_days = 23.5", [2, 3, 4]),
        ("keep_snapshot_mib = 1", [4]),
        ("keep_snapshot_mib = 100000", [1, 2, 3, 4]),
    ],
)
def test_only_what_all_limits_allow_is_kept(three: Path, tmp_path: Path, settings: str, kept: list[int]) -> None:
    store = nights(Path(shutil.copytree(three, tmp_path / "home")), settings, 26)
    assert (numbers(store.home, "s0"), current_number(store.home, "s0")) == (kept, 4)


def test_a_snapshot_whose_manifest_cannot_be_read_has_no_age(three: Path, tmp_path: Path) -> None:
    home = Path(shutil.copytree(three, tmp_path / "home"))
    (home / "snapshots" / "s0" / "1" / "manifest.json").write_text("damaged")
    store = nights(home, "keep_snapshot_days = 10", 26)
    assert numbers(store.home, "s0") == [1, 3, 4]
