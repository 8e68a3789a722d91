"""The number of shards that the settings name, compared with the number that the store has.

The file of the layout says it once the number was changed (`memstate_core.state.layout`). Before that, what was
published says it: the shards that are served, and the scopes that their decisions are about.
"""

from __future__ import annotations

import os

import polars as pl

from memstate_core.model.errors import SettingsError
from memstate_core.model.scope import Layout
from memstate_core.policy.settings import FILE_NAME
from memstate_core.run.store import Store
from memstate_core.state.layout import first_shards, read_layout

VARIABLE = "MEMSTATE_STORE_SHARDS"


def other_count(store: Store) -> int | None:
    """The number of shards that the store has, if its settings name another one.

    A store of which nothing is published has none yet. The first night may have published only some of its shards.
    """
    named, count = store.settings.store.shards, store.layout.count
    if count == named and read_layout(store.home) is None:
        served = first_shards(store.home)
        return len(served) if 0 < len(served) < named and not _fits(store, served, Layout(named)) else None
    return None if count == named else count


def _fits(store: Store, shards: list[str], layout: Layout) -> bool:
    """Whether all scopes that some shards have decisions about are theirs in a layout."""
    mine = pl.col("shard").is_in(shards) & pl.col("scope").is_not_null()
    pairs = store.ledger.scan("transitions").filter(mine).select("shard", "scope").unique().collect()
    return bool((layout.of_each(pairs["scope"]) == pairs["shard"]).all())


def require_layout(store: Store) -> None:
    """Refuses settings with another number of shards than the store has.

    Raises:
        SettingsError: they have.
    """
    count, named = None if store.becoming else other_count(store), store.settings.store.shards
    if count is not None:
        source = VARIABLE if VARIABLE in os.environ else str(store.home.root / FILE_NAME)
        has = f"the store has {count} shard{'s' * (count != 1)}"
        advice = f"set it back, then `memstate reshard {named}` changes that"
        raise SettingsError(source, "store.shards", named, f"{has}; {advice}")
