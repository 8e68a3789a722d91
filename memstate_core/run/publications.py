"""The manifests that the ledger recorded with published snapshots, and their comparison with the files."""

from __future__ import annotations

import polars as pl
from msgspec import ValidationError, convert, to_builtins
from msgspec import json as msgjson

from memstate_core.run.store import Store
from memstate_core.state.fold.decisions import PUBLISHED
from memstate_core.state.fold.rollbacks import ROLLED_BACK, in_effect
from memstate_core.state.snapshots import Manifest

REEMBEDDING = "reembed-"
"""How the run ids of changes of the model begin."""
ERASURE = "erasure-"
"""How the run ids of erasures begin."""


def publications(store: Store, shard: str) -> list[tuple[int, Manifest]]:
    """The manifests of a shard that the ledger records, oldest first, each with the number of its transition."""
    return _decoded(_recorded(store, shard))


def publications_in_effect(store: Store, shard: str) -> list[tuple[int, Manifest]]:
    """The same without those that a rollback undid."""
    return _decoded(in_effect(_recorded(store, shard)))


def rolled_back(store: Store, shard: str) -> set[int]:
    """The numbers of a shard's snapshots that a rollback undid."""
    rows = _recorded(store, shard)
    every, kept = ({manifest.number for _, manifest in _decoded(found)} for found in (rows, in_effect(rows)))
    return every - kept


def recorded_manifest(store: Store, shard: str, number: int) -> Manifest | None:
    """The manifest that the ledger recorded last for a snapshot; None if it has none."""
    found = [manifest for _, manifest in publications(store, shard) if manifest.number == number]
    return found[-1] if found else None


def manifest_problems(served: Manifest, recorded: Manifest | None) -> list[str]:
    """The differences between a manifest and the one that the ledger recorded, by field."""
    if recorded is None:
        return [f"the ledger records no snapshot {served.shard}/{served.number}"]
    found, expected = _flat(to_builtins(served)), _flat(to_builtins(recorded))
    names = sorted(name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name))
    return [f"{name} is {found.get(name)!r}, the ledger recorded {expected.get(name)!r}" for name in names]


def _recorded(store: Store, shard: str) -> pl.DataFrame:
    """The publications and rollbacks of a shard, in order."""
    wanted = (pl.col("shard") == shard) & pl.col("kind").is_in([PUBLISHED, ROLLED_BACK])
    rows = store.ledger.scan("transitions").filter(wanted).select("seq", "kind", "payload_json")
    return rows.sort("seq").collect()


def _decoded(rows: pl.DataFrame) -> list[tuple[int, Manifest]]:
    found = rows.filter(pl.col("kind") == PUBLISHED).select("seq", "payload_json")
    return [(seq, manifest) for seq, text in found.iter_rows() if (manifest := decoded_manifest(text)) is not None]


def decoded_manifest(text: str | None) -> Manifest | None:
    """The manifest that a publication on record has as its payload; None if it has none of today's form."""
    try:
        return convert(msgjson.decode(text or "null"), Manifest)
    except (ValidationError, ValueError):
        return None


def _flat(document: dict[str, object], prefix: str = "") -> dict[str, object]:
    flat: dict[str, object] = {}
    for name, value in document.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return flat
