"""Turns and the segments that they were placed in, as `tests.core.reference` and the ledger read them."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
from hypothesis import strategies as st

from memstate_core.model.ids import uuid_text
from memstate_core.model.ledger_tables import TRANSITIONS
from memstate_core.model.step_frames import SEGMENTS
from memstate_core.state.fold.decisions import segment_decisions
from tests.core.frames import filled
from tests.core.reference import Observation, Segment
from tests.core.strategies import SCOPES, day, observation

PEOPLE = ("Aya", "Ben")
NIGHT = 6
"""The day of the night that placed all turns."""

described = st.fixed_dictionaries(
    {
        "days": st.lists(st.integers(0, NIGHT), min_size=1, max_size=3).map(sorted),
        "title": st.sampled_from(("The garden", "A longer word on the garden")),
        "summary": st.sampled_from(("They dig.", "They plant beans.")),
        "participants": st.lists(st.sampled_from(PEOPLE), unique=True).map(sorted),
        "session_id": st.sampled_from((None, "s1", "s2")),
        "renews": st.sampled_from(("title_and_summary", "summary", "nothing")),
    }
)


@st.composite
def conversations(draw: st.DrawFn, topics: Sequence[str], size: int = 3) -> tuple[list[Observation], list[Segment]]:
    """Turns, and segments of theirs that begin a topic or continue one of these or an earlier one."""
    turns: list[Observation] = []
    segments: list[Segment] = []
    for said in draw(st.lists(described, max_size=size)):
        own = [
            observation(100 + len(turns) + place, scope=SCOPES[0], observed_at=day(number), actor=PEOPLE[0])
            for place, number in enumerate(said["days"])
        ]
        turns += own
        names = [turn["evidence_id"] for turn in own]
        fresh = uuid_text("segment", SCOPES[0], names[0])
        topic = draw(st.sampled_from([fresh, *topics, *(segment["topic_id"] for segment in segments)]))
        segments.append(_segment(said, names, topic, topic == fresh))
    return turns, segments


def _segment(said: dict[str, object], names: list[str], topic: str, begins: bool) -> Segment:
    days, renews = said["days"], said["renews"]
    assert isinstance(days, list)
    return {
        "topic_id": topic,
        "scope": SCOPES[0],
        "evidence_ids": names,
        "title": said["title"] if begins or renews == "title_and_summary" else None,
        "summary": said["summary"] if begins or renews != "nothing" else None,
        "topic_kind": "conversation" if begins else None,
        "participants": said["participants"],
        "session_id": said["session_id"],
        "began_at": day(days[0]),
        "ended_at": day(days[-1]),
        "stated": True,
    }


def segments_by(segments: Sequence[Segment], number: float) -> list[Segment]:
    """Segments as they were on a day: those that had not ended state nothing."""
    return [segment | {"stated": segment["ended_at"] <= day(number)} for segment in segments]


def segment_frame(segments: Sequence[Segment]) -> pl.DataFrame:
    """Columns SEGMENTS."""
    rows = [
        {name: segment[name] for name in SEGMENTS if name in segment} | {"fields": [], "links": []}
        for segment in segments
    ]
    return filled(pl.DataFrame(rows, schema={name: SEGMENTS[name] for name in (rows[0] if rows else ())}), SEGMENTS)


def placed_in_the_night(segments: Sequence[Segment]) -> pl.DataFrame:
    """Segments as recorded decisions (kind, scope, topic_id, evidence_ids, payload_json, at)."""
    recorded = segment_decisions(segment_frame(segments))
    return recorded.with_columns(at=pl.lit(day(NIGHT), TRANSITIONS["at"]))
