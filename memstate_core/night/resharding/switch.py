"""Switches a store to new shards, and completes a switch that was interrupted.

The order is: CURRENT of each new shard, which nobody reads yet; one commit of the ledger with all their publications;
the file that names the layout, by which all readers switch; the settings; then the marker goes. The commit decides: a
change that was killed before it left the old shards, and one that was killed after it is completed by the next command
that writes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import polars as pl
from msgspec import Struct
from msgspec import json as msgjson

from memstate_core.model.errors import SettingsError
from memstate_core.model.frames import conform, project
from memstate_core.model.ledger_tables import DECISION, TRANSITIONS
from memstate_core.model.scope import Layout
from memstate_core.night.backup.capture import no_capture
from memstate_core.night.resharding.drafts import NUMBER, own_decisions
from memstate_core.night.resharding.inputs import Inputs
from memstate_core.policy.settings import FILE_NAME, Policy
from memstate_core.policy.toml_edit import with_keys
from memstate_core.run.shard_count import VARIABLE
from memstate_core.run.store import Store
from memstate_core.state.current import move_current
from memstate_core.state.files import replace_file
from memstate_core.state.fold.decisions import PUBLISHED
from memstate_core.state.home import Home
from memstate_core.state.layout import read_layout, write_layout
from memstate_core.state.snapshots import Snapshot

_BATCH = "reshard"


class Begun(Struct, frozen=True):
    """The marker of a change that was begun: the layout that it makes."""

    shards: int
    number: int


def require_settings(environ: Mapping[str, str]) -> None:
    """Refuses an environment that names a number of shards, which the settings file could not change.

    Raises:
        SettingsError: it does.
    """
    if VARIABLE in environ:
        allowed = "memstate reshard sets the number in memstate.toml, which this variable overrides; unset it first"
        raise SettingsError(VARIABLE, "store.shards", environ[VARIABLE], allowed)


def mark(home: Home, layout: Layout) -> None:
    """Records that a change has begun, durably."""
    replace_file(home.begun_reshard, msgjson.encode(Begun(layout.count, layout.number)))


def switch(store: Store, given: Inputs, made: Sequence[Snapshot]) -> None:
    """Publishes new shards at once and serves them.

    Args:
        store: the store, locked.
        given: the inputs of the new shards.
        made: their snapshots, verified.

    Raises:
        StoreLocked: a backup is in progress, or an import held the ledger's lock for too long; nothing was switched.
    """
    holder = f"process {os.getpid()} (memstate reshard)"
    with no_capture(store.home, holder):
        for snapshot in made:
            move_current(store.home, snapshot.manifest.shard, NUMBER)
        with store.ledger.writing(holder):
            last = store.ledger.scan("transitions").select(pl.col("seq").max()).collect().item()
            rows = _transitions(given, made, 0 if last is None else last + 1)
            store.ledger.append("transitions", rows, _BATCH, given.layout.number)
        _complete(store.home, given.layout)


def complete_switch(store: Store) -> bool:
    """Completes a switch that the ledger records, and returns whether there was one; the caller holds the lock."""
    home = store.home
    if not home.begun_reshard.exists():
        return False
    begun = msgjson.decode(home.begun_reshard.read_bytes(), type=Begun)
    layout, known = Layout(begun.shards, begun.number), read_layout(home)
    with store.ledger.writing(f"process {os.getpid()} (completing a change of the number of shards)"):
        pass  # a killed writer's last commit is completed, or set aside
    published = (pl.col("kind") == PUBLISHED) & (pl.col("shard") == layout.names[0])
    recorded = store.ledger.scan("transitions").filter(published).select("seq").head(1).collect()
    if not recorded.height or (known is not None and known.number > layout.number):
        return False
    _complete(home, layout)
    return True


def _complete(home: Home, layout: Layout) -> None:
    write_layout(home, layout)
    path = home.root / FILE_NAME
    settings = with_keys(path, "store", {"shards": layout.count})
    replace_file(path, settings)
    home.begun_reshard.unlink(missing_ok=True)


def _transitions(given: Inputs, made: Sequence[Snapshot], first: int) -> pl.DataFrame:
    """What the ledger records of all new shards (columns TRANSITIONS), numbered from `first`."""
    rows = []
    for snapshot in made:
        own = pl.concat([own_decisions(given, snapshot.manifest.shard), _published(snapshot)])
        rows.append(own.with_columns(shard=pl.lit(snapshot.manifest.shard)))
    every = pl.concat(rows)
    return conform(
        every.with_columns(
            seq=pl.int_range(first, first + pl.len(), dtype=pl.Int64),
            run_id=pl.lit(given.pinned.run_id),
            at=pl.lit(given.pinned.now),
            policy=pl.lit(Policy.recorded(given.pinned.policy).digest()),
        ),
        TRANSITIONS,
    )


def _published(snapshot: Snapshot) -> pl.DataFrame:
    row = {
        "kind": PUBLISHED,
        "payload_json": msgjson.encode(snapshot.manifest).decode(),
        "evidence_ids": [],
        "reason": "all checks passed",
    }
    frame = pl.DataFrame([row], schema_overrides={"evidence_ids": pl.List(pl.String)})
    return project(frame, DECISION, nulls=("scope", "topic_id"))
