"""Rewriting the ledger without some rows, so that no byte of them is left, nor of the log that named them.

Every version of a table keeps its number and its other rows, since snapshots and transaction ids refer to them: each
data file, of older versions too, is written again without the rows, and each commit names the new files. Statistics,
checkpoints and files that no commit names are not carried over. Files that a vacuum removed stay away; their commits
name them as before. The chain begins anew, and keeps the records that an earlier one was lost.

Invariant: the new tables are complete and flushed before their folder is called `rewritten`; from then on the next
writer completes the exchange, whatever happens (`complete_rewrite`).
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import polars as pl
from msgspec import json as msgjson

from memstate_core.model.frames import Schema, conform
from memstate_core.state.files import link_or_copy, make_folder, replace_file, sync_path
from memstate_core.state.ledger.chain import CHAIN, beginning_line, read_chain
from memstate_core.state.ledger.commits import LOG, version_of

Change = Callable[[pl.DataFrame], pl.DataFrame]
"""The rows of a data file as they shall be; the same frame where nothing changes."""
REWRITTEN = "rewritten"
_DRAFT = "rewritten.part"
_BATCH_IDS = ("evidence/", "quarantine/")
"""Transaction ids that are made of the ids of rows; the rows themselves say whether a batch is known."""


def rewrite(root: Path, tables: Mapping[str, Schema], changes: Mapping[str, Change]) -> None:
    """Rewrites tables and exchanges them; the caller holds the ledger's lock and then records the chain anew.

    Args:
        root: the folder of the ledger.
        tables: the columns of all tables.
        changes: what becomes of the rows of each table; tables that are not named stay as they are.

    Raises:
        OSError: the new tables could not be written; the old ones stay.
    """
    draft = root / _DRAFT
    shutil.rmtree(draft, ignore_errors=True)
    make_folder(draft)
    for table, schema in tables.items():
        if (root / table / LOG).is_dir():
            _rewrite_table(root / table, draft / table, schema, changes.get(table, _same))
    sync_path(draft)
    draft.rename(root / REWRITTEN)
    sync_path(root)
    complete_rewrite(root)


def complete_rewrite(root: Path) -> bool:
    """Completes an exchange of tables that a killed process began, and returns whether there was one."""
    shutil.rmtree(root / _DRAFT, ignore_errors=True)
    rewritten = root / REWRITTEN
    if not rewritten.is_dir():
        return False
    for folder in sorted(rewritten.iterdir()):
        shutil.rmtree(root / folder.name, ignore_errors=True)
        folder.rename(root / folder.name)
        sync_path(root)
    if begun := read_chain(root).begun:
        replace_file(root / CHAIN, beginning_line(begun) + b"\n")
    else:
        (root / CHAIN).unlink(missing_ok=True)
    rewritten.rmdir()
    sync_path(root)
    return True


def _same(rows: pl.DataFrame) -> pl.DataFrame:
    return rows


def _rewrite_table(old: Path, new: Path, schema: Schema, change: Change) -> None:
    make_folder(new / LOG)
    changed: dict[str, tuple[str, int, int]] = {}
    for commit in sorted(path for path in (old / LOG).iterdir() if version_of(path.name) is not None):
        actions = [msgjson.decode(line) for line in commit.read_bytes().splitlines()]
        for name in (unquote(action["add"]["path"]) for action in actions if "add" in action):
            if name not in changed and (old / name).exists():
                changed[name] = _rewrite_file(old, new, name, schema, change)
        lines = [msgjson.encode(kept) for action in actions if (kept := _action(action, changed)) is not None]
        (new / LOG / commit.name).write_bytes(b"\n".join(lines) + b"\n")
    for path in [*new.rglob("*"), new]:
        sync_path(path)


def _rewrite_file(old: Path, new: Path, name: str, schema: Schema, change: Change) -> tuple[str, int, int]:
    """Writes a data file again and returns its name, size and rows; a link to the old one if nothing changes."""
    rows = conform(pl.read_parquet(old / name, glob=False), schema)
    kept = change(rows)
    same = kept is rows or kept.equals(rows)
    target = new / (name if same else f"erased-{name.removeprefix('erased-')}")
    make_folder(target.parent)
    if same:
        link_or_copy(old / name, target)
    else:
        conform(kept, schema).write_parquet(target, compression="snappy")
    return str(target.relative_to(new)), target.stat().st_size, kept.height


def _action(action: dict[str, Any], changed: Mapping[str, tuple[str, int, int]]) -> dict[str, Any] | None:
    """An action of a commit with the new files; None for one that must not be carried over."""
    kept = action.get("add") or action.get("remove")
    if kept is not None and unquote(kept["path"]) not in changed:  # a vacuum removed the file
        return {kind: {**kept, "stats": None} if kind == "add" else kept for kind in action}
    if "add" in action:
        name, size, rows = changed[unquote(action["add"]["path"])]
        stats = msgjson.encode({"numRecords": rows}).decode()
        return {"add": {**action["add"], "path": quote(name), "size": size, "stats": stats}}
    if "remove" in action:
        name, size, _ = changed[unquote(action["remove"]["path"])]
        return {"remove": {**action["remove"], "path": quote(name), "size": size}}
    if str(action.get("txn", {}).get("appId", "")).startswith(_BATCH_IDS):
        return None
    return action
