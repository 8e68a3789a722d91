"""Damage done to a copy of a store, with corrected digests, so that only a check can find it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
from deltalake import write_deltalake

from memstate_core.model.ledger_tables import TRANSITIONS
from memstate_core.policy.settings import Policy
from memstate_core.run.run import GRAPH_FILE
from memstate_core.run.store import Store, open_store
from memstate_core.state.current import current_snapshot
from memstate_core.state.graph import EDGE, Graph, open_graph
from memstate_core.state.snapshots import MANIFEST, file_digests
from memstate_core.state.state_hash import state_hash

BUFFER_MIB = 64
Damage = Callable[["Home"], None]


class Home:
    """A copy of the store that may be damaged."""

    def __init__(self, root: Path) -> None:
        self.store: Store = open_store(root, {})
        snapshot = current_snapshot(self.store.home, "s0")
        assert snapshot is not None
        self.snapshot = snapshot

    @property
    def served(self) -> Path:
        return self.snapshot.path

    def graph(self, how: Callable[[Graph], None]) -> None:
        """Changes the served graph, and the manifest with it, in the snapshot and in the ledger."""
        with open_graph(self.served / GRAPH_FILE, buffer_mib=BUFFER_MIB) as graph:
            how(graph)
        self.seal()

    def file(self, name: str, how: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
        """Changes a Parquet file of the snapshot, and the manifest with it."""
        how(pl.read_parquet(self.served / name)).write_parquet(self.served / name)
        self.seal()

    def ledger(self, table: str, how: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
        """Changes rows of a table of the ledger; versions that the manifest names move along."""
        rows = how(self.store.ledger.scan(table).collect())
        write_deltalake(str(self.store.ledger.root / table), rows, mode="overwrite")
        version = self.store.ledger.version(table)
        self.manifest(
            lambda manifest: {**manifest, f"{table}_version": version} if table != "transitions" else manifest
        )

    def manifest(self, how: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """Changes the manifest, in the snapshot and in the ledger's record of it."""
        path = self.served / MANIFEST
        text = json.dumps(how(json.loads(path.read_text())))
        path.write_text(text)
        mark = (pl.col("kind") == "published") & (pl.col("seq") == pl.col("seq").max())
        rows = self.store.ledger.scan("transitions").collect()
        rows = rows.with_columns(payload_json=pl.when(mark).then(pl.lit(text)).otherwise("payload_json"))
        write_deltalake(str(self.store.ledger.root / "transitions"), rows, mode="overwrite")

    def seal(self) -> None:
        """Makes digests, state hash and facts those of the current files."""
        with open_graph(self.served / GRAPH_FILE, read_only=True, buffer_mib=BUFFER_MIB) as graph:
            hashed = state_hash(graph)
        files = file_digests(self.served)
        self.manifest(lambda manifest: {**manifest, "state_hash": hashed, "files": files})


# Kinds of damage


def update(table: Any, where: str, **values: Any) -> Damage:
    """Sets columns of the rows of the graph for which a condition holds."""

    def how(graph: Graph) -> None:
        rows = graph.read(table, where=where)
        assert rows.height, where
        changed = rows.with_columns(**{name: pl.lit(value, table.schema[name]) for name, value in values.items()})
        if table is EDGE:
            graph.sync(EDGE, pl.concat([graph.read(EDGE).join(rows, on=EDGE.key, how="anti"), changed]))
        else:
            graph.update(table, changed.select("id", *values))

    return lambda home: home.graph(how)


def delete(table: Any, where: str) -> Damage:
    """Deletes the rows of the graph for which a condition holds."""

    def how(graph: Graph) -> None:
        rows = graph.read(table, where=where)
        assert rows.height, where
        graph.delete(table, rows.select(table.key))

    return lambda home: home.graph(how)


def insert(table: Any, **values: Any) -> Damage:
    """Adds a row to the graph; columns that are not named are null."""
    row = {name: pl.Series(name, [values.get(name)], dtype) for name, dtype in table.schema.items()}
    return lambda home: home.graph(lambda graph: graph.insert(table, pl.DataFrame(row)))


def decide(
    kind: str,
    topic: str,
    scope: str,
    payload: dict[str, Any],
    *,
    first: bool = False,
    evidence: list[str] | None = None,
) -> Damage:
    """Adds a decision to those of the last run, or before all others, in the ledger."""

    def how(rows: pl.DataFrame) -> pl.DataFrame:
        ordered = rows.sort("seq")
        near = ordered.head(1) if first else ordered.tail(1)
        row = near.with_columns(
            kind=pl.lit(kind),
            topic_id=pl.lit(topic),
            scope=pl.lit(scope),
            payload_json=pl.lit(json.dumps(payload)),
            evidence_ids=pl.lit(evidence, pl.List(pl.String)),
        )
        parts = [row, ordered] if first else [ordered.head(-1), row, near]
        return pl.concat(parts).with_columns(seq=pl.int_range(pl.len(), dtype=pl.Int64)).select(TRANSITIONS.keys())

    return lambda home: home.ledger("transitions", how)


def forget(where: pl.Expr) -> Damage:
    """Deletes decisions from the ledger; the numbers of later ones close the gap."""

    def how(rows: pl.DataFrame) -> pl.DataFrame:
        left = rows.filter(~where).sort("seq")
        assert left.height < rows.height
        return left.with_columns(seq=pl.int_range(pl.len(), dtype=pl.Int64))

    return lambda home: home.ledger("transitions", how)


def rewrite(where: pl.Expr, **payload: Any) -> Damage:
    """Changes members of the payloads of recorded decisions."""

    def how(rows: pl.DataFrame) -> pl.DataFrame:
        changed = [
            json.dumps({**json.loads(text or "{}"), **payload}) if hit else text
            for text, hit in zip(rows["payload_json"], rows.select(where.alias("hit"))["hit"], strict=True)
        ]
        return rows.with_columns(payload_json=pl.Series(changed, dtype=pl.String))

    return lambda home: home.ledger("transitions", how)


def both(*damages: Damage) -> Damage:
    """Several damages, one after another."""

    def how(home: Home) -> None:
        for damage in damages:
            damage(home)

    return how


def policy(**values: Any) -> Damage:
    """Another policy than the one under which the last run was made, wherever that is recorded."""

    def damage(home: Home) -> None:
        changed = Policy.model_validate({**home.snapshot.manifest.policy, **values})
        document, digest = changed.model_dump(mode="json"), changed.digest()
        run = pl.col("run_id") == home.snapshot.manifest.run_id
        home.ledger(
            "transitions",
            lambda rows: rows.with_columns(policy=pl.when(run).then(pl.lit(digest)).otherwise("policy")),
        )
        home.manifest(lambda manifest: {**manifest, "policy": document, "policy_hash": digest})

    return damage
