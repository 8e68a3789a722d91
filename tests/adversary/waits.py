"""How long the processes of a night waited for a processor, as Linux counts it.

Only the waits of the two that a night goes through one after the other count: of Dagster's daemon until the process of
the run starts, and of that process from then on.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

_NANO = 1e9
_DAEMON = b"dagster-daemon"


@dataclass
class Waits:
    """Samples of the time that processes of a tree have waited for a processor since they began.

    Attributes:
        began: when the clock started, in seconds since the machine's start.
        daemon: pairs of a moment and the wait of the daemon until then.
        run: the start of the process that held the store last, and its wait.
    """

    began: float = field(default_factory=lambda: time.clock_gettime(time.CLOCK_BOOTTIME))
    daemon: list[tuple[float, float]] = field(default_factory=list)
    run: tuple[float, float] = (0.0, 0.0)

    def sample(self, processes: list[int], runner: int | None) -> None:
        """Looks at the processes once.

        Args:
            processes: those of the tree.
            runner: the process that holds the store.
        """
        now = time.clock_gettime(time.CLOCK_BOOTTIME)
        for process in processes:
            if _is_daemon(process) and (waited := _waited(process)) is not None:
                self.daemon.append((now, waited))
        if runner is not None and (waited := _waited(runner)) is not None:
            self.run = (_started(runner), waited)

    def seconds(self) -> float:
        """The wait on the way from the start of the clock to the end of the run."""
        before = [waited for at, waited in self.daemon if at <= max(self.run[0], self.began)]
        return max(before, default=0.0) + (self.run[1] if self.run[0] >= self.began else 0.0)


def _is_daemon(process: int) -> bool:
    with suppress(OSError):
        return _DAEMON in Path(f"/proc/{process}/cmdline").read_bytes()
    return False


def _waited(process: int) -> float | None:
    """Seconds in which the main thread could run and did not; None where the process is gone."""
    with suppress(OSError, IndexError):
        return int(Path(f"/proc/{process}/schedstat").read_text().split()[1]) / _NANO
    return None


def _started(process: int) -> float:
    with suppress(OSError, IndexError):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return int(fields[19]) / os.sysconf("SC_CLK_TCK")
    return 0.0
