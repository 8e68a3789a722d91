"""The topics that the conditions of a run examine: all, or those that may differ from a base that was checked.

The verdict on a topic's histories, values, citations and strength depends on its rows in the graph and on what the
ledger records of it. Where both are as they were in a base on which the same conditions held, under the same version
and policy, the verdict is that of the base. What may have changed is found here from the ledger and the rows
themselves, not from what the steps say they changed.

Invariant: a topic with another row, or with other evidence, segments or accesses than in the base, is in doubt.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from memstate_core import __version__
from memstate_core.model.step_frames import ALIASES, EVIDENCE_TOPIC
from memstate_core.night.checks.checked_state import COMPRESSED, CheckedState, Tables
from memstate_core.state.fold import decisions as kinds
from memstate_core.state.fold.rollbacks import ROLLED_BACK

_AGEING = ("salience", "failed_salience")
"""Columns that change with the time alone; the conditions compare them for every topic."""
_ANEW = (ROLLED_BACK, kinds.SET_ASIDE, kinds.READMITTED)
"""Decisions after which everything is examined."""


def in_doubt(checked: CheckedState, base: Tables, compressed: pl.DataFrame, folder: Path) -> pl.Series | None:
    """The topics to examine, or None for all.

    Args:
        checked: the state.
        base: the tables of the snapshot that the run started from.
        compressed: the revisions behind its summaries (columns COMPRESSED).
        folder: its folder.
    """
    recorded = checked.recorded
    made = recorded.base
    if made is None or made.checked_by != __version__ or made.policy_hash != recorded.policy.digest():
        return None
    if recorded.unseen["kind"].is_in(_ANEW).any():
        return None
    found = [*_with_other_rows(checked, base, compressed), *_with_other_record(checked, folder)]
    ids = pl.DataFrame({"id": pl.concat(found).drop_nulls()}).unique()
    return pl.concat([ids["id"], ids.select(checked.derived.answering(pl.col("id")))["id"]]).unique()


def _with_other_rows(checked: CheckedState, base: Tables, compressed: pl.DataFrame) -> list[pl.Series]:
    now = checked.graph
    topics = _differing(now.topics, base.topics, "id")
    merged = [rows.filter(pl.col("id").is_in(topics.implode()))["merged_into"] for rows in (now.topics, base.topics)]
    return [
        topics,
        *merged,
        _differing(now.fields, base.fields, "topic_id"),
        _differing(now.revisions, base.revisions, "topic_id"),
        _differing(now.edges, base.edges, "from_id"),
        _differing(checked.compressed, compressed.select(COMPRESSED.keys()), "topic_id"),
    ]


def _differing(one: pl.DataFrame, other: pl.DataFrame, owner: str) -> pl.Series:
    """The owners of the rows that only one of two tables has."""
    row = pl.struct(name for name in one.columns if name not in _AGEING).hash()
    ends = [rows.select(pl.col(owner).alias("owner"), _row=row) for rows in (one, other.select(one.columns))]
    odd = [a.join(b, on=["owner", "_row"], how="anti") for a, b in (ends, ends[::-1])]
    return pl.concat(odd)["owner"].unique()


def _with_other_record(checked: CheckedState, folder: Path) -> list[pl.Series]:
    """Topics whose evidence, segments or accesses are not those that the base was made of."""
    derived, recorded = checked.derived, checked.recorded
    held = pl.read_parquet(folder / "evidence.parquet", glob=False, columns=list(EVIDENCE_TOPIC))
    homes = _odd(held.drop_nulls("topic_id"), derived.homes.select(EVIDENCE_TOPIC.keys()))
    known = pl.read_parquet(folder / "aliases.parquet", glob=False, columns=list(ALIASES))
    aliases = _odd(known, derived.aliases.with_columns(topic_id=derived.answering(pl.col("alias"))))
    segments = recorded.unseen.filter(pl.col("kind") == kinds.SEGMENT_PLACED)
    named = [homes["topic_id"], aliases["alias"], aliases["topic_id"], segments["topic_id"]]
    return [*named, recorded.fresh_accesses["topic_id"]]


def _odd(one: pl.DataFrame, other: pl.DataFrame) -> pl.DataFrame:
    """The rows that only one of two frames has."""
    other = other.select(one.columns)
    odd = [a.join(b, on=one.columns, how="anti", nulls_equal=True) for a, b in ((one, other), (other, one))]
    return pl.concat(odd)
