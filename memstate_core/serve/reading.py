"""What a server answers its callers, without HTTP: plain values in, plain values out."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from memstate_core.embed.counting import TokenCounter
from memstate_core.model.errors import StoreNotFound, TopicNotFound
from memstate_core.retrieve.context import context_pack
from memstate_core.retrieve.query import Question, answer, unanswered
from memstate_core.retrieve.topic import topic_record
from memstate_core.run.store import Store
from memstate_core.serve.access.principal import Principal
from memstate_core.serve.graph_health import graph_health
from memstate_core.serve.options import Options
from memstate_core.serve.pending.overlay import PENDING_STATE, Pending, record_of
from memstate_core.serve.placement_requests import named_as_before
from memstate_core.serve.runs import runs
from memstate_core.serve.scope_filter import seen
from memstate_core.serve.snapshots.generation import Generation
from memstate_core.serve.snapshots.readiness import age_of, is_stale, readiness
from memstate_core.serve.snapshots.swap import Serving
from memstate_core.serve.snapshots.watcher import Watcher
from memstate_core.serve.telemetry.counters import Tally
from memstate_core.serve.telemetry.tracing import span
from memstate_core.serve.topic_pages import Position, topics_page
from memstate_core.serve.uses import Use, UseRecorder

Document = dict[str, Any]


class Reading:
    """The side of a service that answers. Safe for several threads once the service has started.

    Whoever asks comes first (`who`), and gets what their key is for; whatever lies in other scopes is to them as
    if it did not exist. Each method raises `NotAllowed` where their role or scopes are too small.
    """

    def __init__(self, store: Store, options: Options) -> None:
        self.store, self.options = store, options
        self.tally = Tally()
        self.serving = Serving(store, self.tally, settle=options.settle)
        self._watcher = Watcher(self.serving, options.poll_seconds, self.tally)
        self._pending = Pending(store)
        self._counter = lru_cache(maxsize=4)(TokenCounter)
        self._uses = UseRecorder(store.home.accesses, options, self.tally)

    def query(self, who: Principal, question: Question, record: bool | None = None, pending: bool = False) -> Document:
        """Answers a question; errors as for `memstate_core.retrieve.query.answer`, or nothing was published.

        Args:
            who: asks.
            question: what is asked.
            record: whether what is returned counts as used; the server's own rule without it.
            pending: lay what is accepted and not published yet over the answer.
        """
        own = replace(question, scopes=who.narrowed(question.scopes), asked_at=question.asked_at or clock())
        with span("memstate.query", top_k=own.top_k, evidence_k=own.evidence_k) as tell:
            document = self.serving.read(lambda generation: self._answer(generation, who, own, pending))
            tell(candidates=len(document["candidates"]), snapshot=document["snapshot"])
        self._asked(own)
        served = (each for each in document["candidates"] if each["state"] != PENDING_STATE)
        self._used({each["topic_id"]: each["scope"] for each in served}, record, own.field_names)
        return document

    def context(self, who: Principal, question: Question, budget: int, record: bool | None = None) -> Document:
        """A context pack (`memstate_core.retrieve.context`) of the answer to a question; errors as for `query`."""
        own = replace(question, scopes=who.narrowed(question.scopes), asked_at=question.asked_at or clock())

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
        return self._pending.over(generation, document, question, clock()) if pending else document

    def _made(self, generation: Generation, question: Question) -> set[str]:
        """Topics that the question names and that no snapshot has yet."""
        if not question.topic_ids:
            return set()
        return self._pending.topics(generation, question.topic_ids, question.scopes, clock())

    def _asked(self, question: Question) -> None:
        self.serving.note_scopes(question.scopes or ())

    def _used(self, scopes: dict[str, str], record: bool | None, fields: Sequence[str] = ()) -> None:
        """Notes a use of topics (by id, with their scopes), unless nobody wants that."""
        if self.options.record if record is None else record:
            now = clock()
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
        return self._pending.at_topic(generation, topic_id, who.scopes, as_of, clock())

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

    def graph_health(self, who: Principal) -> Document:
        """That a graph is served, and how much of it the caller sees.

        Raises:
            StoreNotFound: nothing is served yet.
        """
        return self.serving.read(lambda generation: graph_health(generation, who))

    def readiness(self, who: Principal) -> Document:
        """What is served, for who sees every scope; others hear that something is, and whether it is stale.

        Raises:
            StoreNotFound: nothing is served yet.
        """
        generation = self.serving.current
        if generation is None:
            raise StoreNotFound(str(self.store.home.root), "no snapshot that is open")
        now, max_age = clock(), self.options.max_age
        if not who.sees_all:
            return {"status": "ready", "stale": is_stale(age_of(generation, now), max_age)}
        return readiness(self.store.home, self.store.shards, generation, self._watcher.refused, now, max_age)


def _part(name: str) -> AbstractContextManager[object]:
    return span(f"memstate.query.{name}")


def clock() -> datetime:
    """The machine's clock, which a server alone may read."""
    return datetime.now(UTC)
