"""The limit on memory and the address space that is left out of it, in whatever order their blocks end."""

from __future__ import annotations

import resource
from contextlib import ExitStack
from pathlib import Path

import pytest

from memstate_core.state.process.memory import MIB, memory_budget, reserving, return_freed

GIB = 1 << 30
BUDGET_MIB = 4096


def limit() -> int:
    return resource.getrlimit(resource.RLIMIT_DATA)[0]


def resident() -> int:
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@pytest.fixture
def unlimited() -> None:
    assert limit() == resource.RLIM_INFINITY


@pytest.mark.usefixtures("unlimited")
def test_reserved_space_is_left_out_of_the_budget_while_it_is_reserved() -> None:
    with memory_budget(BUDGET_MIB):
        alone = limit()
        with reserving(GIB), reserving(MIB):
            assert limit() == alone + GIB + MIB
        assert limit() == alone
    assert limit() == resource.RLIM_INFINITY


@pytest.mark.usefixtures("unlimited")
def test_space_that_is_reserved_for_longer_than_a_budget_leaves_no_limit_behind() -> None:
    outlasting = ExitStack()
    with memory_budget(BUDGET_MIB):
        outlasting.enter_context(reserving(GIB))
    assert limit() == resource.RLIM_INFINITY
    outlasting.close()
    assert limit() == resource.RLIM_INFINITY


@pytest.mark.usefixtures("unlimited")
def test_space_that_outlasts_an_inner_budget_stays_in_the_limit_of_the_outer_one() -> None:
    with memory_budget(2 * BUDGET_MIB), ExitStack() as outlasting:
        alone = limit()
        with memory_budget(BUDGET_MIB):
            outlasting.enter_context(reserving(GIB))
            assert limit() < alone + GIB
        assert limit() == alone + GIB
        outlasting.close()
        assert limit() == alone


def test_memory_that_was_freed_between_blocks_in_use_is_returned() -> None:
    blocks = [b"x" * (50_000 + place % 7) for place in range(4000)]
    kept = blocks[::100]
    del blocks
    before = resident()
    return_freed()
    assert before - resident() > 100 * MIB
    assert len(kept) == 40
