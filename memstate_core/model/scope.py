"""Scopes, which separate tenants, and shards, which are the units of storage that scopes are hashed to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from memstate_core.model.ids import sha256_expr, sha256_text

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


@dataclass(frozen=True)
class Layout:
    """How the scopes of a store are divided among shards.

    The shards of each layout have names of their own, so that those of two never mix: `s0`, `s1` and so on in a store
    as it began, `r1s0of4` for shard 0 of the 4 that its first change of their number made.

    Attributes:
        count: the number of shards.
        number: how often it was changed.
    """

    count: int
    number: int = 0

    @property
    def names(self) -> list[str]:
        """The names of the shards, in order."""
        return [self._name(index) for index in range(self.count)]

    def of(self, scope: str) -> str:
        """The shard that holds a scope: its SHA-256 modulo the number of shards."""
        return self._name(int(sha256_text(scope)[:_DIGITS], 16) % self.count)

    def of_each(self, scopes: pl.Series) -> pl.Series:
        """The shard of each of some scopes, by the same rule."""
        return pl.Series("shard", self.names).gather(_indexes(scopes, self.count))

    def _name(self, index: int) -> str:
        return f"r{self.number}s{index}of{self.count}" if self.number else f"s{index}"


_DIGITS = 12
"""How many hexadecimal digits of a scope's hash decide its shard."""
_NAME = re.compile(r"s\d+|r(\d+)s\d+of(\d+)")
_FIRST = Layout(1)


def layout_of(shards: Sequence[str]) -> Layout:
    """The layout whose shards have these names; that of a single shard as it began for none."""
    found = _NAME.fullmatch(shards[0]) if shards else None
    return _FIRST if found is None else Layout(len(shards), int(found[1] or 0))


def is_shard(name: str) -> bool:
    """Whether a name is one that some layout gives to a shard."""
    return _NAME.fullmatch(name) is not None


def resharded(shard: str) -> tuple[int, int]:
    """Which change of the number of shards made a shard, and the number that it set; (0, 0) for none."""
    found = _NAME.fullmatch(shard)
    return (0, 0) if found is None or found[1] is None else (int(found[1]), int(found[2]))


def resharding(shards: pl.Expr) -> pl.Expr:
    """Which change of the number of shards made each of some shards; 0 for those of a store as it began."""
    return shards.str.extract(r"^r(\d+)s").cast(pl.Int64).fill_null(0)


def scopes_of_shard(scopes: pl.Series, shard: str, count: int) -> pl.Series:
    """Those of the distinct scopes that a shard holds.

    Args:
        scopes: the scopes.
        shard: a shard of any layout.
        count: the number of shards of that layout.
    """
    if count == 1:
        return scopes
    index = int(re.sub(r".*s(\d+).*", r"\1", shard))
    return scopes.filter(_indexes(scopes, count) == index)


def _indexes(scopes: pl.Series, count: int) -> pl.Series:
    digits = sha256_expr(pl.lit(scopes.cast(pl.String))).str.slice(0, _DIGITS)
    return pl.select(digits.str.to_integer(base=16, dtype=pl.Int64) % count).to_series()
