"""What a server does for its callers, without HTTP: plain values in, plain values out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from memstate_core.ingest.reasons import Reason, Rejection
from memstate_core.model.errors import StoreNotFound
from memstate_core.model.text import iso
from memstate_core.retrieve.query import Question, answer
from memstate_core.retrieve.topic import Resolved, resolve, topic_record
from memstate_core.serve.generation import Generation
from memstate_core.serve.inbox_writer import InboxWriter
from memstate_core.serve.listing import Position, topics_page
from memstate_core.serve.observations import clock_at, take
from memstate_core.serve.options import Options
from memstate_core.serve.runs import runs
from memstate_core.serve.serving import Serving
from memstate_core.serve.uses import Use, UseRecorder
from memstate_core.serve.watcher import Watcher
from memstate_core.state.graph import FIELD
from memstate_core.state.store import Store

Document = dict[str, Any]


class Service:
    """One store, served. Safe for several threads between `start` and `close`."""

    def __init__(self, store: Store, options: Options) -> None:
        self.store, self.options = store, options
        self.serving = Serving(store)
        self._watcher = Watcher(self.serving, options.poll_seconds)
        self._inbox = InboxWriter(store.home.inbox)
        self._uses = UseRecorder(store.home.accesses, options)

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

    def query(self, question: Question, record: bool | None = None) -> Document:
        """Answers a question; errors as for `memstate_core.retrieve.query.answer`, or nothing was published."""

        def ask(generation: Generation) -> Document:
            return answer(generation.readers, generation.encoder, None, question)

        document = self.serving.read(ask)
        self.serving.note_scopes(question.scopes or ())
        if self.options.record if record is None else record:
            now, fields = _now(), question.field_names or None
            found = document["candidates"]
            self._uses.note([Use(each["topic_id"], now, each["scope"], fields) for each in found])
        return document

    def topic(self, topic_id: str, **how: Any) -> Document:
        """One topic and the snapshot it is from; arguments and errors as for `topic_record`."""
        return self.serving.read(
            lambda generation: topic_record(generation.readers, topic_id, **how) | {"snapshot": generation.snapshot}
        )

    def topics(self, scopes: Sequence[str] | None, after: Position | None, limit: int) -> Document:
        """A page of topics; see `topics_page`."""
        return self.serving.read(
            lambda generation: topics_page(generation.readers, scopes, after, limit) | {"snapshot": generation.snapshot}
        )

    def runs(self, limit: int) -> Document:
        """The last runs."""
        return {"runs": runs(self.store.home, self.store.shards, limit)}

    def ingest(self, rows: list[bytes]) -> Document:
        """Takes observations; when it returns, they are safe.

        Raises:
            ObservationsRefused: at least one is refused, and none was taken.
            OSError: the disk refuses, and none was taken.
        """
        taken = take(rows, self.store.settings, _now())
        name = self._inbox.append(taken.lines)
        return {
            "accepted": len(taken.observation_ids),
            "observation_ids": taken.observation_ids,
            "topic_ids": taken.topic_ids,
            "file": name,
        }

    def feedback(self, topic_id: str, fields: Sequence[str] | None, failed: bool, at: datetime | None) -> Document:
        """Notes that a topic was of use or was not; when it returns, that is safe.

        Raises:
            TopicNotFound: nothing answers to the id.
            Rejection: the topic has no such field, or the time is in the future.
            OSError: the disk refuses.
        """
        found = self.serving.read(lambda generation: _checked(resolve(generation.readers, topic_id), fields or ()))
        now = _now()
        when = iso(at or now)
        clock_at(now, self.store.settings).spelling(when, "$.at")
        use = Use(found["topic_id"], at or now, found["scope"], fields or None, failed)
        self._uses.note([use])
        self._uses.flush()
        return {"topic_id": use.topic_id, "fields": list(fields) if fields else None, "failed": failed, "at": when}

    def readiness(self) -> Document:
        """What is served.

        Raises:
            StoreNotFound: nothing is served yet.
        """
        generation = self.serving.current
        if generation is None:
            raise StoreNotFound(str(self.store.home.root), "no snapshot that is open")
        run = generation.newest
        return {
            "status": "ready",
            "snapshot": generation.snapshot,
            "age_seconds": round((_now() - generation.published_at).total_seconds(), 3),
            "last_run": {"run_id": run.run_id, "now": iso(run.now)},
        }


def _now() -> datetime:
    return datetime.now(UTC)


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
