"""Freed memory stays with the process, where the C library can do so."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

from tests.allocator import SETTINGS, one_heap

pytestmark = pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="not glibc")

FAULTS = """
import ctypes, resource
from tests.allocator import one_heap
{setting}
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
def use():
    block = libc.malloc(8 << 20)
    ctypes.memset(block, 1, 8 << 20)
    libc.free(block)
use()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    use()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(setting: str, environ: dict[str, str]) -> int:
    command = [sys.executable, "-c", FAULTS.format(setting=setting)]
    return int(subprocess.run(command, env=environ, capture_output=True, text=True, check=True, timeout=60).stdout)


def test_pages_that_were_freed_are_not_asked_for_again() -> None:
    large = {"MALLOC_MMAP_THRESHOLD_": "131072"}
    assert faults("", large) > 20 * faults("one_heap({})", large)


def test_processes_that_are_started_do_so_too() -> None:
    environ: dict[str, str] = {}
    assert one_heap(environ)
    assert environ.keys() == SETTINGS.keys()
    assert 20 * faults("", environ) < faults("", {"MALLOC_MMAP_THRESHOLD_": "131072"})


def test_settings_of_the_environment_stay() -> None:
    environ = {"MALLOC_ARENA_MAX": "7"}
    one_heap(environ)
    assert environ["MALLOC_ARENA_MAX"] == "7"
