"""What a home remembers of its notifications: faults that last, runs that were judged, and what was not delivered."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec
from msgspec import Struct, field

from memstate_core.model.text import parse_moment
from memstate_core.state.files import replace_file
from memstate_core.state.home import Home
from memstate_pipeline.notify.message import Kind

REPEATED_AFTER = timedelta(hours=1)
"""How long a fault that lasts is not sent again."""
_RUNS = 50


class Fault(Struct, frozen=True):
    """A fault of a shard that lasts.

    Attributes:
        kind: as in the document.
        name: as in the document.
        message: of the last night with this fault.
        since: when the first night with this fault ended.
        sent_at: when it was delivered last; None if it never was.
    """

    kind: Kind
    name: str | None
    message: str
    since: str
    sent_at: str | None = None

    def is_due(self, now: datetime) -> bool:
        """Whether it may be sent; a time in the future is of a clock that was set back."""
        return self.sent_at is None or not timedelta() <= now - parse_moment(self.sent_at) < REPEATED_AFTER


class ShardFaults(Struct):
    """The faults of a shard by key, and the last runs that were judged."""

    faults: dict[str, Fault] = field(default_factory=dict)
    runs: list[str] = field(default_factory=list)

    def judged(self, run_id: str) -> None:
        """Remembers a run; the command line and a sensor may both see its end."""
        self.runs = [*self.runs, run_id][-_RUNS:]


class Undelivered(Struct, frozen=True):
    """The last notification that a channel did not take."""

    event: str
    at: str
    problem: str


class Known(Struct):
    """The content of the file."""

    shards: dict[str, ShardFaults] = field(default_factory=dict)
    undelivered: dict[str, Undelivered] = field(default_factory=dict)
    """By channel; a delivery over the channel removes it."""

    def record(self, event: str, at: str, results: dict[str, str | None]) -> bool:
        """Records a delivery; returns whether any channel took it."""
        failed = {name: Undelivered(event, at, problem) for name, problem in results.items() if problem is not None}
        kept = {name: entry for name, entry in self.undelivered.items() if name not in results}
        self.undelivered = kept | failed
        return len(failed) < len(results)


def read_known(home: Home) -> Known:
    """What is known; nothing if the file is missing or damaged, which costs a repeated notification."""
    try:
        return msgspec.json.decode(home.notifications.read_bytes(), type=Known)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return Known()


def write_known(home: Home, known: Known) -> None:
    """Replaces the file.

    Raises:
        OSError: it cannot be written; the old content stays.
    """
    replace_file(home.notifications, msgspec.json.format(msgspec.json.encode(known), indent=2) + b"\n")
