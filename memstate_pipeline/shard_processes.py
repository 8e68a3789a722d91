"""Work on several shards at once, in processes: one that dies takes no other shard's work with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing.connection import wait
from pickle import UnpicklingError

from memstate_core.model.errors import MemstateError, StepFailed
from memstate_core.state.ledger.read_once import files_read_once
from memstate_core.state.process.fresh_process import FreshProcess

Work = Callable[[str], str]
Result = tuple[str, str | MemstateError]


def in_processes(work: Work, shards: Sequence[str], at_once: int) -> Iterator[Result]:
    """Calls a function for each shard, for several at a time.

    A process takes one shard after another. No process is left when this ends, or raises an error.

    Args:
        work: the function, which can be pickled; takes the name of a shard, and raises MemstateError alone.
        shards: the shards, in the order in which they begin.
        at_once: how many at a time, at least 1.

    Yields:
        Each shard with what the function returned or raised, as they end. `StepFailed` stands for a process that died.

    Raises:
        KeyboardInterrupt: this process, or one of them, was interrupted.
    """
    waiting, workers = [*reversed(shards)], list[_Worker]()
    try:
        while waiting or any(worker.shard for worker in workers):
            workers += [_Worker(work) for _ in range(min(at_once - len(workers), len(waiting)))]
            for worker in [worker for worker in workers if worker.shard is None and waiting]:
                worker.begin(waiting.pop())
            busy = {worker.fileno(): worker for worker in workers if worker.shard}
            for number in wait([*busy]):
                worker = busy[number]  # type: ignore[index]
                yield worker.result()
                if not worker.lives:
                    workers.remove(worker)
    finally:
        for worker in workers:
            worker.end()


class _Worker:
    """A process that works on one shard at a time; `shard` names it, None while it has none."""

    def __init__(self, work: Work) -> None:
        self.shard: str | None = None
        self.lives = True
        self._process = FreshProcess()
        with suppress(OSError):  # it died, as `result` will say
            self._process.ask(partial(_reading_once, work))

    def fileno(self) -> int:
        """Can be read when a result is there."""
        return self._process.fileno()

    def begin(self, shard: str) -> None:
        """Gives it a shard."""
        self.shard = shard
        with suppress(OSError):  # it died
            self._process.ask(shard)

    def result(self) -> Result:
        """What it sent, or that it died."""
        assert self.shard is not None
        shard, self.shard = self.shard, None
        try:
            found = self._process.answer()
        except (EOFError, UnpicklingError):
            self.lives = False
            return shard, StepFailed(shard, f"its process ended with exit code {self._process.close()}")
        if isinstance(found, KeyboardInterrupt):
            raise found
        return shard, found

    def end(self) -> None:
        """Ends it, at once if it is busy."""
        if self.shard is not None:
            self._process.terminate()
        self._process.close()


@contextmanager
def _reading_once(work: Work) -> Iterator[Callable[[str], str | BaseException]]:
    """In the process: a function that returns what the work returns or raises, as long as it may keep what it read."""

    def found(shard: str) -> str | BaseException:
        try:
            return work(shard)
        except (MemstateError, KeyboardInterrupt) as error:
            return error

    with files_read_once():
        yield found
