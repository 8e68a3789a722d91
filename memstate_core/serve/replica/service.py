"""The service of a replica: answers from fetched snapshots, and refuses what needs the store that writes.

With `accept_writes` here and in the settings of the store, it takes observations, feedback and accesses: they lie in
the inbox at the URL when they are acknowledged, and the store fetches them.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

import polars as pl

from memstate_core.model.errors import NotOnReplica, SourceUnreachable, StoreNotFound
from memstate_core.model.frames import empty
from memstate_core.model.ledger_tables import EVIDENCE
from memstate_core.retrieve.query import Question
from memstate_core.run.store import Store
from memstate_core.serve.accesses import Access, AccessRecorder
from memstate_core.serve.auth import key_file
from memstate_core.serve.auth.key_file import Key
from memstate_core.serve.auth.principal import Principal, Role
from memstate_core.serve.inbox_writer import Inbox
from memstate_core.serve.options import Options
from memstate_core.serve.reading import Document
from memstate_core.serve.replica.follower import Follower
from memstate_core.serve.replica.mirror import Mirror
from memstate_core.serve.replica.published_keys import follow_keys
from memstate_core.serve.replica.shard_source import ShardSource
from memstate_core.serve.replica.writes import RemoteInbox
from memstate_core.serve.service import Service
from memstate_core.serve.snapshots.lost_topics import LostTopics
from memstate_core.serve.snapshots.on_demand import ServingOnDemand
from memstate_core.serve.snapshots.shard_states import ShardState
from memstate_core.serve.snapshots.swap import Serving
from memstate_core.serve.telemetry.counters import Count
from memstate_core.serve.topic_ids import Owned
from memstate_core.serve.workers.shared import Shared
from memstate_core.state.home import Home
from memstate_core.state.replica_note import read_replica_note, writer_of

FOLDER = "replicas"
"""Where the folders of replicas are, below the home of the server."""


def mirror_of(home: Home, source: str, options: Options) -> Mirror:
    """The folder in which a server with this home keeps what it fetches from a source."""
    return Mirror(home.root / FOLDER, source, options.cache_mib << 20)


def published_keys(home: Home, source: str, options: Options) -> list[Key]:
    """The keys of the store that a server with this home would accept now; errors as for `ReplicaService`."""
    mirror = mirror_of(home, source, options)
    mirror.published()
    with suppress(SourceUnreachable):
        follow_keys(source, mirror.home.keys)
    return key_file.read(mirror.home.keys) or []


class ReplicaService(Service):
    """Serves what is published at a URL. Thread-safe between `start` and `close`.

    Args:
        local: the home of the server, with its settings and keys; it need not hold a store.
        source: the URL.
        options: the options of the server.
        shared: what several workers share.

    Raises:
        SourceUnreachable: the source does not answer and was never fetched, or nothing is published there.
        PublicationRefused: the address, or what is there, is not of a publication.
        CloudUnavailable: the package for object storage is missing.
    """

    def __init__(self, local: Store, source: str, options: Options, shared: Shared | None = None) -> None:
        self._local = local
        self._mirror = mirror = mirror_of(local.home, source, options)
        own = local.settings
        sharded = own.store.model_copy(update={"shards": mirror.open()})
        with suppress(SourceUnreachable):  # those that were read before are accepted then; the follower asks again
            follow_keys(source, mirror.home.keys)
        recall = own.recall.model_copy(update={"record": False})  # what is recorded belongs into the home of the store
        settings = own.model_copy(update={"store": sharded, "recall": recall})
        store = Store(mirror.home, settings, models=local.models_base)
        self._remote = RemoteInbox(source, options.accesses_limit)
        on_demand = options.open_shards is not None
        self.follower = Follower(mirror, options.follow_seconds, (lambda: self.serving.in_use()) if on_demand else None)
        # Each flush is an object; feedback is flushed at once.
        super().__init__(store, replace(options, flush_seconds=options.rotate_seconds), shared)

    @property
    def keys(self) -> list[Path]:
        """The key file of the server's own home, and that of the keys of the store."""
        return [self._local.home.keys, self.store.home.keys]

    def start(self) -> None:
        """Starts to follow the source, and serves what was fetched before meanwhile."""
        if isinstance(self.serving, ServingOnDemand):
            here = set(self._mirror.here())
            self.serving.begin([shard for shard in self.store.shards if shard in here][: self.options.open_shards])
        self.follower.start()
        super().start()

    def close(self) -> None:
        """Stops following and serving."""
        self.follower.stop()
        super().close()

    @property
    def takes_writes(self) -> bool:
        """Whether it takes writes now; the store says with each publication whether it fetches them."""
        note = read_replica_note(self.store.home)
        return self.options.accept_writes and note is not None and note.accepts_writes

    def ingest(self, who: Principal, rows: list[bytes], *, alone: bool = False) -> Document:
        """Accepts as any server; `file` of the answer is the name of the object.

        Raises:
            NotOnReplica: it takes no writes.
            InboxUnreachable: the storage does not answer; nothing was accepted.
        """
        who.require(Role.WRITE)
        self._require_writes("takes no observations")
        return super().ingest(who, rows, alone=alone)

    def feedback(self, who: Principal, *given: Any) -> Document:
        """Records as any server; errors as for `ingest`."""
        who.require(Role.WRITE)
        self._require_writes("takes no feedback")
        return super().feedback(who, *given)

    def query(self, who: Principal, question: Question, record: bool | None = None, pending: bool = False) -> Document:
        """Answers as any server; raises NotOnReplica for pending observations, a past time, or a recorded access."""
        self._require_served(pending, record)
        return super().query(who, question, record, pending)

    def context(
        self, who: Principal, question: Question, budget: int, record: bool | None = None, *more: Any, **how: Any
    ) -> Document:
        """Packs as any server; raises NotOnReplica for a past time or a recorded access."""
        self._require_served(False, record)
        return super().context(who, question, budget, record, *more, **how)

    def topic(self, who: Principal, topic_id: str, *, pending: bool = False, **how: Any) -> Document:
        """Reads a topic as any server; raises NotOnReplica for pending observations or a past time."""
        self._require_served(pending, None)
        return super().topic(who, topic_id, pending=pending, **how)

    def readiness(self, who: Principal) -> Document:
        """The readiness of any server, and with `replica` how far it follows its source, for those who see all.

        Raises:
            SourceUnreachable: nothing is served, since the source cannot be read.
            StoreNotFound: nothing is served yet.
        """
        try:
            document = super().readiness(who)
        except StoreNotFound:
            problem = next(iter(self.follower.problems.values()), None)
            if problem is None or not who.sees_all:
                raise
            raise SourceUnreachable(self.follower.described()["source"], problem.detail) from None
        if not who.sees_all:
            return document
        writes = {"writes": self._remote.described(self.takes_writes)}
        return document | {"replica": self.follower.described() | writes}

    def shard_states(self) -> dict[str, ShardState]:
        """As for any server; what the source lacks is noted."""
        return {shard: self._with_problem(shard, state) for shard, state in super().shard_states().items()}

    def _with_problem(self, shard: str, state: ShardState) -> ShardState:
        problem = self.follower.problems.get(shard)
        if problem is None or state.error is not None:
            return state
        error = SourceUnreachable(self._mirror.source, problem.detail)
        failed = state.state if state.state == "open" else "failed"
        return replace(state, state=failed, error=error, problem=problem.detail)

    def _served(self) -> Serving:
        bound = self.options.open_shards
        if bound is None:
            return super()._served()
        source = ShardSource(self._mirror, self.follower)
        return ServingOnDemand(self.store, source, bound, self.counters, settle=self.options.settle)

    def _writer(self) -> Inbox:
        return self._remote

    def _recorder(self) -> AccessRecorder:
        home, lost = self.store.home, LostTopics(self.serving, self.store.home)
        return AccessRecorder(home.accesses, self.options, self.counters, lost, self._remote.journal)

    def _keep_feedback(self, access: Access) -> None:
        """Stores it by itself: what was refused must not be stored later, since it is sent again."""
        self._remote.put_access(access)
        self.counters.add(Count.ACCESSES_RECORDED)
        self.counters.add(Count.ACCESSES_FLUSHED)

    def _is_recorded(self, record: bool | None) -> bool:
        return super()._is_recorded(record) and self.takes_writes

    def _waiting(self) -> pl.DataFrame:
        """It knows no observations but those that it accepted itself."""
        return empty(EVIDENCE)

    def _note(self, name: str, lines: bytes, now: datetime) -> None:
        """Keeps nothing, since it shows no pending observations."""

    def _pending_topics(self, *_given: Any) -> Owned:
        """It knows the topics of the snapshots alone."""
        return set()

    def _require_served(self, pending: bool, record: bool | None) -> None:
        if pending:
            self._refuse("knows no pending observations")
        if record:
            self._require_writes("records no accesses")

    def _require_writes(self, refusal: str) -> None:
        if not self.takes_writes:
            asked = self.options.accept_writes
            self._refuse(
                f"{refusal}, since the store does not fetch them (publish.accept_writes)" if asked else refusal
            )

    def _refuse(self, what: str) -> NoReturn:
        raise NotOnReplica(what, writer_of(self.store.home))
