"""Objects are named after their bytes, complete, and only removed when nothing lists them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from memstate_core.night.backup.objects import Objects


def test_a_file_becomes_an_object_of_its_owner_alone(tmp_path: Path) -> None:
    objects = Objects(tmp_path / "objects")
    (tmp_path / "a").write_bytes(b"one")
    digest, size = objects.add(tmp_path / "a")
    assert (digest, size) == (hashlib.sha256(b"one").hexdigest(), 3)
    assert objects.path(digest).read_bytes() == b"one"
    assert objects.path(digest).stat().st_mode & 0o777 == 0o600
    assert objects.path(digest).parent.stat().st_mode & 0o777 == 0o700
    assert objects.has(digest, 3)
    assert not objects.has(digest, 4)
    assert objects.problem(digest) is None


def test_other_bytes_than_expected_leave_nothing(tmp_path: Path) -> None:
    objects = Objects(tmp_path / "objects")
    (tmp_path / "a").write_bytes(b"one")
    digest, _ = objects.add(tmp_path / "a", "0" * 64)
    assert not objects.has(digest, 3)
    assert list((tmp_path / "objects").iterdir()) == []


def test_a_missing_and_a_changed_object_are_named(tmp_path: Path) -> None:
    objects = Objects(tmp_path / "objects")
    (tmp_path / "a").write_bytes(b"one")
    digest, _ = objects.add(tmp_path / "a")
    objects.path(digest).write_bytes(b"two")
    assert f"objects/{digest[:2]}/{digest[2:]} has SHA-256" in str(objects.problem(digest))
    objects.path(digest).unlink()
    assert objects.problem(digest) == f"objects/{digest[:2]}/{digest[2:]} is missing"


@pytest.mark.parametrize("name", ["ab/notes.txt", "notes.txt"])
def test_only_objects_without_a_list_are_removed(tmp_path: Path, name: str) -> None:
    objects = Objects(tmp_path / "objects")
    for content in (b"one", b"two"):
        (tmp_path / "a").write_bytes(content)
        objects.add(tmp_path / "a")
    foreign = tmp_path / "objects" / name
    foreign.parent.mkdir(exist_ok=True)
    foreign.touch()
    kept = hashlib.sha256(b"one").hexdigest()
    assert objects.keep_only({kept}) == 1
    assert objects.has(kept, 3)
    assert foreign.exists()
