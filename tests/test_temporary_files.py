"""Tests write into memory only where it has room, and nowhere else than the user says."""

from __future__ import annotations

import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from tests import temporary_files
from tests.conftest import LONGEST_FIRST
from tests.temporary_files import into_memory

GIB = 1 << 30
Usage = namedtuple("Usage", ["total", "used", "free"])


@pytest.fixture(autouse=True)
def _two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(temporary_files.os, "cpu_count", lambda: 2)


@pytest.mark.parametrize(
    ("free", "available", "fits"), [(6, 12, True), (5.9, 64, False), (64, 11.9, False), (0.0625, 64, False)]
)
def test_there_has_to_be_room_in_the_folder_and_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: float, available: float, fits: bool
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(64 * GIB, 0, int(free * GIB)))
    monkeypatch.setattr(temporary_files, "_available_memory", lambda: int(available * GIB))
    environ: dict[str, str] = {}
    assert into_memory(environ, tmp_path) == fits
    assert environ == ({"TMPDIR": str(tmp_path)} if fits else {})


@pytest.mark.parametrize("name", ["TMPDIR", "PYTEST_DEBUG_TEMPROOT"])
def test_a_folder_that_is_named_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(temporary_files, "_fits", lambda _: True)
    environ = {name: "/elsewhere"}
    assert not into_memory(environ, tmp_path)
    assert environ == {name: "/elsewhere"}


def test_without_such_a_folder_the_disk_is_used(tmp_path: Path) -> None:
    assert not into_memory({}, tmp_path / "nowhere")


def test_available_memory_is_what_the_system_says(tmp_path: Path) -> None:
    said = tmp_path / "meminfo"
    said.write_text("MemTotal:       24000000 kB\nMemAvailable:   1024 kB\n")
    assert temporary_files._available_memory(said) == 1 << 20
    assert temporary_files._available_memory(tmp_path / "nothing") == 0


def test_files_that_are_named_as_longest_exist() -> None:
    assert [name for name in LONGEST_FIRST if not (Path(__file__).parents[1] / name).exists()] == []
