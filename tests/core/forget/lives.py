"""A small store over several nights: observations, accesses and manual actions; every condition is checked each night.

The ledger, the graph and the model are real; nights look for no duplicates.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from memstate_core.embed.encoder import Encoder
from memstate_core.forget.ladder import forget
from memstate_core.forget.manual_actions import pin_decisions, restore_decisions
from memstate_core.forget.salience import update_salience
from memstate_core.ingest.accesses.collect import collect_accesses
from memstate_core.ingest.accesses.journal import AccessJournal
from memstate_core.ingest.importer import import_paths
from memstate_core.model.ids import key_id
from memstate_core.model.text import iso
from memstate_core.night.checks.suite import conditions
from memstate_core.night.corrections import correct
from memstate_core.night.placements import place
from memstate_core.night.publish import publish
from memstate_core.night.rebuild import fold_recorded
from memstate_core.policy.settings import Policy, Settings, StoreSettings
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.retrieve.views.topic import topic_record
from memstate_core.revise.dependency import queue_reviews
from memstate_core.revise.undo import undo_decisions
from memstate_core.revise.verdicts import verdict_decisions
from memstate_core.run.apply import update_topics
from memstate_core.run.begin import begin_run, new_evidence
from memstate_core.run.embed_topics import refresh_embeddings
from memstate_core.run.run import Run
from memstate_core.run.served_state import Served, read_served
from memstate_core.run.store import Store
from memstate_core.state.graph import EDGE, FIELD, TOPIC, Table, open_graph
from memstate_core.state.home import Home
from tests.core.strategies import day

AYA = "user:aya"
FAST = {"salience_half_life_days": 1.0, "topic_count_soft_limit": 1}
"""Everything fades within days, and any topic is pressure."""
KEPT = {"summary_keep_revisions": 2}


@cache
def encoder() -> Encoder:
    return Encoder(Settings().embedding.model, 64)


def topic_id(key: str, scope: str = AYA) -> str:
    """The id of the topic with this key."""
    return str(pl.select(key_id(pl.lit(scope), pl.lit(key))).item())


def owner(value: Any, **more: Any) -> dict[str, Any]:
    """The content of an observation that names an owner."""
    return {"fields": [{"name": "owner", "value": value}]} | more


class Life:
    """One store; topics go by their keys."""

    def __init__(self, root: Path, *, shards: int = 1, **policy: Any) -> None:
        self.home = Home(root)
        self.shards, self._imports, self._runs = shards, 0, 0
        self.under(**policy)

    def under(self, **policy: Any) -> None:
        """Switches to another policy."""
        settings = Settings(policy=Policy(**FAST | policy), store=StoreSettings(shards=self.shards))
        self.store = Store(self.home, settings)
        vars(self.store)["encoder"] = encoder()

    # What happens

    def says(self, at: float, said: dict[str, dict[str, Any]], scope: str = AYA, imported: float | None = None) -> None:
        """Imports one observation for each key, observed on a day and imported on that day or later.

        Content with a placement names a topic of its own, which has no key.
        """
        kind, name = scope.split(":")
        rows = [
            {"scope": {"type": kind, "id": name}, "observed_at": iso(day(at)), **content}
            | ({} if "placement" in content else {"topic_key": key})
            for key, content in said.items()
        ]
        self._imports += 1
        path = self.home.root / f"dump-{self._imports}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        now = day(at if imported is None else imported)
        assert import_paths(self.store.ledger, self.store.settings, [path], now=now, run_id=path.stem).quarantined == 0

    def accesses(self, at: float, *names: str, scope: str = AYA, **more: Any) -> None:
        """Records accesses of topics, by key or id."""
        self._runs += 1
        with AccessJournal(self.home.accesses, f"uses-{self._runs}") as journal:
            for name in names:
                known = name if "-" in name else topic_id(name, scope)
                journal.record(known, day(at), "test", **more)

    def begun(self, at: float, shard: str = "s0") -> tuple[Run, pl.DataFrame]:
        """A run up to the salience step, and its new evidence."""
        self._runs += 1
        collect_accesses(self.home, self.store.ledger, self.store.settings, day(at), f"night-{self._runs}")
        run = begin_run(self.store, shard, f"night-{self._runs}", day(at))
        new = new_evidence(self.store, run).frame
        run.keep("placements", place(self.store, run, new), 0.0)
        topics = update_topics(self.store, run)
        run.keep("topics", topics, 0.0)
        refresh_embeddings(self.store, run)
        run.keep("dependency_review", queue_reviews(run, topics.frame), 0.0)
        update_salience(run)
        return run, new

    def night(self, at: float) -> dict[str, int]:
        """A nightly run of every shard; returns the non-zero counts of steps."""
        counted: dict[str, int] = {}
        for shard in self.store.shards:
            run, new = self.begun(at, shard)
            result = forget(self.store, run, new)
            run.keep("forgetting", result, 0.0)
            self.ended(run)
            for name, count in result.counts.items():
                counted[name] = counted.get(name, 0) + int(count)
        return {name: count for name, count in counted.items() if count}

    def ended(self, run: Run) -> None:
        """The conditions, as the run checks them, and publication."""
        failed = {name: check.violations.rows() for name, check in self.checked(run).items() if not check.passed}
        assert not failed, failed
        publish(self.store, run)
        run.end()

    def checked(self, run: Run) -> dict[str, Any]:
        return dict(conditions(self.store, run))

    # Manual actions

    def decides(self, rows: pl.DataFrame | None, at: float) -> str:
        """Publishes decisions; returns the state hash."""
        assert rows is not None
        self._runs += 1
        return correct(self.store, "s0", f"correction-{self._runs}", day(at), rows, "corrected").manifest.state_hash

    def restores(self, key: str, at: float) -> str:
        return self.decides(restore_decisions(self.served(), [topic_id(key)], "a person", day(at)), at)

    def undoes(self, key: str, at: float) -> str:
        return self.decides(undo_decisions(self.served(), topic_id(key)), at)

    def merges(self, a: str, b: str, at: float) -> str:
        return self.decides(verdict_decisions(self.served(), [(topic_id(a), topic_id(b), "same")]), at)

    def pins(self, key: str, at: float, *, on: bool = True) -> str:
        return self.decides(pin_decisions(self.served(), [topic_id(key)], on=on), at)

    # State

    def served(self, shard: str = "s0") -> Served:
        return read_served(self.store)[shard]

    def state_hash(self) -> str:
        return self.served().snapshot.manifest.state_hash

    def rebuilt(self, folder: Path) -> str:
        """The state hash of the ledger folded again."""
        return fold_recorded(self.store, "s0", folder, "check").state_hash

    def read(self, table: Table, columns: list[str] | None = None, where: str = "", shard: str = "s0") -> pl.DataFrame:
        with open_graph(self.served(shard).snapshot.path / "graph.kuzu", read_only=True, buffer_mib=64) as graph:
            return graph.read(table, columns, where)

    def states(self, *keys: str, scope: str = AYA, shard: str = "s0") -> list[str]:
        """The states of topics with these keys."""
        found = dict(self.read(TOPIC, ["id", "state"], shard=shard).iter_rows())
        return [found[topic_id(key, scope)] for key in keys]

    def record(self, key: str, **asked: Any) -> dict[str, Any]:
        """A topic record."""
        with ExitStack() as stack:
            readers = [
                stack.enter_context(SnapshotReader(shard.snapshot)) for shard in read_served(self.store).values()
            ]
            return topic_record(readers, topic_id(key), **asked)

    def detached(self, shard: str = "s0") -> list[str]:
        """Names of detached fields and kinds of detached edges."""
        fields = self.read(FIELD, ["name"], "r.detached = true", shard)["name"]
        links = self.read(EDGE, ["kind"], "r.detached = true", shard)["kind"]
        return sorted([*fields, *links])

    def decided(self, *kinds: str) -> list[dict[str, Any]]:
        """Recorded decisions of some kinds, in order."""
        rows = self.store.ledger.scan("transitions").filter(pl.col("kind").is_in(kinds)).collect().sort("seq")
        return rows.to_dicts()


def begun(root: Path, **policy: Any) -> Life:
    """`acme` has a history of six owners, `boat` mentions it, `cat` is part of `boat`; all of it on day 0."""
    life = Life(root, **KEPT | policy)
    for hour in range(5):
        life.says(hour / 100, {"acme": owner(f"owner {hour}")})
    life.says(0.1, {
        "acme": owner("Aya", title="Acme renewal"),
        "boat": owner("Ben", edges=[{"to_topic_key": "acme", "kind": "mentions"}]),
        "cat": {"title": "Cat food", "edges": [{"to_topic_key": "boat", "kind": "part_of"}]},
    })  # fmt: skip
    return life
