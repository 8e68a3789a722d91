"""A published snapshot opened for reading: index files by scope, and the graph on first use.

Opening reads one small table. The rows of a scope are read with its first question and cached; vectors and postings are
memory-mapped, so processes share them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from datetime import datetime
from functools import cache, cached_property, lru_cache, partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar, cast

import numpy as np
import polars as pl

from memstate_core.model.errors import MemstateError, NotOnReplica, SnapshotAbsent, SnapshotDamaged, SnapshotRemoved
from memstate_core.model.frames import empty
from memstate_core.model.graph_tables import EDGES, REVISIONS
from memstate_core.model.step_frames import ALIASES, EVIDENCE_INDEX
from memstate_core.retrieve.facts.facts_cache import FactsCache
from memstate_core.retrieve.facts.in_force import ahead, field_histories, in_force_of
from memstate_core.retrieve.index.bm25 import Postings
from memstate_core.retrieve.index.damage import damage_named, unopenable
from memstate_core.retrieve.index.facts_files import FOLDER, SUPERSEDED_FILE, TABLES
from memstate_core.retrieve.index.layout import Place, Places, read_array, read_rows
from memstate_core.retrieve.index.notes import NOTES_FILE, NOTES_INDEX
from memstate_core.retrieve.scope_data import EvidenceSlice, Rows, ScopeTerms, TopicSlice, places_of
from memstate_core.retrieve.scope_facts import ScopeFacts
from memstate_core.retrieve.superseded import SUPERSEDED, Statements, statements, superseded_in_force
from memstate_core.run.run import GRAPH_FILE
from memstate_core.state.absent import absent_shards, unreadable
from memstate_core.state.fold.edges import valid_at
from memstate_core.state.graph import Graph, open_graph
from memstate_core.state.replica_note import writer_of
from memstate_core.state.snapshots import COMPRESSED_FILE, Snapshot

if TYPE_CHECKING:
    from memstate_core.retrieve.past import Past
    from memstate_core.state.ledger.ledger import Ledger

BUFFER_MIB = 256
"""Kuzu's buffer pool for reading a few topics at a time."""

_KEPT_SCOPES = 32
_KEPT_PASTS = 4
_KEPT_DERIVED = 4 * _KEPT_SCOPES

Asked = ParamSpec("Asked")
Made = TypeVar("Made")


class SnapshotReader:
    """An open snapshot; a context manager.

    Files are opened when they are first read, so a block that fails since the snapshot was removed meanwhile fails with
    `SnapshotRemoved`, or with `SnapshotAbsent` if all of its shard was.

    Raises:
        SnapshotDamaged: a file that the manifest names is missing, or does not open as what it is.
        SnapshotAbsent: it is not on this machine.
    """

    def __init__(self, snapshot: Snapshot, *, buffer_mib: int = BUFFER_MIB) -> None:
        if missing := snapshot.missing():
            raise unreadable(snapshot.home, snapshot.name, [f"{name} is missing" for name in missing])
        if problems := unopenable(snapshot):
            raise SnapshotDamaged(snapshot.name, problems)
        self.snapshot = snapshot
        self._buffer_mib = buffer_mib
        self._open = ExitStack()
        self._folder = snapshot.path
        with damage_named(snapshot):
            self._places = Places(self._folder / "scopes.parquet")
        self.evidence = lru_cache(_KEPT_SCOPES)(self._read_evidence)
        self.topics = lru_cache(_KEPT_SCOPES)(self._read_topics)
        self.facts = lru_cache(_KEPT_SCOPES)(self._read_facts)
        self.homes = lru_cache(_KEPT_SCOPES)(self._read_homes)
        self.statements = lru_cache(_KEPT_SCOPES)(self._read_statements)
        self.past = lru_cache(_KEPT_PASTS)(self._read_past)
        self.cached_facts = FactsCache()
        self._derived: Callable[..., Any] = lru_cache(_KEPT_DERIVED)(
            lambda make, *args, **named: make(self, *args, **named)
        )
        self._array = cache(self._map_array)
        self._words = cache(self._map_words)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()
        if isinstance(error, Exception) and (gone := self._gone(error)):
            raise gone from error

    def _gone(self, error: Exception) -> MemstateError | None:
        """The cause of an error if the snapshot, or its shard, left this machine while it was read."""
        if isinstance(error, MemstateError) and not isinstance(error, SnapshotDamaged):
            return None
        if self.snapshot.is_removed():
            return SnapshotRemoved(self.name)
        is_absent = self.snapshot.manifest.shard in absent_shards(self.snapshot.home)
        return SnapshotAbsent(self.name) if is_absent else None

    def clear_caches(self) -> None:
        """Lets go of all that was read; there must be no reads in progress."""
        for own in vars(self).values():
            if hasattr(own, "cache_clear"):
                own.cache_clear()
        self.cached_facts.clear()

    @property
    def name(self) -> str:
        """How answers name the snapshot: `<shard>/<n>`."""
        return self.snapshot.name

    @property
    def scopes(self) -> list[str]:
        """Every scope in the snapshot, sorted."""
        return self._places.scopes

    @cached_property
    def graph(self) -> Graph:
        """The published graph, opened read-only on first use; reading a damaged one raises `SnapshotDamaged`."""
        path = self._folder / GRAPH_FILE
        opened = open_graph(
            path, read_only=True, buffer_mib=self._buffer_mib, reading=partial(damage_named, self.snapshot)
        )
        with damage_named(self.snapshot):
            return self._open.enter_context(opened)

    @cached_property
    def aliases(self) -> pl.DataFrame:
        """Other ids by which topics are known (columns ALIASES)."""
        name = "aliases.parquet"
        return pl.read_parquet(self._folder / name, glob=False) if self.snapshot.has(name) else empty(ALIASES)

    @cached_property
    def _fact_places(self) -> Places | None:
        name = f"{FOLDER}/places.parquet"
        return Places(self._folder / name) if self.snapshot.has(name) else None

    @cached_property
    def notes(self) -> pl.LazyFrame:
        """What evidence notes about where it comes from (columns NOTES_INDEX); empty in snapshots without the file."""
        if not self.snapshot.has(NOTES_FILE):
            return empty(NOTES_INDEX).lazy()
        return pl.scan_parquet(self._folder / NOTES_FILE, glob=False)

    @property
    def compressed(self) -> pl.LazyFrame:
        """The revisions behind summaries (columns REVISIONS), sorted by topic."""
        if not self.snapshot.has(COMPRESSED_FILE):
            return empty(REVISIONS).lazy()
        return pl.scan_parquet(self._folder / COMPRESSED_FILE, glob=False)

    def all_evidence(self) -> pl.LazyFrame:
        """The evidence of every scope (columns EVIDENCE_INDEX)."""
        return pl.scan_parquet(self._folder / "evidence.parquet", glob=False)

    def derived(
        self, make: Callable[Concatenate[SnapshotReader, Asked], Made], *args: Asked.args, **named: Asked.kwargs
    ) -> Made:
        """What a function of a module makes of this snapshot and some arguments, cached: a snapshot does not change.

        Callers must not change what they get.
        """
        return cast(Made, self._derived(make, *args, **named))

    def count(self, scope: str, name: str) -> int:
        """How many rows a scope has in the file of that name: topic, evidence, or one of the tables of facts."""
        facts = self._fact_places
        places = facts if name in TABLES and facts is not None else self._places
        return int(places.of(scope, name)[1])

    def evidence_of(self, scopes: Iterable[str]) -> pl.LazyFrame:
        """The evidence of some scopes (columns EVIDENCE_INDEX); not cached."""
        places = [place for scope in scopes if (place := self._places.of(scope, "evidence"))[1]]
        whole = self.all_evidence()
        return pl.concat([whole.slice(*place) for place in places]) if places else whole.clear()

    def _read_evidence(self, scope: str) -> EvidenceSlice:
        first, count = self._places.of(scope, "evidence")
        frame = self._rows("evidence.parquet", (first, count))
        absent = [pl.lit(None, kind).alias(name) for name, kind in EVIDENCE_INDEX.items() if name not in frame.columns]
        frame = frame.with_columns(absent) if absent else frame
        rows = frame["vector_row"]
        known = rows.drop_nulls().to_numpy()
        low, high = (int(known.min()), int(known.max()) + 1) if len(known) else (0, 0)
        return EvidenceSlice(
            frame,
            self._array("evidence_vectors")[low:high],
            (rows - low).fill_null(-1).to_numpy(),
            self._array("windows")[first : first + count],
            self._array("window_lengths")[first : first + count],
            ScopeTerms(self._words("evidence"), *self._places.of(scope, "evidence_term"), count),
        )

    def _read_topics(self, scope: str) -> TopicSlice:
        first, count = self._places.of(scope, "topic")
        return TopicSlice(
            self._rows("topics.parquet", (first, count)),
            self._array("topic_vectors")[first : first + count],
            ScopeTerms(self._words("topics"), *self._places.of(scope, "topic_term"), count),
            np.arange(count),
        )

    def _read_homes(self, scope: str) -> Rows:
        """For each row of evidence, the row of its topic among the served ones, -1 without one."""
        return places_of(self.evidence(scope).frame["topic_id"], self.topics(scope).frame["id"])

    def _read_facts(self, scope: str) -> ScopeFacts | None:
        """The current facts of a scope by table (`index.facts_files`); edges that were valid at publication."""
        if self._fact_places is None:
            return None
        places = {name: self._fact_places.of(scope, name) for name in TABLES}
        rows = {name: self._rows(f"{FOLDER}/{name}.parquet", place) for name, place in places.items()}
        now = self.snapshot.manifest.now
        rows["edges"] = rows["edges"].filter(valid_at(now)).select(*EDGES)
        if not (later := ahead(rows["revisions"], now)).is_empty():
            within = rows["revisions"].drop("scope")
            rows["revisions"] = in_force_of(self.graph, self.compressed, within, now)
        return ScopeFacts(rows, later)

    def _read_statements(self, scope: str) -> Statements:
        """What the evidence of a scope states; nothing in snapshots of earlier versions."""
        facts, places, evidence = self.facts(scope), self._fact_places, self.evidence(scope).frame["evidence_id"]
        if facts is None or places is None or not self.snapshot.has(SUPERSEDED_FILE):
            return statements(empty(SUPERSEDED), empty(REVISIONS), evidence)
        earlier, revisions = self._rows(SUPERSEDED_FILE, places.of(scope, "superseded")), facts.tables["revisions"]
        if facts.later.height:
            histories = field_histories(self.graph, self.compressed, facts.later)
            earlier = superseded_in_force(earlier, histories, revisions, self.snapshot.manifest.now)
        return statements(earlier, revisions, evidence)

    def _rows(self, name: str, place: Place) -> pl.DataFrame:
        with damage_named(self.snapshot):
            return read_rows(self._folder / name, place)

    @cached_property
    def _ledger(self) -> Ledger:
        """The ledger beside the snapshots; its digests are compared, since no run has just done so."""
        from memstate_core.state.ledger.ledger import Ledger

        if self.snapshot.home.replica.exists():
            raise NotOnReplica("has no ledger, so it does not answer as of a past time", writer_of(self.snapshot.home))
        return Ledger(self.snapshot.home.ledger, checked=True)

    def _read_past(self, scope: str, moment: datetime) -> Past:
        from memstate_core.retrieve.past import read_past  # folds the ledger: what most questions do without

        return read_past(self._ledger, self.snapshot.manifest, self.graph, self.evidence(scope).frame, scope, moment)

    def _map_array(self, name: str) -> Any:
        return read_array(self._folder / f"{name}.npy")

    def _map_words(self, name: str) -> Postings:
        return Postings(self._folder / "lexical" / name)


def served_model(readers: Iterable[SnapshotReader]) -> str:
    """The embedding model on record of the newest of some snapshots, by which their questions are encoded."""
    return max((reader.snapshot.manifest for reader in readers), key=lambda each: each.now).embedding_model
