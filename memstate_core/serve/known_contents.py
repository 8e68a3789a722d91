"""The contents of observations that were accepted lately, so that another content of the same id is refused at once.

Known are the observations that this process accepted, the newest of them, those that waited in the inbox when it
accepted its first or when another process wrote, and those of the served snapshots. Of others (imported since the last
snapshot, or waiting beyond the limits of pending observations), a run finds the conflict, and records it in the
quarantine.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import polars as pl

from memstate_core.ingest.evidence_frame import EVIDENCE_ID_LENGTH
from memstate_core.ingest.reasons import Reason, shortened
from memstate_core.model.errors import SnapshotDamaged
from memstate_core.retrieve.index.damage import damage_named
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.serve.observations import Accepted, ObservationsConflict

_IDENTITY = ("scope", "observation_id", "content_sha256")
KNOWN = 200_000
"""How many observations are remembered; one takes about 150 bytes."""


class KnownContents:
    """A thread-safe memory of accepted contents.

    Args:
        waiting: the observations in the inbox (columns scope, observation_id, content_sha256), the newest first;
            asked before the first acceptance, and before the next one after `expire`.
    """

    def __init__(self, waiting: Callable[[], pl.DataFrame]) -> None:
        self._waiting, self._is_current = waiting, False
        self._lock = threading.Lock()
        self._known: dict[bytes, str] = {}

    def expire(self) -> None:
        """Another process may have accepted observations, which wait in the inbox."""
        with self._lock:
            self._is_current = False

    @contextmanager
    def accepting(self, accepted: Accepted) -> Iterator[None]:
        """Remembers observations while they are written, and afterwards unless that fails.

        Raises:
            ObservationsConflict: the ids of some are known with other contents.
        """
        with self._lock:
            self._read_waiting()
            self._refuse_conflicts(accepted)
            fresh = {key: content for *name, content in accepted.contents if (key := _key(*name)) not in self._known}
            self._remember(fresh)
        try:
            yield
        except BaseException:
            with self._lock:
                for key in fresh:
                    self._known.pop(key, None)
            raise

    def _read_waiting(self) -> None:
        if not self._is_current:
            found: dict[bytes, str] = {}
            for scope, name, content in self._waiting().select(*_IDENTITY).reverse().iter_rows():
                found.setdefault(_key(scope, name), content)  # the first of two contents wins in a run, too
            self._remember(found | self._known)
            self._is_current = True

    def _remember(self, contents: dict[bytes, str]) -> None:
        self._known |= contents
        for key in list(self._known)[: max(0, len(self._known) - KNOWN)]:
            del self._known[key]

    def _refuse_conflicts(self, accepted: Accepted) -> None:
        _refuse(
            accepted,
            [
                place
                for place, (scope, name, content) in enumerate(accepted.contents)
                if self._known.get(_key(scope, name), content) != content
            ],
        )


def refuse_published(accepted: Accepted, readers: Sequence[SnapshotReader]) -> None:
    """Refuses observations whose ids the snapshots have with other contents.

    Raises:
        ObservationsConflict: names each that is refused.
    """
    asked = pl.DataFrame(accepted.contents, dict.fromkeys(_IDENTITY, pl.String), orient="row").with_row_index("place")
    asked = asked.with_columns(_own=pl.col("content_sha256").str.head(EVIDENCE_ID_LENGTH))
    names, scopes = asked["observation_id"].unique(), asked["scope"].unique().to_list()
    for reader in readers:
        rows = reader.evidence_of(scopes).filter(pl.col("observation_id").is_in(names.implode()))
        try:
            with damage_named(reader.snapshot):
                known = rows.select("scope", "observation_id", "evidence_id").collect()
        except SnapshotDamaged:  # a write does not need the snapshot
            continue
        other = asked.join(known, on=["scope", "observation_id"]).filter(pl.col("_own") != pl.col("evidence_id"))
        _refuse(accepted, other["place"].unique().sort().to_list())


def _refuse(accepted: Accepted, places: Sequence[int]) -> None:
    if places:
        named = [(place, *accepted.contents[place][:2]) for place in places]
        code = Reason.CONFLICTING_OBSERVATION.value
        raise ObservationsConflict([(place, code, _detail(scope, name)) for place, scope, name in named])


def _key(scope: str, observation_id: str) -> bytes:
    return hashlib.blake2b(f"{scope}\0{observation_id}".encode(), digest_size=16).digest()


def _detail(scope: str, observation_id: str) -> str:
    found = f"observation_id {observation_id!r} was accepted with other content in scope {scope!r}"
    return shortened(f"{found}, expected the same content, or an id that is new in this scope")
