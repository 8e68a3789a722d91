"""What a place is used for: the folder that marks it, how long it is waited for, and the errors that it raises."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from memstate_core.model.errors import (
    BackupRefused,
    BackupUnreachable,
    InboxUnreachable,
    MemstateError,
    PublicationRefused,
    PublicationUnreachable,
    SourceUnreachable,
    StoreUnreachable,
    StoreUrlRefused,
)

Problem = Callable[[str, str], MemstateError]
"""Makes an error of an address and what is wrong there."""


@dataclass(frozen=True)
class Purpose:
    """What a place is used for.

    Attributes:
        mark: the folder by which a place that is used for this is known.
        refused: the error of a place that cannot be used.
        unreachable: the error of one that does not answer, refuses, or sends something else.
        retries: how often a request is repeated.
        patience: until when requests are repeated.
        beside: what a place without the mark may hold already.
    """

    mark: str
    refused: Problem
    unreachable: Problem
    retries: int = 5
    patience: timedelta = timedelta(minutes=2)
    beside: frozenset[str] = frozenset()


BACKUPS = Purpose("backups", BackupRefused, BackupUnreachable)
PUBLICATION = Purpose("shards", PublicationRefused, PublicationUnreachable, 3, timedelta(seconds=30))
SOURCE = Purpose("shards", PublicationRefused, SourceUnreachable, 1, timedelta(seconds=10))
"""The source of a replica, which asks again soon by itself."""
INBOX = Purpose("shards", PublicationRefused, InboxUnreachable, 2, timedelta(seconds=10))
"""The inbox of a store at its URL: a caller of the replica waits meanwhile."""
STORE = Purpose("head", StoreUrlRefused, StoreUnreachable, 4, timedelta(seconds=60), frozenset({"inbox"}))
"""A store that is kept at a URL: what a writer sends there is its only copy elsewhere."""
