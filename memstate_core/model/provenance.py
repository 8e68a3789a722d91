"""What a record notes about where it comes from: workspace, branch, commit, file and hash.

These are unknown keys of a record, which the ledger keeps in its payload: at its top, or in `metadata` or `details`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import polars as pl

NOTES: Final[Mapping[str, str]] = {
    "workspace": "workspacePath",
    "branch": "gitBranch",
    "commit": "gitCommit",
    "file": "filePath",
    "sha256": "contentSha256",
}
"""What is noted, with the key of the record."""

NOTED: Final[Mapping[str, type[pl.String]]] = {
    **dict.fromkeys(("evidence_id", "observation_id", "scope"), pl.String),
    **dict.fromkeys(NOTES, pl.String),
}
"""Columns of evidence that notes something; what it does not note is null."""

_PLACES = ("", "metadata.", "details.")


def noted(evidence: pl.LazyFrame) -> pl.DataFrame:
    """The evidence that notes something (columns NOTED), by scope and id.

    Args:
        evidence: columns evidence_id, observation_id, scope, payload_json.
    """
    payload = pl.col("payload_json")
    some = pl.any_horizontal([payload.str.contains(f'"{key}":', literal=True) for key in NOTES.values()])
    rows = evidence.filter(some).select("evidence_id", "observation_id", "scope", "payload_json").collect()
    read = rows.select("evidence_id", "observation_id", "scope", **{name: _read(key) for name, key in NOTES.items()})
    there = pl.any_horizontal(pl.col(list(NOTES)).is_not_null())
    return read.filter(there).sort("scope", "evidence_id")


def _read(key: str) -> pl.Expr:
    """The text under a key; null where there is none, or a blank one."""
    found = [pl.col("payload_json").str.json_path_match(f"$.{place}{key}") for place in _PLACES]
    text = pl.coalesce(found)
    return pl.when((text.str.strip_chars() != "") & (text != "null")).then(text)
