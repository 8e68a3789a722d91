"""Rehearsal of a policy: what the ladder would do night by night, by the functions of the night itself.

Either the past again, each night with the evidence observed and the uses made by then, or the nights to come
with nothing new. Both begin with what recorded decisions left standing at the beginning. Topics are as they
are today, with their titles and with merges followed; nothing of the store is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from memstate_core.forget.archiving import to_archive
from memstate_core.forget.attenuation import detached_fields, detached_links, summaries
from memstate_core.forget.eviction_order import by_the_past
from memstate_core.forget.salience import saliences
from memstate_core.forget.simulation.event_history import Past
from memstate_core.forget.simulation.ladder_replay import Persons, Taken, after, standing_at
from memstate_core.forget.simulation.replay_levels import Lengths, field_levels, topic_levels
from memstate_core.forget.simulation.replay_nights import Night, news
from memstate_core.forget.topic_features import Known, counted, governed, standing_of
from memstate_core.model.frames import MOMENT, Schema
from memstate_core.policy.settings import Policy
from memstate_core.state.dependents import dependents
from memstate_core.state.ladder_state import Rungs

NIGHTS: Schema = {
    "at": MOMENT,
    "active": pl.Int64,
    "detached": pl.Int64,
    "archived": pl.Int64,
    "summarised": pl.Int64,
    "archivals": pl.Int64,
    "returns": pl.Int64,
    "missed": pl.Int64,
}
"""What a rehearsed night leaves: topics that are active, that have detached fields or links, and that are
archived, fields that are summarised; how many topics were archived that night and how many came back since the
night before; and the uses of that day, failed ones left out, of topics that were archived when it began."""


@dataclass(frozen=True)
class Rehearsed:
    """What a policy would have done.

    Attributes:
        nights: columns NIGHTS.
        missed: columns topic_id, title, times: missed uses by topic.
        topics: columns topic_id, title, archived: where it leaves each.
    """

    nights: pl.DataFrame
    missed: pl.DataFrame
    topics: pl.DataFrame


def rehearse(past: Past, policy: Policy, nights: Sequence[Night]) -> Rehearsed:
    """Takes the ladder's steps on each night.

    Args:
        past: what was said and used.
        policy: the policy to rehearse.
        nights: at least one, in their order.
    """
    ladder, told, missed = _Ladder(past, policy, nights[0].since), [], []
    for night in nights:
        lost = _missed(past, ladder.stand, night)
        told.append({**ladder.climb(night), "missed": lost.height, "at": night.at})
        missed.append(lost)
    topics = past.topics.select("id", "topic_id", "title")
    times = pl.concat(missed).group_by(id="topic_id").agg(times=pl.len().cast(pl.Int64))
    archived = pl.col("id").is_in(ladder.stand.archived["topic_id"].implode())
    return Rehearsed(
        nights=pl.DataFrame(told, schema=NIGHTS),
        missed=topics.join(times, on="id").drop("id").sort("times", "topic_id", descending=[True, False]),
        topics=topics.select("topic_id", "title", archived=archived),
    )


def _missed(past: Past, stand: Rungs, night: Night) -> pl.DataFrame:
    """Uses of the day, failed ones left out, of topics that are archived (column topic_id)."""
    uses = news(past.used, night).filter(~pl.col("failed")).unique(["access_id", "topic_id"])
    return uses.join(stand.archived, on="topic_id", how="semi").select("topic_id")


class _Ladder:
    """A ladder in rehearsal, and where it stands; what it takes a field by is its number, in place of its name."""

    def __init__(self, past: Past, policy: Policy, since: datetime) -> None:
        self._past, self._policy, self._persons = past, policy, Persons(past)
        self._topics, self._fields = topic_levels(past, policy), field_levels(past, policy)
        self._lengths = Lengths(past, policy)
        self.stand = standing_at(past, since)

    def climb(self, night: Night) -> dict[str, int]:
        """Takes the steps of a night; tells what it leaves, by the names of NIGHTS."""
        before = self.stand.archived.height
        stand = self._persons.obeyed(self.stand, night.since, night.until)
        freed = before - stand.archived.height
        fields, topics, edges = self._known(stand, night)
        taken = self._steps(stand, fields, topics, edges)
        self.stand = after(stand, taken)
        flows = {"archivals": taken.topics[0].height, "returns": freed + taken.topics[1].height}
        return flows | _levels(topics, self.stand)

    def _known(self, stand: Rungs, night: Night) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
        """Fields, topics as they stand with what governs them, and links."""
        past, policy, until = self._past, self._policy, night.until
        fields, topics = saliences(self._fields.until(until), self._topics.until(until), night.at, policy)
        topics, edges = _placed(topics, stand), _between(past.edges.filter(pl.col("since") <= until), topics["id"])
        evidence = counted(past.evidence.filter(pl.col("at") <= until), "evidence")
        known = Known(topics, evidence, counted(fields, "fields"), edges, stand.held)
        of_use = past.used.filter(~pl.col("failed"))
        told, used = (news(rows, night)["topic_id"].unique() for rows in (past.evidence, of_use))
        long = fields.drop("name").join(self._lengths.until(until), on="id", how="left", maintain_order="left")
        named = long.rename({"id": "name"}).with_columns(pl.col("revisions").fill_null(1))
        ruled = governed(standing_of(known, night.at, policy, told, used), policy)
        said = past.evidence.filter(pl.col("at") <= until).select("topic_id", "at")
        uses = of_use.filter(pl.col("at") <= until).unique(["access_id", "topic_id"])
        return named, by_the_past(ruled, said, uses.select("topic_id", "at"), night.at, policy)[0], edges

    def _steps(self, stand: Rungs, fields: pl.DataFrame, topics: pl.DataFrame, edges: pl.DataFrame) -> Taken:
        ranked = to_archive(topics, dependents(edges), self._policy)
        going = ranked.filter(pl.col("reason").is_not_null())
        archived = topics.filter(pl.col("was") == "archived")
        back = archived.filter(pl.col("state") == "active").join(going, on="topic_id", how="anti")
        return Taken(
            topics=(going.join(archived, on="topic_id", how="anti"), back),
            fields=detached_fields(fields, topics, stand),
            edges=_keyed(detached_links(edges, topics, stand)),
            summaries=summaries(fields, topics, stand, self._policy),
        )


def _levels(topics: pl.DataFrame, stand: Rungs) -> dict[str, int]:
    archived = topics.join(stand.archived, on="topic_id", how="semi").height
    return {
        "active": topics.height - archived,
        "detached": pl.concat([stand.fields["topic_id"], stand.edges["from_id"]]).n_unique(),
        "archived": archived,
        "summarised": stand.summaries.height,
    }


def _placed(topics: pl.DataFrame, stand: Rungs) -> pl.DataFrame:
    """Topics (by number) with `state` and `pinned`."""
    archived, pins = (pl.col("id").is_in(rows["topic_id"].implode()) for rows in (stand.archived, stand.pins))
    state = pl.when(archived).then(pl.lit("archived")).otherwise(pl.lit("active"))
    return topics.drop("topic_id", "since").with_columns(state=state, pinned=pins)


def _between(edges: pl.DataFrame, topics: pl.Series) -> pl.DataFrame:
    """Links of which both ends are there."""
    there = topics.implode()
    return edges.filter(pl.col("from_id").is_in(there) & pl.col("to_id").is_in(there))


def _keyed(steps: tuple[pl.DataFrame, pl.DataFrame]) -> tuple[pl.DataFrame, pl.DataFrame]:
    taken, back = (rows.with_columns(from_id="topic_id") for rows in steps)
    return taken, back
