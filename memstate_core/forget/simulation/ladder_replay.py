"""Where a rehearsal's ladder stands: recorded decisions up to its beginning, a person's later ones, its own steps.

What people decide (to pin a topic, to bring one back) is no matter of policy, so it is done on its day whatever
policy is rehearsed. Ids are the numbers of `Past`; a field's number stands in place of its name.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

import polars as pl

from memstate_core.forget.simulation.event_history import Past
from memstate_core.state.decisions import PINNED, UNPINNED
from memstate_core.state.graph import EDGE
from memstate_core.state.ladder_state import Rungs, rungs

Pair = tuple[pl.DataFrame, pl.DataFrame]
"""What takes a step, and what comes back."""

FIELD = ["topic_id", "name"]
LINK = list(EDGE.key)


@dataclass(frozen=True)
class Taken:
    """The steps of a night: what takes each, and what comes back (at least the key columns of `Rungs`)."""

    topics: Pair
    fields: Pair
    edges: Pair
    summaries: Pair


def standing_at(past: Past, moment: datetime) -> Rungs:
    """What recorded decisions up to a moment left standing, in numbers."""
    return _numbered(past, rungs(past.decisions.filter(pl.col("at") <= moment)))


def after(stand: Rungs, taken: Taken) -> Rungs:
    """Where a night leaves things."""
    return replace(
        stand,
        archived=_moved(stand.archived, taken.topics, ["topic_id"]),
        fields=_moved(stand.fields, taken.fields, FIELD),
        edges=_moved(stand.edges, taken.edges, LINK),
        summaries=_moved(stand.summaries, taken.summaries, FIELD),
    )


class Persons:
    """What people decided about forgetting, by the time when they did."""

    def __init__(self, past: Past) -> None:
        """Finds their decisions among the recorded ones."""
        theirs = pl.col("kind").is_in([PINNED, UNPINNED]) | pl.col("payload_json").str.contains(r'"last_event_at":\s*"')
        self._past = past
        self._decisions = past.decisions.filter(theirs.fill_null(False))

    def obeyed(self, stand: Rungs, since: datetime, moment: datetime) -> Rungs:
        """What stands once what they decided in (since, moment] is done; what they want kept is all there again."""
        if not self._decisions.filter(pl.col("at").is_between(since, moment, closed="right")).height:
            return stand
        known = pl.col("at") <= moment
        now = _numbered(self._past, rungs(self._decisions.filter(known)))
        new = _numbered(self._past, rungs(self._decisions.filter(known & (pl.col("at") > since))))
        kept = pl.concat([new.held.select("topic_id"), new.pins.select("topic_id")])
        return replace(
            stand,
            archived=stand.archived.join(kept, on="topic_id", how="anti"),
            fields=stand.fields.join(kept, on="topic_id", how="anti"),
            edges=stand.edges.join(kept, left_on="from_id", right_on="topic_id", how="anti"),
            summaries=stand.summaries.join(kept, on="topic_id", how="anti"),
            pins=now.pins,
            held=now.held,
        )


def _moved(standing: pl.DataFrame, step: Pair, key: list[str]) -> pl.DataFrame:
    taken, back = step
    return pl.concat([standing.join(back, on=key, how="anti"), taken.select(key)])


def _numbered(past: Past, stand: Rungs) -> Rungs:
    pins = stand.pins.select(pl.col("topic_id").replace(past.followed["dropped"], past.followed["survivor"]))
    return Rungs(
        archived=past.numbered(stand.archived),
        fields=_named(past, stand.fields),
        edges=past.numbered(stand.edges, "from_id", "to_id").select(LINK),
        summaries=_named(past, stand.summaries),
        pins=past.numbered(pins),
        held=past.numbered(stand.held),
    )


def _named(past: Past, fields: pl.DataFrame) -> pl.DataFrame:
    known = past.fields.select(*FIELD, _field="id")
    return past.numbered(fields).join(known, on=FIELD).select("topic_id", name="_field")
