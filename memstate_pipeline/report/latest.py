"""The pages of nights that were written last."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from memstate_core.run.store import Store
from memstate_pipeline.report.index import PAGES, newest_first, nights


def latest_report(folder: Path, shard: str | None = None) -> Path | None:
    """The page of the last night, of a shard or of all, or None if there is none; corrections hide no night."""
    return next(iter(nights(newest_first(folder, PAGES if shard is None else f"*-{shard}.html"))), None)


def last_failure(store: Store) -> dict[str, Any] | None:
    """The failure of the last night of a shard, if it failed: run_id, shard, now, error (type, message), page.

    If the last nights of several shards failed, the first of them.
    """
    for shard in store.shards:
        page = latest_report(store.home.reports, shard)
        try:
            document = {} if page is None else json.loads(page.with_suffix(".json").read_text())
        except (OSError, ValueError):
            continue
        if "error" in document:
            return {name: document[name] for name in ("run_id", "shard", "now", "error")} | {"page": str(page)}
    return None
