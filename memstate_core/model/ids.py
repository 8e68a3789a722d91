"""Deterministic ids, computed in bulk: equal parts give equal ids on every machine and in every order.

An id is the SHA-256 of its parts, cut to 128 bits and written as a version-8 UUID (RFC 9562, 5.8:
"custom"). Parts are joined by the unit separator U+001F and prefixed by their lengths, so that no two lists of
parts are joined to the same text.
"""

from __future__ import annotations

import hashlib

import polars as pl
from polars_hash import CryptographicHashingNameSpace

_SEPARATOR = "\x1f"


def _joined(parts: tuple[str | pl.Expr, ...]) -> pl.Expr:
    cells: list[pl.Expr] = []
    for part in parts:
        text = pl.lit(part) if isinstance(part, str) else part.cast(pl.String).fill_null("")
        cells += [text.str.len_bytes().cast(pl.String), text]
    return pl.concat_str(cells, separator=_SEPARATOR)


def _joined_text(parts: tuple[str, ...]) -> str:
    return _SEPARATOR.join(cell for part in parts for cell in (str(len(part.encode())), part))


def sha256_expr(text: pl.Expr) -> pl.Expr:
    """SHA-256 of a string column, as 64 hex digits."""
    hashed: pl.Expr = CryptographicHashingNameSpace(text).sha2_256()
    return hashed


def sha256_text(text: str) -> str:
    """SHA-256 of one string, as 64 hex digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def uuid_expr(kind: str, *parts: str | pl.Expr) -> pl.Expr:
    """A UUID per row from the parts of that row; `kind` separates namespaces."""
    digest = sha256_expr(_joined((kind, *parts)))
    return pl.concat_str(
        [
            digest.str.slice(0, 8),
            digest.str.slice(8, 4),
            pl.concat_str([pl.lit("8"), digest.str.slice(13, 3)]),
            pl.concat_str([pl.lit("8"), digest.str.slice(17, 3)]),
            digest.str.slice(20, 12),
        ],
        separator="-",
    )


def uuid_text(kind: str, *parts: str) -> str:
    """The UUID of one row; equal to that of `uuid_expr` for the same parts."""
    digest = sha256_text(_joined_text((kind, *parts)))
    return f"{digest[:8]}-{digest[8:12]}-8{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"


def key_id(scope: pl.Expr, key: pl.Expr) -> pl.Expr:
    """The id of the topic that a key names within a scope."""
    return uuid_expr("key", scope, key)
