"""What a server does for its callers, without HTTP: plain values in, plain values out."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from memstate_core.embed.counting import TokenCounter
from memstate_core.ingest.reasons import Reason, Rejection
from memstate_core.model.errors import StoreNotFound, TopicNotFound
from memstate_core.model.text import iso
from memstate_core.retrieve.context import context_pack
from memstate_core.retrieve.query import Question, answer, unanswered
from memstate_core.retrieve.topic import Resolved, resolve, topic_record
from memstate_core.serve.generation import Generation
from memstate_core.serve.graph_health import graph_health
from memstate_core.serve.inbox_writer import InboxWriter
from memstate_core.serve.listing import Position, topics_page
from memstate_core.serve.observations import Taken, clock_at, take
from memstate_core.serve.options import Options
from memstate_core.serve.pending import PENDING_STATE, Pending, record_of
from memstate_core.serve.placements import Request, named_as_before, request, told_alone
from memstate_core.serve.principal import Principal, Role
from memstate_core.serve.readiness import age_of, is_stale, readiness
from memstate_core.serve.runs import runs
from memstate_core.serve.serving import Serving
from memstate_core.serve.sight import check_given, seen
from memstate_core.serve.tally import Count, Tally
from memstate_core.serve.tracing import span
from memstate_core.serve.uses import Use, UseRecorder
from memstate_core.serve.watcher import Watcher
from memstate_core.state.graph import FIELD
from memstate_core.state.store import Store

Document = dict[str, Any]


class Service:
    """One store, served. Safe for several threads between `start` and `close`.

    Whoever asks comes first (`who`), and gets what their key is for; whatever lies in other scopes is to them as
    if it did not exist. Each method raises `NotAllowed` where their role or scopes are too small.
    """

    def __init__(self, store: Store, options: Options) -> None:
        self.store, self.options = store, options
        self.tally = Tally()
        self.serving = Serving(store, self.tally)
        self._watcher = Watcher(self.serving, options.poll_seconds, self.tally)
        self._inbox = InboxWriter(store.home.inbox)
        self._pending = Pending(store)
        self._counter = lru_cache(maxsize=4)(TokenCounter)
        self._uses = UseRecorder(store.home.accesses, options, self.tally)

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

    def query(self, who: Principal, question: Question, record: bool | None = None, pending: bool = False) -> Document:
        """Answers a question; errors as for `memstate_core.retrieve.query.answer`, or nothing was published.

        Args:
            who: asks.
            question: what is asked.
            record: whether what is returned counts as used; the server's own rule without it.
            pending: lay what is accepted and not published yet over the answer.
        """
        own = replace(question, scopes=who.narrowed(question.scopes), asked_at=question.asked_at or _now())
        with span("memstate.query", top_k=own.top_k, evidence_k=own.evidence_k) as tell:
            document = self.serving.read(lambda generation: self._answer(generation, who, own, pending))
            tell(candidates=len(document["candidates"]), snapshot=document["snapshot"])
        self._asked(own)
        served = (each for each in document["candidates"] if each["state"] != PENDING_STATE)
        self._used({each["topic_id"]: each["scope"] for each in served}, record, own.field_names)
        return document

    def context(self, who: Principal, question: Question, budget: int, record: bool | None = None) -> Document:
        """A context pack (`memstate_core.retrieve.context`) of the answer to a question; errors as for `query`."""
        own = replace(question, scopes=who.narrowed(question.scopes), asked_at=question.asked_at or _now())

        def pack(generation: Generation) -> Document:
            found = self._answer(generation, who, own, pending=False)
            counter = self._counter(generation.encoder.model)
            return context_pack(found, budget, counter, counted_by=counter.name, as_of=own.as_of)

        with span("memstate.context", budget=budget):
            document = self.serving.read(pack)
        self._asked(own)
        told = (each for each in document["citations"] if each["kind"] == "topic")
        self._used({each["topic_id"]: each["scope"] for each in told}, record)
        return document

    def _answer(self, generation: Generation, who: Principal, question: Question, pending: bool) -> Document:
        made = self._made(generation, question) if pending else set[str]()
        named = tuple(topic_id for topic_id in question.topic_ids if topic_id not in made)
        if made and not named:
            document = unanswered(generation.readers, question)
        else:
            served = replace(question, topic_ids=named)
            document = answer(generation.readers, generation.encoder, None, served, _part)
        document = named_as_before(seen(document, generation.readers, who))
        return self._pending.over(generation, document, question, _now()) if pending else document

    def _made(self, generation: Generation, question: Question) -> set[str]:
        """Topics that the question names and that no snapshot has yet."""
        if not question.topic_ids:
            return set()
        return self._pending.topics(generation, question.topic_ids, question.scopes, _now())

    def _asked(self, question: Question) -> None:
        self.serving.note_scopes(question.scopes or ())

    def _used(self, scopes: dict[str, str], record: bool | None, fields: Sequence[str] = ()) -> None:
        """Notes a use of topics (by id, with their scopes), unless nobody wants that."""
        if self.options.record if record is None else record:
            now = _now()
            self._uses.note([Use(topic_id, now, scope, fields or None) for topic_id, scope in scopes.items()])

    def topic(self, who: Principal, topic_id: str, *, pending: bool = False, **how: Any) -> Document:
        """One topic and the snapshot it is from; arguments and errors as for `topic_record`.

        With `pending`, what is accepted of it and not published yet, too; also of a topic that no snapshot has yet.
        """

        def read(generation: Generation) -> Document:
            try:
                record = seen(
                    topic_record(generation.readers, topic_id, scopes=who.scopes, **how), generation.readers, who
                )
                found = self._pending_of(generation, record["id"], who, **how)[0] if pending else None
                told = {} if found is None else {"pending": found}
            except TopicNotFound:
                made = self._pending_of(generation, topic_id, who, **how)[1] if pending else None
                if made is None:
                    raise
                record, told = record_of(made), {}
            return record | told | {"snapshot": generation.snapshot}

        return self.serving.read(read)

    def _pending_of(
        self, generation: Generation, topic_id: str, who: Principal, as_of: datetime | None = None, **_how: Any
    ) -> tuple[list[Document], Document | None]:
        return self._pending.at_topic(generation, topic_id, who.scopes, as_of, _now())

    def topics(self, who: Principal, scopes: Sequence[str] | None, after: Position | None, limit: int) -> Document:
        """A page of topics; see `topics_page`."""
        own = who.narrowed(scopes)
        return self.serving.read(
            lambda generation: topics_page(generation.readers, own, after, limit) | {"snapshot": generation.snapshot}
        )

    def runs(self, who: Principal, limit: int) -> Document:
        """The last runs, for who sees every scope."""
        who.require_all()
        return {"runs": runs(self.store.home, self.store.shards, limit)}

    def ingest(self, who: Principal, rows: list[bytes], *, alone: bool = False) -> Document:
        """Takes observations of scopes that the caller sees; when it returns, they are safe.

        Args:
            who: sends them.
            rows: one JSON object each, without line feeds.
            alone: it is one observation, told in full (`memstate_core.serve.placements`).

        Raises:
            ObservationsRefused: at least one is refused, and none was taken.
            OSError: the disk refuses, and none was taken.
        """
        who.require(Role.WRITE)
        asked = request(rows[0]) if alone else None
        with span("memstate.ingest", observations=len(rows)):
            taken = take(rows if asked is None else [asked.line], self.store.settings, _now(), who)
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

    def graph_health(self, who: Principal) -> Document:
        """That a graph is served, and how much of it the caller sees.

        Raises:
            StoreNotFound: nothing is served yet.
        """
        return self.serving.read(lambda generation: graph_health(generation, who))

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
        now = _now()
        when = iso(at or now)
        clock_at(now, self.store.settings).spelling(when, "$.at")
        use = Use(found["topic_id"], at or now, found["scope"], fields or None, failed)
        self._uses.note([use])
        self._uses.flush()
        return {"topic_id": use.topic_id, "fields": list(fields) if fields else None, "failed": failed, "at": when}

    def readiness(self, who: Principal) -> Document:
        """What is served, for who sees every scope; others hear that something is, and whether it is stale.

        Raises:
            StoreNotFound: nothing is served yet.
        """
        generation = self.serving.current
        if generation is None:
            raise StoreNotFound(str(self.store.home.root), "no snapshot that is open")
        now, max_age = _now(), self.options.max_age
        if not who.sees_all:
            return {"status": "ready", "stale": is_stale(age_of(generation, now), max_age)}
        return readiness(self.store.home, self.store.shards, generation, self._watcher.refused, now, max_age)


def _part(name: str) -> AbstractContextManager[object]:
    return span(f"memstate.query.{name}")


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
