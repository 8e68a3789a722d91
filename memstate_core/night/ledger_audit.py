"""Audits the ledger: reads every byte and every row and compares them with the recorded digests.

A table is damaged if it cannot be read, if it is older than the version a snapshot was made of, or if a row
contradicts itself: a transition without its number, evidence or a refused row that does not match its SHA-256.
"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
from deltalake.exceptions import DeltaError

from memstate_core.model.quantity import quantity
from memstate_core.model.scope import scopes_of_shard
from memstate_core.run.store import Store
from memstate_core.state.fold.decisions import set_aside
from memstate_core.state.fold.rollbacks import in_effect
from memstate_core.state.fold.shard_history import of_shard
from memstate_core.state.ledger.ledger import TABLES
from memstate_core.state.snapshots import Manifest

_Problems = list[str]
UNREADABLE = (OSError, ValueError, RuntimeError, DeltaError, pl.exceptions.PolarsError, pl.exceptions.PanicException)
"""Exceptions that reading damaged files raises."""
_POLARS_HINT = " (set POLARS_VERBOSE"


def ledger_problems(store: Store, manifest: Manifest) -> _Problems:
    """The problems of the ledger's tables and of its chain; empty if they are intact.

    Args:
        store: the store.
        manifest: the manifest of the snapshot that was made from the ledger.
    """
    return table_problems(store, manifest) + store.ledger.chain.damage(manifest.ledger_head)


def table_problems(store: Store, manifest: Manifest | None) -> _Problems:
    """The problems that the rows show by themselves; digests of files are not compared.

    Args:
        store: the store.
        manifest: the manifest of the snapshot that was made from the ledger; None before the first one.
    """
    needed = {} if manifest is None else {
        "evidence": manifest.evidence_version, "accesses": manifest.accesses_version, "transitions": 0
    }  # fmt: skip
    found = {table: _table_problems(store, table, needed.get(table)) for table in TABLES}
    if manifest is not None and not found["evidence"] and not found["transitions"]:
        found["evidence"] = _missing_evidence(store, manifest)
    return [f"{table}: {problem}" for table, problems in found.items() for problem in problems]


def _table_problems(store: Store, table: str, needed: int | None) -> _Problems:
    folder = store.ledger.root / table
    try:
        version = store.ledger.version(table)
        if version is None:
            files = sorted(path.name for path in folder.glob("*.parquet")) if folder.exists() else []
            lost = [f"{len(files)} data files and no log of commits"] if files else []
            return lost or ([] if needed is None else [f"nothing is there, expected version {needed} or later"])
        if needed is not None and version < needed:
            return [f"its version is {version}, the snapshot was made of version {needed}"]
        rows = store.ledger.scan(table).collect()
    except UNREADABLE as error:
        reason = next(iter(str(error).splitlines()), "no reason").partition(_POLARS_HINT)[0]
        return [f"cannot be read: {type(error).__name__}: {reason}"]
    return _ROWS[table](rows)


def _missing_evidence(store: Store, manifest: Manifest) -> _Problems:
    """Whether the table holds as much evidence as the snapshot was made from."""
    if manifest.evidence_version is None:
        return []
    rows = store.ledger.scan("evidence", manifest.evidence_version).select("evidence_id", "scope").collect()
    own = scopes_of_shard(rows["scope"].unique(), manifest.shard, store.layout.count)
    rows = rows.filter(pl.col("scope").is_in(own.implode()))
    held, expected = rows.height, manifest.counts["evidence"]
    found = f"version {manifest.evidence_version} holds {quantity(held, 'rows')} of shard {manifest.shard}"
    aside = rows.filter(pl.col("evidence_id").is_in(_set_aside(store, manifest).implode())).height
    return [] if held - aside <= expected <= held else [f"{found}, the snapshot was made of {expected}"]


def _set_aside(store: Store, manifest: Manifest) -> pl.Series:
    """The rows of the shard that are set aside; some of them perhaps since the snapshot."""
    mine = of_shard(store.ledger.scan("transitions"), manifest.shard).sort("seq")
    return set_aside(in_effect(mine.select("seq", "kind", "payload_json", "evidence_ids").collect()))


def _evidence(rows: pl.DataFrame) -> _Problems:
    identity = pl.col("content_sha256").str.head(32)
    twice = rows.height - rows["evidence_id"].n_unique()
    unequal = rows.filter(pl.col("evidence_id").ne_missing(identity))
    problems = [f"{quantity(twice, 'duplicates')} among the rows"] if twice else []
    return problems + _first(unequal, "evidence_id", "with another id than the content gives")


def _transitions(rows: pl.DataFrame) -> _Problems:
    missing = rows.filter(pl.any_horizontal(pl.col("seq", "shard", "run_id", "kind", "at").is_null()))
    numbers = rows["seq"].drop_nulls().sort()
    gaps = numbers.len() - numbers.n_unique() + int((numbers.diff().drop_nulls() > 1).sum())
    problems = [f"{quantity(gaps, 'places')} where the numbers are not consecutive"] if gaps else []
    if numbers.len() and numbers[0] != 0:
        problems.append(f"the numbers begin with {numbers[0]}, not with 0")
    return problems + _first(missing, "seq", "without what every transition has")


def _accesses(rows: pl.DataFrame) -> _Problems:
    return _first(
        rows.filter(pl.any_horizontal(pl.col("access_id", "topic_id", "at").is_null())), "access_id", "not whole"
    )


def _quarantine(rows: pl.DataFrame) -> _Problems:
    return _first(rows.filter(pl.col("quarantine_id").is_null()), "quarantine_id", "not whole")


def _quarantine_actions(rows: pl.DataFrame) -> _Problems:
    missing = pl.any_horizontal(pl.col("quarantine_id", "action", "at").is_null())
    return _first(rows.filter(missing), "run_id", "not whole")


def _first(rows: pl.DataFrame, key: str, what: str) -> _Problems:
    return [f"{quantity(rows.height, 'rows')} {what}, first {rows[key][0]}"] if rows.height else []


_ROWS: dict[str, Callable[[pl.DataFrame], _Problems]] = {
    "evidence": _evidence,
    "transitions": _transitions,
    "accesses": _accesses,
    "quarantine": _quarantine,
    "quarantine_actions": _quarantine_actions,
}
