"""CURRENT: which published version of a shard is served.

Readers open what CURRENT names and need no lock. Where it names nothing that can be served (it is empty, garbage,
missing, or its folder is gone), readers fall back to the newest sound version that the ledger records as published,
with a warning; the next writer mends the file. `named_number` is strict, for those who look for damage. Snapshots that
are not on this machine (`absent`) are no damage, so nothing older is served in their place.
"""

from __future__ import annotations

import logging
from functools import lru_cache

import polars as pl
from deltalake.exceptions import DeltaError

from memstate_core.model.errors import SnapshotDamaged, StoreNotFound
from memstate_core.model.scope import layout_of
from memstate_core.state.absent import require_here
from memstate_core.state.damaged_shards import DamagedShards
from memstate_core.state.files import replace_file
from memstate_core.state.fold.decisions import PUBLISHED
from memstate_core.state.fold.rollbacks import ROLLED_BACK, in_effect
from memstate_core.state.home import Home
from memstate_core.state.ledger.ledger import Ledger
from memstate_core.state.snapshots import Snapshot, load_snapshot, numbers

_log = logging.getLogger("memstate.store")


def named_number(home: Home, shard: str) -> int | None:
    """The number that CURRENT names, or None before the first snapshot.

    Raises:
        SnapshotDamaged: CURRENT names no kept snapshot, or is missing beside kept ones.
    """
    text, read = b"", _current(home, shard)
    while read is not None:
        text, kept = read, numbers(home, shard)
        if text.isdigit() and text.isascii() and int(text) in kept:
            return int(text)
        if (read := _current(home, shard)) == text:  # otherwise a newer one was published meanwhile
            listed = ", ".join(map(str, kept)) or "none"
            raise SnapshotDamaged(
                shard, [f"CURRENT holds {text[:40]!r}, expected the number of a snapshot (kept: {listed})"]
            )
    if text or numbers(home, shard):
        raise SnapshotDamaged(shard, ["CURRENT is missing, though snapshots are kept"])
    return None


def _current(home: Home, shard: str) -> bytes | None:
    """What CURRENT holds; None without the file."""
    try:
        return (home.snapshots(shard) / "CURRENT").read_bytes().strip()
    except FileNotFoundError:
        return None


def current_number(home: Home, shard: str) -> int | None:
    """The number of the served version, or None before the first snapshot.

    Raises:
        SnapshotDamaged: CURRENT names no kept snapshot, and no published one is sound.
        SnapshotAbsent: CURRENT names none, and they are not on this machine.
    """
    try:
        return named_number(home, shard)
    except SnapshotDamaged as error:
        require_here(home, [shard])
        published = _published(home, shard).intersection(numbers(home, shard))
        found = _newest_sound(home, shard, tuple(sorted(published)), error.facts["problems"][0])
        if found is None and published:
            raise
        return found


def current_snapshot(home: Home, shard: str) -> Snapshot | None:
    """The served version of a shard, or None before the first one."""
    number = current_number(home, shard)
    while number is not None:
        try:
            return load_snapshot(home, shard, number)
        except SnapshotDamaged:
            replaced, number = number, current_number(home, shard)
            if number == replaced:  # otherwise it was removed after a newer one was published
                raise
    return None


def served(home: Home, shards: list[str]) -> list[Snapshot]:
    """The served version of each shard that has one.

    Raises:
        StoreNotFound: no shard has one.
    """
    found = [snapshot for shard in shards if (snapshot := current_snapshot(home, shard))]
    if not found:
        raise StoreNotFound(str(home.root))
    return found


def served_where_sound(home: Home, shards: list[str]) -> tuple[list[Snapshot], DamagedShards]:
    """The served version of each shard that has one whose manifest can be read, and the shards that are damaged."""
    found: list[Snapshot] = []
    damaged = DamagedShards(layout_of(shards))
    for shard in shards:
        try:
            snapshot = current_snapshot(home, shard)
        except SnapshotDamaged as error:
            damaged = damaged.plus(error)
        else:
            found += [snapshot] if snapshot else []
    return found, damaged


def move_current(home: Home, shard: str, number: int) -> None:
    """Points CURRENT at a version, in one step that survives a power cut."""
    replace_file(home.snapshots(shard) / "CURRENT", f"{number}\n".encode())


@lru_cache(maxsize=64)
def _newest_sound(home: Home, shard: str, published: tuple[int, ...], problem: str) -> int | None:
    """The newest version whose files are all as its manifest says; searched once, since versions never change."""
    for number in reversed(published):
        try:
            problems = load_snapshot(home, shard, number).damage()
        except SnapshotDamaged as error:
            problems = error.facts["problems"]
        if not problems:
            _log.warning("%s: %s; serving %s/%d, the newest sound snapshot", shard, problem, shard, number)
            return number
    return None


def _published(home: Home, shard: str) -> set[int]:
    """The numbers that the ledger records as published and not rolled back; all kept ones where it cannot be read."""
    number = pl.col("payload_json").str.json_path_match("$.number").cast(pl.Int64, strict=False)
    kinds = pl.col("kind").is_in([PUBLISHED, ROLLED_BACK])
    try:
        rows = in_effect(Ledger(home.ledger).scan("transitions").filter(pl.col("shard") == shard, kinds).collect())
        return set(rows.filter(pl.col("kind") == PUBLISHED).select(number).to_series().drop_nulls())
    except (OSError, ValueError, DeltaError, pl.exceptions.PolarsError):
        return set(numbers(home, shard))
