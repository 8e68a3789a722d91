"""The file that says how the scopes of a store are divided among shards, once their number was changed.

A store whose number of shards never changed has no such file. It has the shards that are served, and begins with as
many as its settings say. Readers look at the file each time, so that replacing it switches all of them at once.
"""

from __future__ import annotations

import shutil

from msgspec import Struct
from msgspec import json as msgjson

from memstate_core.model.scope import Layout, is_shard, resharded
from memstate_core.state.files import make_folder, replace_file
from memstate_core.state.home import Home


class _File(Struct, frozen=True):
    shards: int
    number: int


def read_layout(home: Home) -> Layout | None:
    """The layout on record; None where the number of shards never changed."""
    try:
        found = msgjson.decode(home.layout.read_bytes(), type=_File)
    except FileNotFoundError:
        return None
    return Layout(found.shards, found.number)


def layout_now(home: Home, named: int) -> Layout:
    """The layout on record, else that of a store as it began.

    Args:
        home: the home.
        named: the number of shards in the settings, which counts unless more shards are served.
    """
    return read_layout(home) or Layout(max([named, *(int(shard[1:]) + 1 for shard in first_shards(home))]))


def first_shards(home: Home) -> list[str]:
    """The names of shards of a store as it began of which something is served."""
    found = (path.parent.name for path in home.layout.parent.glob("s*/CURRENT"))
    return sorted(name for name in found if is_shard(name) and not any(resharded(name)))


def write_layout(home: Home, layout: Layout) -> None:
    """Puts a layout on record, in one step that survives a power cut."""
    make_folder(home.layout.parent)
    replace_file(home.layout, msgjson.encode(_File(layout.count, layout.number)))


def retired_shards(home: Home, layout: Layout) -> list[str]:
    """The names of shards with snapshots here that are none of a layout: earlier ones, and what was not completed."""
    folder, served = home.layout.parent, set(layout.names)
    found = (path.name for path in folder.iterdir()) if folder.is_dir() else ()
    return sorted(name for name in found if is_shard(name) and name not in served)


def remove_retired(home: Home, layout: Layout) -> None:
    """Removes the snapshots and the scratch of shards that are none of a layout; the caller holds the store's lock."""
    for shard in retired_shards(home, layout):
        shutil.rmtree(home.work(shard), ignore_errors=True)
        shutil.rmtree(home.snapshots(shard))
