"""What the ledger records of the shards of a store, read once for all of them.

Tables are shared by shards, so the versions of a table say nothing about one of them: the night of another shard
appends as well. Rows are compared instead.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import polars as pl

from memstate_core.model.errors import MemstateError
from memstate_core.revise.duplicates import BETWEEN_RUNS
from memstate_core.run.publications import decoded_manifest
from memstate_core.run.store import Store
from memstate_core.run.waiting import ASIDE, Waiting, waiting_evidence
from memstate_core.state.current import named_number
from memstate_core.state.fold.decisions import MATCH_MODEL, PUBLISHED
from memstate_core.state.fold.ladder_state import STEPS
from memstate_core.state.snapshots import Manifest, Snapshot, load_snapshot

_KINDS = {*ASIDE, *BETWEEN_RUNS, *STEPS, *STEPS.values(), MATCH_MODEL}
_COLUMNS = ("seq", "shard", "scope", "kind", "topic_id", "payload_json", "evidence_ids")


@dataclass(frozen=True)
class WrittenSince:
    """The served snapshots of a store, and what its ledger holds beside them.

    Attributes:
        store: the store.
        served: the snapshot that each shard serves; None where it serves none that can be read.
    """

    store: Store
    served: dict[str, Snapshot | None]
    _accessed: dict[int | None, pl.Series] = field(default_factory=dict)

    @classmethod
    def of(cls, store: Store) -> WrittenSince:
        """That of a store as it is now; the caller holds the store's lock."""
        return cls(store, {shard: _served(store, shard) for shard in store.shards})

    @cached_property
    def waiting(self) -> dict[str, Waiting]:
        """The evidence of each shard."""
        return waiting_evidence(self.store, self.served)

    @cached_property
    def decisions(self) -> pl.DataFrame:
        """Decisions about the ladder, duplicates and rows that were set aside, in order, those undone among them."""
        rows = self.store.ledger.scan("transitions").filter(pl.col("kind").is_in(_KINDS))
        return rows.select(_COLUMNS).sort("seq").collect()

    @cached_property
    def recorded(self) -> dict[str, Manifest]:
        """The manifest that the ledger recorded last for each shard."""
        rows = self.store.ledger.scan("transitions").filter(pl.col("kind") == PUBLISHED)
        last = rows.group_by("shard").agg(pl.col("payload_json").sort_by("seq").last()).collect()
        found = ((shard, decoded_manifest(payload)) for shard, payload in last.iter_rows())
        return {shard: manifest for shard, manifest in found if manifest is not None}

    def decided_since(self, shard: str) -> bool:
        """Whether a shard has decisions that the run which published last neither took nor saw."""
        mine = self._runs.filter(pl.col("shard") == shard).sort("last")
        published = mine.filter("published").tail(2)
        before = published["last"].head(published.height - 1).max() or 0
        others = mine.filter(pl.col("run_id") != (published["run_id"].last() or ""))
        return bool((others["last"] > before).any())

    @cached_property
    def _runs(self) -> pl.DataFrame:
        """The last decision of each run of each shard (columns shard, run_id, last, published)."""
        rows = self.store.ledger.scan("transitions").group_by("shard", "run_id")
        return rows.agg(last=pl.col("seq").max(), published=(pl.col("kind") == PUBLISHED).any()).collect()

    def accessed_since(self, version: int | None) -> pl.Series:
        """The ids of topics in accesses that a version of their table does not have."""
        if version not in self._accessed:
            self._accessed[version] = _accessed_since(self.store, version)
        return self._accessed[version]


def _accessed_since(store: Store, version: int | None) -> pl.Series:
    rows = store.ledger.since("accesses", version).select("access_id", "topic_id").collect()
    if version is not None and rows.height:  # files that were joined since hold older rows as well
        known = store.ledger.scan("accesses", version).select("access_id").collect()
        rows = rows.join(known, on="access_id", how="anti")
    return rows["topic_id"].unique()


def _served(store: Store, shard: str) -> Snapshot | None:
    try:
        number = named_number(store.home, shard)
        return None if number is None else load_snapshot(store.home, shard, number)
    except MemstateError:
        return None
