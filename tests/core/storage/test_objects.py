"""Objects are named after their bytes, complete, and only removed when nothing lists them: in folders and buckets."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from obstore.store import MemoryStore

from memstate_core.model.errors import BackupUnreachable
from memstate_core.state.files import file_digest
from memstate_core.storage import cloud
from memstate_core.storage.cloud import CloudStorage
from memstate_core.storage.folder import FolderStorage
from memstate_core.storage.objects import Objects
from memstate_core.storage.storage import Storage, object_name

ONE = hashlib.sha256(b"one").hexdigest()


@pytest.fixture(params=["folder", "cloud"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    made: Storage = CloudStorage("memory://", MemoryStore())
    if request.param == "folder":
        (tmp_path / "backups").mkdir()
        made = FolderStorage(tmp_path)
    return made


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source"
    path.write_bytes(b"one")
    return path


def test_a_file_becomes_an_object(storage: Storage, source: Path) -> None:
    objects = Objects(storage)
    assert not objects.has(ONE, 3)
    assert objects.add(source) == (ONE, 3)
    for found in (objects, Objects(storage)):
        assert found.has(ONE, 3)
        assert not found.has(ONE, 4)
        assert found.problem(ONE) is None
    assert objects.fetch(ONE, source.with_name("copy")) is None
    assert source.with_name("copy").read_bytes() == b"one"


def test_a_file_in_a_folder_is_of_its_owner_alone(tmp_path: Path, source: Path) -> None:
    Objects(FolderStorage(tmp_path)).add(source)
    path = tmp_path / object_name(ONE)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_other_bytes_than_expected_leave_nothing(storage: Storage, source: Path) -> None:
    assert Objects(storage).add(source, "0" * 64) == (ONE, 3)
    assert storage.sizes("objects") == {}


def test_bytes_that_change_while_they_are_sent_leave_nothing(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large file is read twice: for its digest, and in parts as it is sent."""
    storage = CloudStorage("memory://", MemoryStore())
    monkeypatch.setattr(cloud, "_ONE_REQUEST", 2)
    real = cloud.blocks_of

    def changed(path: Path) -> Any:
        path.write_bytes(b"two")
        return real(path)

    monkeypatch.setattr(cloud, "blocks_of", changed)
    with pytest.raises(BackupUnreachable, match="changed while it was sent"):
        Objects(storage).add(source)
    assert storage.sizes("objects") == {}


@pytest.mark.parametrize("size", [0, 4 << 20, (4 << 20) + 1])
def test_files_of_one_request_and_of_parts_are_what_was_read(storage: Storage, tmp_path: Path, size: int) -> None:
    file, target = tmp_path / "source", tmp_path / "target"
    file.write_bytes(bytes(range(256)) * (size // 256) + b"x" * (size % 256))
    digest, sent = Objects(storage).add(file)
    assert (digest, sent) == (file_digest(file), size)
    assert Objects(storage).fetch(digest, target) is None
    assert target.read_bytes() == file.read_bytes()


def test_a_missing_and_a_changed_object_are_named(storage: Storage, source: Path) -> None:
    objects = Objects(storage)
    objects.add(source)
    storage.write(object_name(ONE), b"two")
    assert f"{object_name(ONE)} has SHA-256" in str(objects.problem(ONE))
    assert f"expected {ONE}" in str(objects.fetch(ONE, source))
    storage.remove([object_name(ONE)])
    assert objects.problem(ONE) == objects.fetch(ONE, source) == f"{object_name(ONE)} is missing"


@pytest.mark.parametrize("name", ["objects/ab/notes.txt", "objects/notes.txt"])
def test_only_objects_without_a_list_are_removed(storage: Storage, source: Path, name: str) -> None:
    objects = Objects(storage)
    for content in (b"one", b"two"):
        source.write_bytes(content)
        objects.add(source)
    (source.parent / "objects" / "ab").mkdir(parents=True, exist_ok=True)
    storage.write(name, b"")
    assert objects.keep_only({ONE}) == 1
    assert objects.has(ONE, 3)
    assert name in storage.sizes("objects")
