"""So many threads at a time, in the order in which they came."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from memstate_core.retrieve.query import Question
from memstate_core.run.store import Store
from memstate_core.serve import reading
from memstate_core.serve.auth.principal import Principal, Role
from memstate_core.serve.fair_semaphore import FairSemaphore
from memstate_core.serve.options import Options
from memstate_core.serve.service import Service


class Busy:
    """Counts the threads that are in a block at the same time."""

    def __init__(self) -> None:
        self.now, self.most, self._lock = 0, 0, threading.Lock()

    def work(self, seconds: float = 0.02) -> None:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(seconds)
        with self._lock:
            self.now -= 1


def together(works: list[Callable[[], object]]) -> None:
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()


def test_no_more_than_the_places_are_taken_and_an_error_frees_one() -> None:
    places, busy = FairSemaphore(3), Busy()

    def work() -> None:
        with places:
            busy.work()
            raise ValueError("wrong")

    def refused() -> None:
        with pytest.raises(ValueError, match="wrong"):
            work()

    together([refused] * 12)
    assert busy.most == 3


def test_who_waits_goes_on_before_who_comes_later() -> None:
    places, order = FairSemaphore(1), list[int]()
    arrived = threading.Semaphore(0)

    def work(number: int) -> None:
        arrived.release()
        with places:
            order.append(number)

    with places:
        threads = []
        for number in range(5):
            threads.append(threading.Thread(target=work, args=(number,)))
            threads[-1].start()
            arrived.acquire()
            while len(places._waiting) <= number:
                time.sleep(0.001)
    with places:  # the last to come
        order.append(5)
    for thread in threads:
        thread.join(30)
    assert order == [0, 1, 2, 3, 4, 5]


@pytest.mark.slow
@pytest.mark.parametrize(("at_once", "question"), [
    (reading.ANSWERS_AT_ONCE, Question("the gate")),
    (6, Question("the gate", as_of=datetime(2030, 1, 1, tzinfo=UTC))),
])  # fmt: skip
def test_so_many_questions_are_answered_at_once_but_for_those_that_read_the_disk(
    harbour_store: Store, monkeypatch: pytest.MonkeyPatch, at_once: int, question: Question
) -> None:
    busy, real = Busy(), reading.answer
    service = Service(harbour_store, Options(record=False))
    service.serving.refresh()

    def counted(*given: Any, **named: Any) -> Any:
        busy.work(0.2)
        return real(*given, **named)

    monkeypatch.setattr(reading, "answer", counted)
    who = Principal("x", None, Role.READ)
    try:
        together([lambda n=n: service.query(who, replace(question, text=f"the gate {n}")) for n in range(6)])
    finally:
        service.serving.close()
    assert busy.most == at_once
