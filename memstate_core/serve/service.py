"""The service, without HTTP: answers questions and accepts writes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from pathlib import Path

import polars as pl

from memstate_core.ingest.reasons import Reason, Rejection
from memstate_core.ingest.validation.timestamps import Clock
from memstate_core.model.text import iso
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.retrieve.views.topic import Resolved, resolve
from memstate_core.run.store import Store
from memstate_core.serve.accesses import Access
from memstate_core.serve.auth.principal import Principal, Role
from memstate_core.serve.inbox_writer import Inbox, InboxWriter
from memstate_core.serve.known_contents import KnownContents, refuse_published
from memstate_core.serve.observations import Accepted, accept
from memstate_core.serve.options import Options
from memstate_core.serve.placement_requests import Request, describe_single, request
from memstate_core.serve.reading import Document, Reading, clock
from memstate_core.serve.telemetry.counters import Count
from memstate_core.serve.telemetry.tracing import span
from memstate_core.serve.topic_ids import Owned, check_topic_ids
from memstate_core.serve.workers.shared import Shared
from memstate_core.state.graph import FIELD

OPENING_SECONDS = 60.0
"""How long a worker may take to open a snapshot before it accepts connections all the same."""


class Service(Reading):
    """Serves one store: the reads of `Reading`, and writes. Thread-safe between `start` and `close`."""

    def __init__(self, store: Store, options: Options, shared: Shared | None = None) -> None:
        super().__init__(store, options, shared)
        self._known = KnownContents(self._waiting)
        self._inbox = self._writer()

    @property
    def keys(self) -> list[Path]:
        """The files of the keys that it accepts."""
        return [self.store.home.keys]

    def start(self) -> None:
        """Starts the background threads and returns; `readiness` reports when a snapshot is served.

        One of several workers returns when it has tried to open what is published: until then the others answer.
        """
        self._inbox.sweep()
        self._accesses.start()
        self._watcher.start()
        if self.shared is not None:
            self._watcher.has_polled.wait(OPENING_SECONDS)

    def close(self) -> None:
        """Stops the threads, completes the journal of accesses, closes the snapshots."""
        self._watcher.stop()
        try:
            self._accesses.close()
        finally:
            self.serving.close()

    def ingest(self, who: Principal, rows: list[bytes], *, alone: bool = False) -> Document:
        """Accepts observations of the caller's scopes; they are durable when it returns.

        Args:
            who: the caller.
            rows: one JSON object each, without line feeds.
            alone: there is one observation, and the answer describes it (`memstate_core.serve.placement_requests`).

        Raises:
            ObservationsRefused: at least one is refused; none was accepted.
            ObservationsConflict: the id of at least one was accepted with other content; none was accepted.
            OSError: writing failed; none was accepted. On a replica InboxUnreachable.
        """
        who.require(Role.WRITE)
        asked = request(rows[0]) if alone else None
        with span("memstate.ingest", observations=len(rows)):
            now = clock()
            accepted = accept(rows if asked is None else [asked.line], self.store.settings, now, who)
            if not who.sees_all:
                self._check_topic_ids(accepted)
            description = {} if asked is None else self._describe(asked, accepted)
            if self.serving.is_ready:
                self.serving.read(lambda generation: refuse_published(accepted, generation.readers), accepted.scopes)
            name = self._inbox.append(accepted.lines, self._known.accepting(accepted))
        self._note(name, accepted.lines, now)
        self.counters.add(Count.OBSERVATIONS_ACCEPTED, len(accepted.observation_ids))
        return {
            "accepted": len(accepted.observation_ids),
            "observation_ids": accepted.observation_ids,
            "topic_ids": accepted.topic_ids,
            "file": name,
        } | description

    def _writer(self) -> Inbox:
        return InboxWriter(self.store.home.inbox, self.store.home.inbox_key, self._known.expire)

    def _waiting(self) -> pl.DataFrame:
        """The observations that wait in the inbox (columns EVIDENCE), as far as this server knows them."""
        return self._pending.waiting(clock())

    def _note(self, name: str, lines: bytes, now: datetime) -> None:
        """Has acknowledged lines among the pending ones."""
        self._pending.note(name, lines, now)

    def _pending_topics(self, readers: Sequence[SnapshotReader], ids: list[str], scopes: list[str]) -> Owned:
        """The topics with some ids that pending observations of some scopes would create."""
        return self._pending.topics(readers, ids, scopes, clock())

    def _describe(self, asked: Request, accepted: Accepted) -> Document:
        """The description of a single observation, as far as the served snapshots know."""
        if not self.serving.is_ready:
            return describe_single(asked, accepted, (), None)
        return self.serving.read(
            lambda generation: describe_single(asked, accepted, generation.readers, generation.encoder),
            accepted.scopes,
        )

    def _check_topic_ids(self, accepted: Accepted) -> None:
        """See `check_topic_ids`; before the first snapshot only pending observations make topics."""

        def check(readers: Sequence[SnapshotReader]) -> None:
            check_topic_ids(accepted, readers, partial(self._pending_topics, readers))

        if not self.serving.is_ready:
            check(())
        else:
            self.serving.read(lambda generation: check(generation.readers), accepted.scopes)

    def _keep_feedback(self, access: Access) -> None:
        """Makes an access durable."""
        self._accesses.record([access])
        self._accesses.flush()

    def feedback(
        self, who: Principal, topic_id: str, fields: Sequence[str] | None, failed: bool, at: datetime | None
    ) -> Document:
        """Records whether a topic was useful; durable when it returns.

        Raises:
            TopicNotFound: no topic has this id.
            Rejection: the topic has no such field, or the time is in the future.
            OSError: writing failed.
        """
        who.require(Role.WRITE)
        found = self.serving.read(
            lambda generation: _checked(resolve(generation.readers, topic_id, who.scopes), fields or ()), who.scopes
        )
        now = clock()
        when = iso(at or now)
        Clock.at(now, self.store.settings).spelling(when, "$.at")
        access = Access(found["topic_id"], at or now, found["scope"], fields or None, failed)
        self._keep_feedback(access)
        return {"topic_id": access.topic_id, "fields": list(fields) if fields else None, "failed": failed, "at": when}


def _checked(found: Resolved, names: Sequence[str]) -> Document:
    """The topic, with its fields checked against the graph, which also has fields that default answers omit."""
    topic_id, scope = found.topic["id"][0], found.topic["scope"][0]
    if names:
        known = found.reader.graph.read(FIELD, ["name"], where="r.topic_id = $id", id=topic_id)["name"].sort().to_list()
        for place, name in enumerate(names):
            if name not in known:
                expected = f"expected some of {', '.join(known)}" if known else "expected none"
                raise Rejection(Reason.BAD_VALUE, f"$.fields[{place}] is {name!r}, {expected}: topic {topic_id}")
    return {"topic_id": topic_id, "scope": scope}
