"""The topics that a run merged by itself, as evidence described them before the merge."""

from __future__ import annotations

from dataclasses import dataclass, replace

import polars as pl

from memstate_core.night.checks.checked_state import CheckedState
from memstate_core.night.checks.derived import Derived, derive, followed
from memstate_core.night.checks.statements import newest, statements


@dataclass(frozen=True)
class MergedTopics:
    """The topics that merges of a run made one.

    Attributes:
        earlier: the decisions in effect without these merges (columns TRANSITIONS).
        before: the state that the ledger implies without them.
        members: the topics, those that survive among them (columns topic_id, into, weight: that of the decision,
            null for the survivor).
        keys: the keys that evidence gives each (columns into, topic_id, value).
        kinds: the kinds that the newest evidence gives each (columns into, topic_id, value).
        stated: the newest statements of evidence about each (columns topic_id, part, name, value_json, valid_from).
    """

    earlier: pl.DataFrame
    before: Derived
    members: pl.DataFrame
    keys: pl.DataFrame
    kinds: pl.DataFrame
    stated: pl.DataFrame


def merged_topics(merged: pl.DataFrame, checked: CheckedState) -> MergedTopics:
    """The topics of merges.

    Args:
        merged: the last run's own merges (columns topic_id, survivor, seq, weight).
        checked: the state.
    """
    recorded = checked.recorded
    earlier = recorded.transitions.join(merged, on="seq", how="anti")
    before = derive(replace(recorded, transitions=earlier))
    members = _members(merged, before)
    homes = before.homes.select("evidence_id", "topic_id").join(members, on="topic_id")
    keyed = recorded.evidence.select("evidence_id", value="topic_key").drop_nulls()
    keys = homes.join(keyed, on="evidence_id").select("into", "topic_id", "value")
    own = {name: getattr(before, name).join(members, on="topic_id", how="semi") for name in ("homes", "segments")}
    stated = newest(statements(recorded.evidence, replace(before, **own)))
    kinds = stated.filter((pl.col("part") == "topic") & (pl.col("name") == "topic_kind")).join(members, on="topic_id")
    kinds = kinds.select("into", "topic_id", value=pl.col("value_json").str.json_decode(pl.String))
    return MergedTopics(earlier, before, members, keys, kinds, stated)


def _members(merged: pl.DataFrame, before: Derived) -> pl.DataFrame:
    ends = merged.select(before.answering(pl.col("topic_id", "survivor")), "weight").unique("topic_id", keep="last")
    chain, _ = followed(ends.select("survivor", dropped="topic_id"))
    dropped = chain.select(topic_id="dropped", into="survivor").join(ends.drop("survivor"), on="topic_id")
    last = dropped.select(topic_id="into", into="into", weight=pl.lit(None, pl.Float64)).unique()
    return pl.concat([dropped, last]).unique("topic_id", keep="first", maintain_order=True)
