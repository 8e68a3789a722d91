"""The ladder state of a simulation: recorded decisions up to its beginning, later manual actions, its own steps.

Manual actions (pinning, restoring) do not depend on a policy, so they are applied on their day under any. Ids are the
numbers of `EventHistory`; the number of a field takes the place of its name.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

import polars as pl

from memstate_core.forget.simulation.event_history import EventHistory
from memstate_core.state.fold.decisions import PINNED, UNPINNED
from memstate_core.state.fold.ladder_state import LadderState, ladder_state
from memstate_core.state.graph import EDGE

Pair = tuple[pl.DataFrame, pl.DataFrame]
"""Rows that take a step, and rows that reverse it."""

FIELD = ["topic_id", "name"]
EDGE_KEY = list(EDGE.key)


@dataclass(frozen=True)
class LadderSteps:
    """The steps of a night: rows that take or reverse each (at least the key columns of `LadderState`)."""

    topics: Pair
    fields: Pair
    edges: Pair
    summaries: Pair


def ladder_at(history: EventHistory, moment: datetime) -> LadderState:
    """The ladder state by the recorded decisions up to a moment, in numbers."""
    return _numbered(history, ladder_state(history.decisions.filter(pl.col("at") <= moment)))


def after(ladder: LadderState, steps: LadderSteps) -> LadderState:
    """The ladder state after the steps of a night."""
    return replace(
        ladder,
        archived=_moved(ladder.archived, steps.topics, ["topic_id"]),
        fields=_moved(ladder.fields, steps.fields, FIELD),
        edges=_moved(ladder.edges, steps.edges, EDGE_KEY),
        summaries=_moved(ladder.summaries, steps.summaries, FIELD),
    )


class ManualActions:
    """Pins, unpins and restores by people, each at its time."""

    def __init__(self, history: EventHistory) -> None:
        """Selects the decisions of people among the recorded ones."""
        manual = pl.col("kind").is_in([PINNED, UNPINNED]) | pl.col("payload_json").str.contains(r'"last_event_at":\s*"')
        self._history = history
        self._decisions = history.decisions.filter(manual.fill_null(False))

    def applied(self, ladder: LadderState, since: datetime, moment: datetime) -> LadderState:
        """The ladder state after the manual actions in (since, moment]; they reverse every step on their topics."""
        if not self._decisions.filter(pl.col("at").is_between(since, moment, closed="right")).height:
            return ladder
        known = pl.col("at") <= moment
        now = _numbered(self._history, ladder_state(self._decisions.filter(known)))
        new = _numbered(self._history, ladder_state(self._decisions.filter(known & (pl.col("at") > since))))
        kept = pl.concat([new.held.select("topic_id"), new.pins.select("topic_id")])
        return replace(
            ladder,
            archived=ladder.archived.join(kept, on="topic_id", how="anti"),
            fields=ladder.fields.join(kept, on="topic_id", how="anti"),
            edges=ladder.edges.join(kept, left_on="from_id", right_on="topic_id", how="anti"),
            summaries=ladder.summaries.join(kept, on="topic_id", how="anti"),
            pins=now.pins,
            held=now.held,
        )


def _moved(current: pl.DataFrame, step: Pair, key: list[str]) -> pl.DataFrame:
    taken, back = step
    return pl.concat([current.join(back, on=key, how="anti"), taken.select(key)])


def _numbered(history: EventHistory, ladder: LadderState) -> LadderState:
    pins = ladder.pins.select(pl.col("topic_id").replace(history.merged["dropped"], history.merged["survivor"]))
    return LadderState(
        archived=history.numbered(ladder.archived),
        fields=_named(history, ladder.fields),
        edges=history.numbered(ladder.edges, "from_id", "to_id").select(EDGE_KEY),
        summaries=_named(history, ladder.summaries),
        pins=history.numbered(pins),
        held=history.numbered(ladder.held),
    )


def _named(history: EventHistory, fields: pl.DataFrame) -> pl.DataFrame:
    known = history.fields.select(*FIELD, _field="id")
    return history.numbered(fields).join(known, on=FIELD).select("topic_id", name="_field")
