"""Requests side by side: as many as allowed, results in order, an error ends the rest."""

from __future__ import annotations

import threading
import time
from itertools import count

import pytest

from memstate_core.storage.concurrent_requests import AT_ONCE, at_once


def test_as_many_as_allowed_are_in_progress_and_results_keep_their_order() -> None:
    all_there = threading.Barrier(AT_ONCE, timeout=10)  # passed only when so many wait at the same time
    most, now, lock = [0], [0], threading.Lock()

    def request(number: int) -> int:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        all_there.wait()
        time.sleep(0.002 * (AT_ONCE - number % AT_ONCE))  # later items answer first
        with lock:
            now[0] -= 1
        return number

    assert [*at_once(request, range(3 * AT_ONCE))] == [*range(3 * AT_ONCE)]
    assert most == [AT_ONCE]


def test_an_error_ends_what_was_not_begun() -> None:
    begun = count()

    def request(number: int) -> int:
        next(begun)
        time.sleep(0.01)
        if number == 3:
            raise OSError(f"request {number} failed")
        return number

    with pytest.raises(OSError, match="request 3 failed"):
        [*at_once(request, range(1000))]
    assert next(begun) < 10 * AT_ONCE
