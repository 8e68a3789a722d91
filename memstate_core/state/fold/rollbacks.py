"""Which recorded decisions are in effect: a rollback undoes those between a publication and itself.

The ledger only grows, so a rollback is a decision of its own. It names the publication whose state is served again; the
decisions after that publication are no longer in effect, earlier rollbacks among them. Evidence and accesses are not
decisions, and stay.

Invariant: the decisions in effect after a rollback are those that were in effect at the publication that it names, and
what was decided since the rollback.
"""

from __future__ import annotations

import polars as pl
from msgspec import json as msgjson

from memstate_core.model.frames import MOMENT

ROLLED_BACK = "rolled_back"
"""The decision that a snapshot serves an earlier state: `{number, seq, actor}` of its payload, the publication."""


def in_effect(rows: pl.DataFrame) -> pl.DataFrame:
    """The decisions of one shard that no rollback undid, in the order given.

    Args:
        rows: transitions of the shard, its rollbacks among them (at least columns seq, kind, payload_json).
    """
    undone = [pl.col("seq").is_between(*span, closed="none") for span in spans(rows)]
    return rows.filter(~pl.any_horizontal(undone)) if undone else rows


def undone_by_rollbacks(rows: pl.DataFrame) -> pl.DataFrame:
    """The decisions of one shard that rollbacks undid, with the time of the rollback (`rolled_back_at`).

    Args:
        rows: all transitions of the shard (columns TRANSITIONS).
    """
    at = dict(rows.filter(pl.col("kind") == ROLLED_BACK).select("seq", "at").iter_rows())
    found = pl.lit(None, MOMENT)
    for since, until in spans(rows):
        inside = pl.col("seq").is_between(since, until, closed="none")
        found = pl.when(inside).then(pl.lit(at[until], MOMENT)).otherwise(found)
    return rows.with_columns(rolled_back_at=found).filter(pl.col("rolled_back_at").is_not_null())


def spans(rows: pl.DataFrame) -> list[tuple[int, int]]:
    """The transitions of one shard between which each rollback in effect undid all (both ends excluded), newest first.

    Args:
        rows: its transitions, or its rollbacks alone (at least columns seq, kind, payload_json).
    """
    found: list[tuple[int, int]] = []
    of_rollbacks = rows["kind"] == ROLLED_BACK
    if not of_rollbacks.any():
        return found
    marks = rows.filter(of_rollbacks).sort("seq", descending=True)
    for seq, payload in marks.select("seq", "payload_json").iter_rows():
        if not found or seq <= found[-1][0]:
            found.append((int(msgjson.decode(payload)["seq"]), seq))
    return found
