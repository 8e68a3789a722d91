"""Memory is moved into huge pages where the system has them, and other mappings are left alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.huge_pages import HUGE, LONGEST, _written, into_huge_pages

ENABLED = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def mapping(first: int, size: int, access: str = "rw-p", inode: int = 0, name: str = "") -> str:
    return f"{first:x}-{first + size:x} {access} 00000000 00:00 {inode} {name}\n"


@pytest.mark.parametrize(
    "line",
    [
        mapping(HUGE, HUGE, access="r--p"),
        mapping(HUGE, HUGE, access="rw-s"),
        mapping(HUGE, HUGE, inode=7, name="/usr/lib/libc.so.6"),
        mapping(HUGE, HUGE, name="[stack]"),
        mapping(HUGE + 4096, HUGE),
        mapping(HUGE, LONGEST + HUGE),
    ],
)
def test_a_mapping_that_cannot_be_moved_is_left_out(line: str) -> None:
    assert _written(line) == []


def test_a_mapping_is_moved_by_its_whole_huge_pages() -> None:
    assert _written(mapping(HUGE + 4096, 3 * HUGE, name="[heap]")) == [(2 * HUGE, 4 * HUGE)]


def test_without_a_list_of_mappings_nothing_is_moved(tmp_path: Path) -> None:
    assert into_huge_pages(tmp_path / "maps") == 0


@pytest.mark.skipif(not ENABLED.exists() or "[never]" in ENABLED.read_text(), reason="no huge pages on this machine")
def test_what_a_process_has_written_is_in_huge_pages_and_unchanged() -> None:
    code = (
        "from tests.huge_pages import HUGE, into_huge_pages\n"
        "kept = [bytes([n % 256]) * 1000 for n in range(40_000)]\n"
        "moved = into_huge_pages()\n"
        "assert all(kept[n] == bytes([n % 256]) * 1000 for n in range(40_000))\n"
        "print(moved // HUGE)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert int(done.stdout) >= 10
