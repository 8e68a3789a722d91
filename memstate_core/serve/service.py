"""What a server does for its callers, without HTTP: answers, and takes what they hand over."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from memstate_core.ingest.reasons import Reason, Rejection
from memstate_core.model.text import iso
from memstate_core.retrieve.topic import Resolved, resolve
from memstate_core.run.store import Store
from memstate_core.serve.access.principal import Principal, Role
from memstate_core.serve.inbox_writer import InboxWriter
from memstate_core.serve.observations import Taken, clock_at, take
from memstate_core.serve.options import Options
from memstate_core.serve.placement_requests import Request, request, told_alone
from memstate_core.serve.reading import Document, Reading, clock
from memstate_core.serve.scope_filter import check_given
from memstate_core.serve.telemetry.counters import Count
from memstate_core.serve.telemetry.tracing import span
from memstate_core.serve.uses import Use
from memstate_core.state.graph import FIELD


class Service(Reading):
    """One store, served: what `Reading` answers, and writes. Safe for several threads between `start` and `close`."""

    def __init__(self, store: Store, options: Options) -> None:
        super().__init__(store, options)
        self._inbox = InboxWriter(store.home.inbox)

    def start(self) -> None:
        """Begins to open what is published, and returns; `readiness` says when it is served."""
        self._inbox.sweep()
        self._uses.start()
        self._watcher.start()

    def close(self) -> None:
        """Ends threads, completes the journal of uses, closes snapshots."""
        self._watcher.stop()
        try:
            self._uses.close()
        finally:
            self.serving.close()

    def ingest(self, who: Principal, rows: list[bytes], *, alone: bool = False) -> Document:
        """Takes observations of scopes that the caller sees; when it returns, they are safe.

        Args:
            who: sends them.
            rows: one JSON object each, without line feeds.
            alone: it is one observation, told in full (`memstate_core.serve.placement_requests`).

        Raises:
            ObservationsRefused: at least one is refused, and none was taken.
            OSError: the disk refuses, and none was taken.
        """
        who.require(Role.WRITE)
        asked = request(rows[0]) if alone else None
        with span("memstate.ingest", observations=len(rows)):
            taken = take(rows if asked is None else [asked.line], self.store.settings, clock(), who)
            if not who.sees_all:
                self._check_given(taken.given)
            told = {} if asked is None else self._told(asked, taken)
            name = self._inbox.append(taken.lines)
        self._pending.note(name, taken.lines)
        self.tally.add(Count.OBSERVATIONS_ACCEPTED, len(taken.observation_ids))
        return {
            "accepted": len(taken.observation_ids),
            "observation_ids": taken.observation_ids,
            "topic_ids": taken.topic_ids,
            "file": name,
        } | told

    def _told(self, asked: Request, taken: Taken) -> Document:
        """What is told of an observation that came alone, as far as the served snapshots know."""
        if self.serving.current is None:
            return told_alone(asked, taken, (), None)
        return self.serving.read(lambda generation: told_alone(asked, taken, generation.readers, generation.encoder))

    def _check_given(self, given: Sequence[tuple[int, str, str]]) -> None:
        """See `check_given`; before the first snapshot there is no topic."""
        if self.serving.current is None:
            check_given(given, ())
        else:
            self.serving.read(lambda generation: check_given(given, generation.readers))

    def feedback(
        self, who: Principal, topic_id: str, fields: Sequence[str] | None, failed: bool, at: datetime | None
    ) -> Document:
        """Notes that a topic was of use or was not; when it returns, that is safe.

        Raises:
            TopicNotFound: nothing answers to the id.
            Rejection: the topic has no such field, or the time is in the future.
            OSError: the disk refuses.
        """
        who.require(Role.WRITE)
        found = self.serving.read(
            lambda generation: _checked(resolve(generation.readers, topic_id, who.scopes), fields or ())
        )
        now = clock()
        when = iso(at or now)
        clock_at(now, self.store.settings).spelling(when, "$.at")
        use = Use(found["topic_id"], at or now, found["scope"], fields or None, failed)
        self._uses.note([use])
        self._uses.flush()
        return {"topic_id": use.topic_id, "fields": list(fields) if fields else None, "failed": failed, "at": when}


def _checked(found: Resolved, names: Sequence[str]) -> Document:
    """The topic that is meant; asks the graph, where fields stand too that default answers leave out."""
    topic_id, scope = found.topic["id"][0], found.topic["scope"][0]
    if names:
        known = found.reader.graph.read(FIELD, ["name"], where="r.topic_id = $id", id=topic_id)["name"].sort().to_list()
        for place, name in enumerate(names):
            if name not in known:
                expected = f"expected some of {', '.join(known)}" if known else "expected none"
                raise Rejection(Reason.BAD_VALUE, f"$.fields[{place}] is {name!r}, {expected}: topic {topic_id}")
    return {"topic_id": topic_id, "scope": scope}
