"""Simulation of a policy: the steps of the ladder night by night, by the functions of the nightly run.

Either past nights are replayed, each with the evidence and the accesses up to then, or coming nights without new
events. Both begin with the ladder state by the decisions recorded until then. Topics have their present titles, and
merges are followed; nothing is written to the store.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from memstate_core.forget.archiving import to_archive
from memstate_core.forget.attenuation import detached_edges, detached_fields, summaries
from memstate_core.forget.eviction_order import with_fitted_retention
from memstate_core.forget.simulation.event_history import EventHistory
from memstate_core.forget.simulation.ladder_replay import LadderSteps, ManualActions, after, ladder_at
from memstate_core.forget.simulation.replay_levels import Lengths, field_levels, topic_levels
from memstate_core.forget.simulation.replay_nights import Night, new_events
from memstate_core.forget.topic_features import FeatureInputs, counted, features_of, governed
from memstate_core.model.frames import MOMENT, Schema
from memstate_core.policy.settings import Policy
from memstate_core.state.fold.dependents import dependents
from memstate_core.state.fold.edges import valid_at
from memstate_core.state.fold.ladder_state import LadderState
from memstate_core.state.fold.strength import saliences

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
"""After each simulated night: active topics, topics with detached fields or edges, archived topics, summarised fields;
topics archived that night, topics restored since the night before; and `missed`, the accesses of that day, without
failed ones, of topics that were archived when it began."""


@dataclass(frozen=True)
class Simulated:
    """The result of simulating a policy.

    Attributes:
        nights: columns NIGHTS.
        missed: columns topic_id, title, times: missed accesses by topic.
        topics: columns topic_id, title, archived: whether each is archived at the end.
    """

    nights: pl.DataFrame
    missed: pl.DataFrame
    topics: pl.DataFrame


def simulate_policy(history: EventHistory, policy: Policy, nights: Sequence[Night]) -> Simulated:
    """Simulates the ladder on each night.

    Args:
        history: the events.
        policy: the policy to simulate.
        nights: at least one, in order.
    """
    simulated, rows, missed = _SimulatedLadder(history, policy, nights[0].since), [], []
    for night in nights:
        lost = _missed(history, simulated.ladder, night)
        rows.append({**simulated.run(night), "missed": lost.height, "at": night.at})
        missed.append(lost)
    topics = history.topics.select("id", "topic_id", "title")
    times = pl.concat(missed).group_by(id="topic_id").agg(times=pl.len().cast(pl.Int64))
    archived = pl.col("id").is_in(simulated.ladder.archived["topic_id"].implode())
    return Simulated(
        nights=pl.DataFrame(rows, schema=NIGHTS),
        missed=topics.join(times, on="id").drop("id").sort("times", "topic_id", descending=[True, False]),
        topics=topics.select("topic_id", "title", archived=archived),
    )


def _missed(history: EventHistory, ladder: LadderState, night: Night) -> pl.DataFrame:
    """Accesses of the day, without failed ones, of archived topics (column topic_id)."""
    accesses = new_events(history.accesses, night).filter(~pl.col("failed")).unique(["access_id", "topic_id"])
    return accesses.join(ladder.archived, on="topic_id", how="semi").select("topic_id")


class _SimulatedLadder:
    """The ladder of a simulation and its state; fields go by their numbers."""

    def __init__(self, history: EventHistory, policy: Policy, since: datetime) -> None:
        self._history, self._policy, self._manual = history, policy, ManualActions(history)
        self._topics, self._fields = topic_levels(history, policy), field_levels(history, policy)
        self._lengths = Lengths(history, policy)
        self.ladder = ladder_at(history, since)

    def run(self, night: Night) -> dict[str, int]:
        """Takes the steps of a night; returns its counts by the names of NIGHTS."""
        before = self.ladder.archived.height
        ladder = self._manual.applied(self.ladder, night.since, night.until)
        restored = before - ladder.archived.height
        fields, topics, edges = self._inputs(ladder, night)
        steps = self._steps(ladder, fields, topics, edges, night.at)
        self.ladder = after(ladder, steps)
        flows = {"archivals": steps.topics[0].height, "returns": restored + steps.topics[1].height}
        return flows | _levels(topics, self.ladder)

    def _inputs(self, ladder: LadderState, night: Night) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
        """Fields, the features of topics with their governing rules, and edges, with those that are not in force."""
        history, policy, until = self._history, self._policy, night.until
        fields, topics = saliences(self._fields.until(until), self._topics.until(until), night.at, policy)
        edges = _between(history.edges.filter(pl.col("since") <= until), topics["id"])
        evidence = counted(history.evidence.filter(pl.col("at") <= until), "evidence")
        valid, counts = edges.filter(valid_at(night.at)), counted(fields, "fields")
        known = FeatureInputs(_with_state(topics, ladder), evidence, counts, valid, ladder.held)
        accesses = history.accesses.filter(~pl.col("failed"))
        new_evidence, accessed = (new_events(rows, night)["topic_id"].unique() for rows in (history.evidence, accesses))
        long = fields.drop("name").join(self._lengths.until(until), on="id", how="left", maintain_order="left")
        named = long.rename({"id": "name"}).with_columns(pl.col("revisions").fill_null(1))
        features = governed(features_of(known, night.at, policy, new_evidence, accessed), policy)
        observed = history.evidence.filter(pl.col("at") <= until).select("topic_id", "at")
        used = accesses.filter(pl.col("at") <= until).unique(["access_id", "topic_id"])
        ranked, _ = with_fitted_retention(features, observed, used.select("topic_id", "at"), night.at, policy)
        return named, ranked, edges

    def _steps(
        self, ladder: LadderState, fields: pl.DataFrame, topics: pl.DataFrame, edges: pl.DataFrame, at: datetime
    ) -> LadderSteps:
        ranked = to_archive(topics, dependents(edges.filter(valid_at(at))), self._policy)
        leaving = ranked.filter(pl.col("reason").is_not_null())
        archived = topics.filter(pl.col("was") == "archived")
        back = archived.filter(pl.col("state") == "active").join(leaving, on="topic_id", how="anti")
        return LadderSteps(
            topics=(leaving.join(archived, on="topic_id", how="anti"), back),
            fields=detached_fields(fields, topics, ladder),
            edges=_keyed(detached_edges(edges, topics, ladder)),
            summaries=summaries(fields, topics, ladder, self._policy),
        )


def _levels(topics: pl.DataFrame, ladder: LadderState) -> dict[str, int]:
    archived = topics.join(ladder.archived, on="topic_id", how="semi").height
    return {
        "active": topics.height - archived,
        "detached": pl.concat([ladder.fields["topic_id"], ladder.edges["from_id"]]).n_unique(),
        "archived": archived,
        "summarised": ladder.summaries.height,
    }


def _with_state(topics: pl.DataFrame, ladder: LadderState) -> pl.DataFrame:
    """Topics (by number) with `state` and `pinned`."""
    archived, pins = (pl.col("id").is_in(rows["topic_id"].implode()) for rows in (ladder.archived, ladder.pins))
    state = pl.when(archived).then(pl.lit("archived")).otherwise(pl.lit("active"))
    return topics.drop("topic_id", "since").with_columns(state=state, pinned=pins)


def _between(edges: pl.DataFrame, topics: pl.Series) -> pl.DataFrame:
    """Edges with both ends among some topics."""
    ids = topics.implode()
    return edges.filter(pl.col("from_id").is_in(ids) & pl.col("to_id").is_in(ids))


def _keyed(steps: tuple[pl.DataFrame, pl.DataFrame]) -> tuple[pl.DataFrame, pl.DataFrame]:
    down, up = (rows.with_columns(from_id="topic_id") for rows in steps)
    return down, up
