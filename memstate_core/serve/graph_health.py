"""How much is served, scope by scope, from the tables that say where each scope's rows lie."""

from __future__ import annotations

from typing import Any

from memstate_core.run.run import GRAPH_FILE
from memstate_core.serve.access.principal import Principal
from memstate_core.serve.snapshots.generation import Generation

BACKEND = "kuzu"
COUNTED = {"topics": "topic", "fields": "fields", "edges": "edges", "evidence": "evidence"}
"""What is counted: active topics, their fields and links as default answers give them, and all evidence."""


def graph_health(generation: Generation, who: Principal) -> dict[str, Any]:
    """That a graph is served; how much of it the caller sees, if anything."""
    told: dict[str, Any] = {"status": "ok", "backend": BACKEND, "path": GRAPH_FILE}
    homes = [(reader, scope) for reader in generation.readers for scope in reader.scopes if who.sees(scope)]
    if not homes and not who.sees_all:
        return told
    counts = {name: sum(reader.count(scope, table) for reader, scope in homes) for name, table in COUNTED.items()}
    return told | {"snapshot": generation.snapshot, "counts": {"scopes": len(homes)} | counts}
