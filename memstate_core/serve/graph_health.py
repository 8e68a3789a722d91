"""Counts of what is served, from the per-scope row offsets of the snapshot."""

from __future__ import annotations

from typing import Any

from memstate_core.run.run import GRAPH_FILE
from memstate_core.serve.auth.principal import Principal
from memstate_core.serve.snapshots.generation import Generation

BACKEND = "kuzu"
COUNTED = {"topics": "topic", "fields": "fields", "edges": "edges", "evidence": "evidence"}
"""What is counted: active topics, their fields and edges as in default answers, and all evidence."""


def graph_health(generation: Generation, who: Principal) -> dict[str, Any]:
    """The state of the served graph, with counts if the caller may read any scope."""
    health: dict[str, Any] = {"status": "ok", "backend": BACKEND, "path": GRAPH_FILE}
    homes = [(reader, scope) for reader in generation.readers for scope in reader.scopes if who.sees(scope)]
    if not homes and not who.sees_all:
        return health
    counts = {name: sum(reader.count(scope, table) for reader, scope in homes) for name, table in COUNTED.items()}
    return health | {"snapshot": generation.snapshot, "counts": {"scopes": len(homes)} | counts}
