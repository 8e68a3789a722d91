"""Nothing that the process has read before lies in a graph that it writes."""

from __future__ import annotations

import ctypes
import threading
from pathlib import Path

import polars as pl
import pytest

from memstate_core.model.graph_tables import EDGES, REVISIONS, TOPICS
from memstate_core.state.graph import EDGE, FEW_ROWS, REVISION, TOPIC, open_graph
from memstate_core.state.process.cleared_memory import cleared_memory
from tests.core.frames import filled
from tests.core.strategies import BUFFER_MIB

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="not glibc: memory is not cleared"),
]
MARK = b"zq7marker"


def forgotten(size: int) -> None:
    """Text that the process had in pieces of so many bytes, and that it has no longer."""
    pieces = [bytearray(MARK * (size // len(MARK))) for _ in range(2000)]
    del pieces


def write(path: Path, topics: int) -> None:
    ids = [f"t{number}" for number in range(topics)]
    edges = pl.DataFrame({"from_id": ids[:-1], "to_id": ids[1:], "kind": ["part_of"] * (topics - 1)})
    with open_graph(path, buffer_mib=BUFFER_MIB) as graph:
        graph.insert(TOPIC, filled(pl.DataFrame({"id": ids, "title": ids}), TOPICS))
        graph.insert(REVISION, filled(pl.DataFrame({"id": ids, "topic_id": ids}), REVISIONS))
        graph.sync(EDGE, filled(edges, EDGES))


@pytest.mark.parametrize("topics", [3, FEW_ROWS, 500])
@pytest.mark.parametrize("size", [600, 4_000, 100_000])
def test_a_graph_has_nothing_that_the_process_has_read_before(tmp_path: Path, size: int, topics: int) -> None:
    forgotten(size)
    write(tmp_path / "graph", topics)
    assert MARK not in (tmp_path / "graph").read_bytes()


def test_neither_has_one_that_is_written_again_while_it_stays_open(tmp_path: Path) -> None:
    write(tmp_path / "graph", 3)
    for number in range(3):
        forgotten(4_000)
        with open_graph(tmp_path / "graph", read_only=True) as graph:
            assert graph.count(TOPIC) == 3 + number
        forgotten(100_000)
        with open_graph(tmp_path / "graph") as graph:
            graph.insert(TOPIC, filled(pl.DataFrame({"id": [f"n{number}"]}), TOPICS))
    assert MARK not in (tmp_path / "graph").read_bytes()


def test_memory_is_cleared_until_the_last_block_ends() -> None:
    def memory() -> bytes:
        libc = ctypes.CDLL(None)
        libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = (
            ctypes.c_void_p,
            [ctypes.c_size_t],
            [ctypes.c_void_p],
        )
        for _ in range(2):  # the second time it is what was freed
            address = libc.malloc(5_000)
            found = ctypes.string_at(address + 1_000, 1_000)
            ctypes.memset(address, 1, 5_000)
            libc.free(address)
        return found

    other = threading.Event(), threading.Event()

    def block() -> None:
        with cleared_memory():
            other[0].set()
            other[1].wait()

    thread = threading.Thread(target=block)
    with cleared_memory():
        thread.start()
        other[0].wait()
        assert memory() == bytes(1_000)
    assert memory() == bytes(1_000)
    other[1].set()
    thread.join()
    assert memory() != bytes(1_000)
