"""The topics that the conditions of a run examine: all, or those that may differ from a base that was checked.

The verdict on a topic's histories, values, citations and strength depends on its rows in the graph and on what the
ledger records of it. Where both are as they were in a base on which the same conditions held, under the same version
and policy, the verdict is that of the base. What may have changed is found here from the ledger and the rows
themselves, not from what the steps say they changed.

Invariant: a topic with another row, or with other evidence, segments or accesses than in the base, is in doubt.
"""

from __future__ import annotations

import polars as pl

from memstate_core import __version__
from memstate_core.model.frames import symmetric_difference
from memstate_core.model.step_frames import EVIDENCE_TOPIC
from memstate_core.night.checks.checked_state import CheckedState, Published
from memstate_core.state.fold import decisions as kinds
from memstate_core.state.fold.rollbacks import ROLLED_BACK

_AGEING = ("salience", "failed_salience")
"""Columns that change with the time alone; the conditions compare them for every topic."""
_ANEW = (ROLLED_BACK, kinds.SET_ASIDE, kinds.READMITTED)
"""Decisions after which everything is examined."""


def in_doubt(checked: CheckedState, base: Published) -> pl.Series | None:
    """The topics to examine, or None for all."""
    recorded = checked.recorded
    made = recorded.base
    if made is None or made.checked_by != __version__ or made.policy_hash != recorded.policy.digest():
        return None
    if recorded.unseen["kind"].is_in(_ANEW).any():
        return None
    found = [*_with_other_rows(checked, base), *_with_other_record(checked, base)]
    ids = pl.DataFrame({"id": pl.concat(found).drop_nulls()}).unique()
    return pl.concat([ids["id"], ids.select(checked.derived.answering(pl.col("id")))["id"]]).unique()


def _with_other_rows(checked: CheckedState, base: Published) -> list[pl.Series]:
    now, before = checked.graph, base.tables
    topics = _differing(now.topics, before.topics, "id")
    merged = [rows.filter(pl.col("id").is_in(topics.implode()))["merged_into"] for rows in (now.topics, before.topics)]
    return [
        topics,
        *merged,
        _differing(now.fields, before.fields, "topic_id"),
        _differing(now.revisions, before.revisions, "topic_id"),
        _differing(now.edges, before.edges, "from_id"),
        _differing(checked.compressed, base.compressed, "topic_id"),
    ]


def _differing(one: pl.DataFrame, other: pl.DataFrame, owner: str) -> pl.Series:
    """The owners of the rows that only one of two tables has."""
    row = pl.struct(name for name in one.columns if name not in _AGEING).hash()
    ends = (rows.select(pl.col(owner).alias("owner"), _row=row) for rows in (one, other.select(one.columns)))
    return symmetric_difference(*ends)["owner"].unique()


def _with_other_record(checked: CheckedState, base: Published) -> list[pl.Series]:
    """Topics whose evidence, segments or accesses are not those that the base was made of."""
    derived, recorded = checked.derived, checked.recorded
    homes = symmetric_difference(derived.homes.select(EVIDENCE_TOPIC.keys()), base.held.drop_nulls("topic_id"))
    known = derived.aliases.with_columns(topic_id=derived.answering(pl.col("alias")))
    aliases = symmetric_difference(base.aliases, known)
    segments = recorded.unseen.filter(pl.col("kind") == kinds.SEGMENT_PLACED)
    named = [homes["topic_id"], aliases["alias"], aliases["topic_id"], segments["topic_id"]]
    return [*named, recorded.fresh_accesses["topic_id"]]
