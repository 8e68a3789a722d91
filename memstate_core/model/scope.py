"""Scopes, which separate tenants, and shards, which are the units of storage that scopes are hashed to."""

from __future__ import annotations

import polars as pl

from memstate_core.model.ids import sha256_text

SCOPE_TYPES = ("global", "user", "workspace", "project", "session")
GLOBAL_SCOPE = "global:global"


def scope_text(kind: str, scope_id: str) -> str:
    """The written form of a scope, `type:id`."""
    return f"{kind}:{scope_id}"


def parse_scope(text: str) -> str:
    """Checks a `TYPE:ID` and returns it.

    Raises:
        ValueError: the type is unknown or the id is missing.
    """
    kind, _, scope_id = text.partition(":")
    if kind == "global" and scope_id in ("", "global"):
        return GLOBAL_SCOPE
    if kind not in SCOPE_TYPES or not scope_id.strip():
        raise ValueError(f"{text!r} is not a scope: expected TYPE:ID with a type of {', '.join(SCOPE_TYPES)}")
    return scope_text(kind, scope_id)


def shard_names(count: int) -> list[str]:
    """The names of `count` shards."""
    return [f"s{number}" for number in range(count)]


def shard_of(scope: str, count: int) -> str:
    """The shard that holds a scope: its SHA-256 modulo the number of shards."""
    return f"s{int(sha256_text(scope)[:12], 16) % count}"


def scopes_of_shard(scopes: pl.Series, shard: str, count: int) -> pl.Series:
    """Those of the distinct scopes that a shard holds."""
    if count == 1:
        return scopes
    return scopes.filter(pl.Series([shard_of(scope, count) == shard for scope in scopes], dtype=pl.Boolean))
