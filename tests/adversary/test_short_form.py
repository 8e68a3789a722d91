"""A few cases of each class of attacks."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.adversary import as_of, corruptions, files, fuzz, kills, nights, pills, tenants
from tests.adversary.damage import damaged

pytestmark = pytest.mark.slow


def test_hostile_files_stop_nothing_and_each_is_accounted_for(tmp_path: Path) -> None:
    assert files.attack(Random(1), tmp_path, count=len(files.FILES)) == len(files.FILES)


def test_the_past_is_that_of_a_world_that_ended_then(tmp_path: Path) -> None:
    assert as_of.attack(Random(1), tmp_path, count=2)


def test_one_tenant_sees_nothing_of_another_and_of_what_it_changed(tmp_path: Path) -> None:
    assert tenants.attack(Random(1), tmp_path, count=24) > 24


@pytest.mark.parametrize(
    ("one", "other"),
    [({"a": [1.0]}, {"a": [1.01]}), ({"a": 1}, {}), ([1], [1, 2]), ("a", "b"), (None, 0.0), ({"a": "x"}, {"a": ["x"]})],
)
def test_worlds_that_differ_are_found(one: object, other: object) -> None:
    assert not tenants.alike(one, other)
    assert tenants.alike(one, one)


def test_a_thousand_hostile_rows_and_half_as_many_accesses_stop_no_night(tmp_path: Path) -> None:
    assert pills.together(Random(1), tmp_path) == 1500


def test_a_hostile_row_or_access_alone_stops_no_night(tmp_path: Path) -> None:
    assert pills.alone(Random(1), tmp_path, count=2) == 4


def test_damage_to_a_file_is_noticed_mended_or_has_no_effect(tmp_path: Path) -> None:
    kinds = ("snapshot", "ledger data", "inbox", "vectors")
    assert corruptions.attack(Random(1), tmp_path, count=len(kinds), kinds=kinds) == len(kinds)


@pytest.mark.parametrize(
    ("content", "kind", "size"),
    [(b"abc", "flip", 3), (b"abc", "cut", None), (b"abc", "empty", 0), (b"abc", "zeros", 3), (b"abc", "append", None)],
)
def test_damage_changes_a_file(tmp_path: Path, content: bytes, kind: str, size: int | None) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    assert damaged(path, kind, Random(1))
    assert path.read_bytes() != content
    assert size in (None, path.stat().st_size)


def test_what_was_killed_and_run_again_leaves_the_state_of_a_calm_one(tmp_path: Path) -> None:
    """Nights that are killed are in the long form, and in `tests/pipeline/test_crash.py` at each of their steps."""
    assert kills.attack(Random(1), tmp_path, count=4, commands=("import", "undo", "rollback", kills.SERVER)) == 4


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds the processes of a tree as Linux lists them")
@pytest.mark.parametrize(("way", "count"), [("maintain", 2), ("ui", 1)])
def test_whatever_was_killed_the_next_scheduled_night_publishes_in_time(tmp_path: Path, way: str, count: int) -> None:
    killed = nights.killed_nights(Random(1), tmp_path, count, way)
    assert killed.kills >= count
    assert max(killed.seconds) < nights.LIMIT_SECONDS


def test_any_bytes_as_a_file_are_read_to_the_end(tmp_path: Path) -> None:
    pytest.importorskip("atheris", reason="the extra `fuzz` is not installed")
    assert fuzz.attack(Random(1), tmp_path, limit="-runs=300") >= 300
