"""The reading side of the service, without HTTP: plain values in, plain values out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from memstate_core.embed.token_counters import MODEL, Served, counter_of
from memstate_core.model.errors import StoreNotFound, TopicNotFound
from memstate_core.retrieve.evaluation.recorded_questions import QuestionRecorder
from memstate_core.retrieve.packs.context import context_pack
from memstate_core.retrieve.packs.grounds import with_warnings
from memstate_core.retrieve.packs.recall_warnings import Workspace
from memstate_core.retrieve.query import Question, answer, empty_answer
from memstate_core.retrieve.routing import AUTO
from memstate_core.retrieve.views.fact_pages import FactFilter, facts_page
from memstate_core.retrieve.views.fact_pages import Position as FactPosition
from memstate_core.retrieve.views.listing import Listing
from memstate_core.retrieve.views.resources import Position as ResourcePosition
from memstate_core.retrieve.views.resources import ResourceFilter, resources_page
from memstate_core.retrieve.views.topic import topic_record
from memstate_core.retrieve.views.topic_pages import Position, topics_page
from memstate_core.run.store import Store
from memstate_core.serve.accesses import Access, AccessRecorder
from memstate_core.serve.auth.principal import Principal
from memstate_core.serve.cursors import cursor_of
from memstate_core.serve.fair_semaphore import FairSemaphore
from memstate_core.serve.graph_health import graph_health
from memstate_core.serve.options import Options
from memstate_core.serve.pending.overlay import PENDING_STATE, Pending, record_of
from memstate_core.serve.placement_requests import add_neighbor_ids
from memstate_core.serve.runs import runs
from memstate_core.serve.scope_filter import redacted
from memstate_core.serve.snapshots.generation import Generation
from memstate_core.serve.snapshots.lost_topics import LostTopics
from memstate_core.serve.snapshots.readiness import age_of, is_stale, readiness
from memstate_core.serve.snapshots.shard_states import ShardState
from memstate_core.serve.snapshots.swap import Serving
from memstate_core.serve.snapshots.watcher import Watcher
from memstate_core.serve.telemetry.counters import Count, Counters
from memstate_core.serve.telemetry.tracing import span
from memstate_core.serve.workers.shared import Shared
from memstate_core.state.absent import require_here

Document = dict[str, Any]
Entries = tuple[list[Document], tuple[str | int, ...] | None]
"""The entries of a page, and where the next one begins; None on the last one."""
ANSWERS_AT_ONCE = 2
"""How many questions of a process are answered at the same time: the interpreter runs one thread, and what it calls
runs another. With 16 at a time each answer took twice as much CPU time (`tests/benchmarks/README.md`)."""


class Reading:
    """Answers questions. Thread-safe once the service has started.

    Every method takes the caller first (`who`) and reads only the caller's scopes; topics in other scopes look as if
    they did not exist. Each method raises `NotAllowed` if the caller's role or scopes do not suffice.
    """

    def __init__(self, store: Store, options: Options, shared: Shared | None = None) -> None:
        self.store, self.options, self.shared = store, options, shared
        self.counters = Counters(None if shared is None else shared.counts(len(Count)))
        self.serving = self._served()
        self._answering = FairSemaphore(ANSWERS_AT_ONCE)
        self._watcher = Watcher(self.serving, options.poll_seconds, self.counters)
        self._pending = Pending(store)
        self._counter = lru_cache(maxsize=4)(counter_of)
        self._accesses = self._recorder()
        self._questions = QuestionRecorder(store.home.recorded_questions, store.settings.recall)

    def _served(self) -> Serving:
        return Serving(self.store, self.counters, settle=self.options.settle)

    def _recorder(self) -> AccessRecorder:
        home = self.store.home
        return AccessRecorder(home.accesses, self.options, self.counters, LostTopics(self.serving, home))

    def query(self, who: Principal, question: Question, record: bool | None = None, pending: bool = False) -> Document:
        """Answers a question; errors as for `memstate_core.retrieve.query.answer`, and `StoreNotFound`.

        Args:
            who: the caller.
            question: the question.
            record: whether to record the returned topics as accessed; the server's setting by default.
            pending: include accepted observations that are not published yet.
        """
        own = replace(question, scopes=who.narrowed(question.scopes), asked_at=question.asked_at or clock())
        with span("memstate.query", top_k=own.top_k, evidence_k=own.evidence_k) as set_attributes:
            document = self.serving.read(lambda generation: self._answer(generation, who, own, pending), own.scopes)
            if not pending and self._is_recorded(record):
                self._questions.record(own, document, clock())
            set_attributes(candidates=len(document["candidates"]), snapshot=document["snapshot"])
        self._record_scopes(own)
        served = (each for each in document["candidates"] if each["state"] != PENDING_STATE)
        self._record({each["topic_id"]: each["scope"] for each in served}, record, own.field_names)
        return document

    def context(
        self,
        who: Principal,
        question: Question,
        budget: int,
        record: bool | None = None,
        workspace: Workspace | None = None,
        tokenizer: Served = MODEL,
    ) -> Document:
        """A context pack (`memstate_core.retrieve.packs.context`) of the answer to a question; errors as for `query`.

        Args:
            who: the caller.
            question: the question.
            budget: the most tokens that the text may have.
            record: whether to record the cited topics as accessed; the server's setting by default.
            workspace: where the question is asked from, for warnings of drift.
            tokenizer: what counts tokens.
        """
        own = replace(question, scopes=who.narrowed(question.scopes), asked_at=question.asked_at or clock())

        def pack(generation: Generation) -> Document:
            found = self._answer(generation, who, own, pending=False)
            if own.policy == AUTO and self._is_recorded(record):  # the gate replays whole searches
                self._questions.record(own, found, clock())
            counter = self._counter(tokenizer, generation.encoder.model, self.store.models_base)
            packed = context_pack(
                found, budget, counter, counted_by=counter.name, policy=own.policy or AUTO, as_of=own.as_of
            )
            return with_warnings(packed, generation.readers, own.scopes, workspace, own.as_of)

        with span("memstate.context", budget=budget):
            document = self.serving.read(pack, own.scopes)
        self._record_scopes(own)
        cited = (each for each in document["citations"] if each["kind"] in ("topic", "resource"))
        self._record({each["topic_id"]: each["scope"] for each in cited}, record)
        return document

    def _answer(self, generation: Generation, who: Principal, question: Question, pending: bool) -> Document:
        made = self._unserved(generation, question) if pending else set[str]()
        named = tuple(topic_id for topic_id in question.topic_ids if topic_id not in made)
        if made and not named:
            document = empty_answer(generation.readers, question)
        else:
            served = replace(question, topic_ids=named)
            with self._place(generation, served):
                document = answer(generation.readers, generation.encoder, None, served, _part, generation.damaged)
        document = add_neighbor_ids(redacted(document, generation.readers, who))
        return self._pending.overlay(generation, document, question, clock()) if pending else document

    def _place(self, generation: Generation, question: Question) -> AbstractContextManager[object]:
        """A place among the answers that are computed; none is needed to wait for a disk, or for an endpoint."""
        waits = question.as_of is not None or generation.encoder.is_at_endpoint
        return nullcontext() if waits else self._answering

    def _unserved(self, generation: Generation, question: Question) -> set[str]:
        """Topics that the question names and that exist only in pending observations."""
        if not question.topic_ids:
            return set()
        made = self._pending.topics(generation.readers, question.topic_ids, question.scopes, clock())
        return {topic_id for _, topic_id in made}

    def _record_scopes(self, question: Question) -> None:
        self.serving.record_scopes(question.scopes or ())

    def _record(self, scopes: dict[str, str], record: bool | None, fields: Sequence[str] = ()) -> None:
        """Records accesses of topics (by id, with their scopes), if recording is on."""
        if self._is_recorded(record):
            now = clock()
            self._accesses.record([Access(topic_id, now, scope, fields or None) for topic_id, scope in scopes.items()])

    def _is_recorded(self, record: bool | None) -> bool:
        return self.options.record if record is None else record

    def topic(self, who: Principal, topic_id: str, *, pending: bool = False, **how: Any) -> Document:
        """One topic and the name of its snapshot; arguments and errors as for `topic_record`.

        With `pending`, includes accepted observations that are not published yet, also for a topic that no snapshot
        has.
        """

        def read(generation: Generation) -> Document:
            try:
                record = redacted(
                    topic_record(generation.readers, topic_id, scopes=who.scopes, damaged=generation.damaged, **how),
                    generation.readers,
                    who,
                )
                found = self._pending_of(generation, record["id"], who, **how)[0] if pending else None
                added = {} if found is None else {"pending": found}
            except TopicNotFound:
                made = self._pending_of(generation, topic_id, who, **how)[1] if pending else None
                if made is None:
                    raise
                record, added = record_of(made), {}
            return record | added | {"snapshot": generation.snapshot}

        return self.serving.read(read, who.scopes)

    def _pending_of(
        self, generation: Generation, topic_id: str, who: Principal, as_of: datetime | None = None, **_how: Any
    ) -> tuple[list[Document], Document | None]:
        return self._pending.at_topic(generation, topic_id, who.scopes, as_of, clock())

    def topics(self, who: Principal, scopes: Sequence[str] | None, after: Position | None, limit: int) -> Document:
        """A page of topics (`memstate_core.retrieve.views.topic_pages`); errors as for `topics_page`."""
        return self._page(who, scopes, limit, "topics", lambda listing: topics_page(listing, after))

    def facts(
        self, who: Principal, scopes: Sequence[str] | None, wanted: FactFilter, after: FactPosition | None, limit: int
    ) -> Document:
        """A page of facts (`memstate_core.retrieve.views.fact_pages`); errors as for `facts_page`."""
        return self._page(who, scopes, limit, "facts", lambda listing: facts_page(listing, wanted, after))

    def resources(
        self,
        who: Principal,
        scopes: Sequence[str] | None,
        wanted: ResourceFilter,
        after: ResourcePosition | None,
        limit: int,
    ) -> Document:
        """A page of resources (`memstate_core.retrieve.views.resources`); errors as for `resources_page`."""
        return self._page(who, scopes, limit, "resources", lambda listing: resources_page(listing, wanted, after))

    def _page(
        self, who: Principal, scopes: Sequence[str] | None, limit: int, name: str, entries: Callable[[Listing], Entries]
    ) -> Document:
        """A page with the cursor of the next one, and the damaged shards that hold some of the caller's scopes."""
        own = who.narrowed(scopes)

        def page(generation: Generation) -> Document:
            found, last = entries(Listing(generation.readers, own, limit, generation.damaged))
            cursor = None if last is None else cursor_of(last)
            listed = {name: found, "next_cursor": cursor, "snapshot": generation.snapshot}
            return listed | generation.damaged.note(own)

        return self.serving.read(page, own)

    def runs(self, who: Principal, limit: int) -> Document:
        """The latest runs, for callers who may read every scope."""
        who.require_all()
        return {"runs": runs(self.store, limit)}

    def report(self, who: Principal, name: str) -> bytes:
        """A page of the reports as it is on disk, for callers who may read every scope.

        Raises:
            FileNotFoundError: there is none of this name.
        """
        who.require_all()
        return (self.store.home.reports / name).read_bytes()

    def graph_health(self, who: Principal) -> Document:
        """The state of the served graph, with counts of what the caller may read.

        Raises:
            StoreNotFound: nothing is served yet.
        """
        return self.serving.read(lambda generation: graph_health(generation, who), who.scopes)

    def readiness(self, who: Principal) -> Document:
        """The readiness of the server; callers with limited scopes learn only whether the snapshot is stale.

        Raises:
            StoreNotFound: nothing is served yet.
            SnapshotAbsent: no shard that has a snapshot is on this machine.
        """
        if not self.serving.is_ready:
            if who.sees_all:
                require_here(self.store.home, self.store.shards)
            raise StoreNotFound(str(self.store.home.root), "no snapshot that is open")
        generation, now, max_age = self.serving.current, clock(), self.options.max_age
        if not who.sees_all:
            return {"status": "ready", "stale": generation is not None and is_stale(age_of(generation, now), max_age)}
        document = {"status": "ready", "stale": False, "max_age_seconds": max_age}
        if generation is not None:
            document = readiness(self.store, generation, self._watcher.refused, now, max_age)
        return document | {"shards": {name: each.described(now) for name, each in self.shard_states().items()}}

    def shard_readiness(self, who: Principal, shard: str) -> Document | None:
        """The readiness of one shard, for callers with limited scopes without details; None if there is no such shard.

        Raises:
            MemstateError: nothing can be served of it, or nothing is served yet.
        """
        if not self.serving.is_ready:
            raise StoreNotFound(str(self.store.home.root), "no snapshot that is open")
        state, now = self.shard_states().get(shard), clock()
        if state is None:
            return None
        if not state.is_ready:
            raise state.error if state.error and who.sees_all else StoreNotFound(shard, "no snapshot that is open")
        document = {"status": "ready", "stale": is_stale(state.age(now), self.options.max_age)}
        return document | ({"shards": {shard: state.described(now)}} if who.sees_all else {})

    def shard_states(self) -> dict[str, ShardState]:
        """The state of each shard; none before the first snapshot."""
        return self.serving.states()


def _part(name: str) -> AbstractContextManager[object]:
    return span(f"memstate.query.{name}")


def clock() -> datetime:
    """The current time; only a server reads the machine's clock."""
    return datetime.now(UTC)
