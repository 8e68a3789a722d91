"""Undo of merges, one or many at a time: which merges ids name, and the decisions that undo them.

Topics that were one and no longer are after the undo are kept apart pairwise, whatever number of merges of their
group is undone together. Each pair is recorded once, with the merge that was made first, as if the merges were undone
one after another from the oldest to the newest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from memstate_core.model.errors import MergesUnknown
from memstate_core.model.frames import project
from memstate_core.model.ledger_tables import DECISION
from memstate_core.revise.merge_history import merge_list
from memstate_core.run.served_state import Served
from memstate_core.state.fold.decisions import PERSON, UNMERGED, merges
from memstate_core.state.fold.identity import survivors

UNDONE = "undone by a person"


@dataclass(frozen=True)
class NamedMerges:
    """The merges that some ids name.

    Attributes:
        in_force: the merges to undo, by shard (columns MERGE_LIST); shards without any are left out.
        undone: the ids that name only merges that are undone already, in the order given.
    """

    in_force: dict[str, pl.DataFrame]
    undone: list[str]


def named_merges(shards: Mapping[str, Served], names: Sequence[str]) -> NamedMerges:
    """The merges that some ids name.

    Args:
        shards: the shards to look in.
        names: ids of merges, or of topics that were merged away.

    Raises:
        MergesUnknown: some of them name no merge.
    """
    wanted = pl.Series(names, dtype=pl.String).unique(maintain_order=True)
    found = {shard: _named(merge_list(served), wanted) for shard, served in shards.items()}
    unknown = wanted.filter(~wanted.is_in(_ids(found.values())))
    if len(unknown):
        raise MergesUnknown(unknown.to_list(), ", ".join(served.snapshot.name for served in shards.values()))
    in_force = {shard: left for shard, rows in found.items() if (left := rows.filter(~pl.col("undone"))).height}
    return NamedMerges(in_force, wanted.filter(~wanted.is_in(_ids(in_force.values()))).to_list())


def unmerge_decisions(served: Served, undone: pl.DataFrame) -> pl.DataFrame:
    """The decisions that undo merges (columns DECISION), the oldest merge first.

    Each records the topics that the dropped one is separated from, so that none of them is merged with it again for
    the same reasons, and the evidence of all of them, so that later evidence is recognised as new.

    Args:
        served: the shard.
        undone: merges in force (columns MERGE_LIST).
    """
    ranked = undone.drop("evidence_ids").sort("seq").with_row_index("rank")
    held = served.evidence_topic.group_by(into="topic_id").agg(evidence_ids=pl.col("evidence_id").sort())
    rows = ranked.join(held, on="into", how="left").join(_separated(served, ranked), on="rank", how="left")
    nothing = pl.lit([], pl.List(pl.String))
    others = pl.col("others").fill_null(nothing)
    payload = pl.struct("survivor", "weight", "probability", others=others, actor=pl.lit(PERSON)).struct.json_encode()
    columns = {
        "kind": pl.lit(UNMERGED),
        "topic_id": pl.col("dropped"),
        "payload_json": payload,
        "evidence_ids": pl.col("evidence_ids").fill_null(nothing),
        "reason": pl.lit(UNDONE),
    }
    return project(rows.sort("rank").with_columns(**columns), DECISION)


def merge_ends(merges: pl.DataFrame) -> list[dict[str, Any]]:
    """Merges (columns MERGE_LIST) as documents: `{id, dropped: {id, title}, into: {id, title}}`, newest first."""
    ends = [pl.struct(id=end, title=f"{end}_title").alias(end) for end in ("dropped", "into")]
    return merges.sort("seq", descending=True).select("id", *ends).to_dicts()


def _named(listed: pl.DataFrame, names: pl.Series) -> pl.DataFrame:
    return listed.filter(pl.any_horizontal(pl.col("id", "dropped").is_in(names.implode())))


def _ids(listed: Iterable[pl.DataFrame]) -> pl.Series:
    """Every id that names one of some merges, as one list."""
    ends = [rows[name] for rows in listed for name in ("id", "dropped")]
    return pl.concat([pl.Series(dtype=pl.String), *ends]).implode()


def _separated(served: Served, undone: pl.DataFrame) -> pl.DataFrame:
    """The topics that each dropped topic is separated from (columns rank, others).

    Args:
        served: the shard.
        undone: the merges to undo, `rank` their order (columns MERGE_LIST, rank).
    """
    merged = merges(served.transitions)
    left = survivors(merged.join(undone, on="dropped", how="anti"))
    every = pl.concat([merged["dropped"], undone["into"]]).unique().to_frame("id")
    parts = every.with_columns(
        into=served.answering(pl.col("id")), part=pl.col("id").replace(left["dropped"], left["survivor"])
    )
    ranked = parts.join(undone.select(part="dropped", part_rank="rank"), on="part", how="left")
    pairs = undone.select("rank", "into").join(ranked, on="into")
    later = pairs.filter((pl.col("part_rank") > pl.col("rank")).fill_null(True))
    return later.group_by("rank").agg(others=pl.col("id").sort())
