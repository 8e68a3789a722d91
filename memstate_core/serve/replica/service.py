"""The service of a read-only replica: answers from fetched snapshots, and refuses what needs the store that writes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from memstate_core.model.errors import NotOnReplica, SourceUnreachable, StoreNotFound
from memstate_core.retrieve.query import Question
from memstate_core.run.store import Store
from memstate_core.serve.auth.principal import Principal, Role
from memstate_core.serve.options import Options
from memstate_core.serve.reading import Document
from memstate_core.serve.replica.follower import Follower
from memstate_core.serve.replica.mirror import Mirror
from memstate_core.serve.service import Service
from memstate_core.serve.workers.shared import Shared
from memstate_core.state.home import Home
from memstate_core.state.replica_note import writer_of

FOLDER = "replicas"
"""Where the folders of replicas are, below the home of the server."""


def mirror_of(home: Home, source: str, options: Options) -> Mirror:
    """The folder in which a server with this home keeps what it fetches from a source."""
    return Mirror(home.root / FOLDER, source, options.cache_mib << 20)


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
        mirror = mirror_of(local.home, source, options)
        sharded = local.settings.store.model_copy(update={"shards": mirror.open()})
        store = Store(mirror.home, local.settings.model_copy(update={"store": sharded}))
        super().__init__(store, replace(options, record=False), shared)
        self.follower = Follower(mirror, store.shards, options.follow_seconds)

    @property
    def keys(self) -> Path:
        """The key file of the server's own home."""
        return self._local.home.keys

    def start(self) -> None:
        """Starts to follow the source, and serves what was fetched before meanwhile."""
        self.follower.start()
        super().start()

    def close(self) -> None:
        """Stops following and serving."""
        self.follower.stop()
        super().close()

    def ingest(self, who: Principal, rows: list[bytes], *, alone: bool = False) -> Document:  # noqa: ARG002
        """Refuses; raises NotOnReplica."""
        who.require(Role.WRITE)
        self._refuse("takes no observations")

    def feedback(self, who: Principal, *_given: Any) -> Document:
        """Refuses; raises NotOnReplica."""
        who.require(Role.WRITE)
        self._refuse("takes no feedback")

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
        return document | ({"replica": self.follower.described()} if who.sees_all else {})

    def _require_served(self, pending: bool, record: bool | None) -> None:
        if pending:
            self._refuse("knows no pending observations")
        if record:
            self._refuse("records no accesses")

    def _refuse(self, what: str) -> NoReturn:
        raise NotOnReplica(what, writer_of(self.store.home))
