"""Scopes in the fold: a merge never carries evidence into another scope, whatever makes its ends differ."""

from __future__ import annotations

import polars as pl
import pytest

from memstate_core.model.ids import uuid_text
from memstate_core.model.step_frames import PAIRS, PLACEMENTS
from memstate_core.placement.named import place_named
from memstate_core.revise.merge import decide
from memstate_core.state.fold import decisions as decided
from memstate_core.state.fold.fold import State
from memstate_core.state.fold.identity import across_scopes, homes
from tests.core import reference
from tests.core.frames import filled
from tests.core.reference import Merge, Observation
from tests.core.strategies import (
    EPOCH,
    NO_SEGMENTS,
    SCOPES,
    day,
    evidence_frame,
    field,
    folded,
    merge_decisions,
    observation,
)

MINE, THEIRS = SCOPES
KEY = uuid_text("key", THEIRS, "acme")
"""The id that the other scope's key will have; anybody can compute it."""


def occupied() -> list[Observation]:
    """A topic under the id of another scope's future key, and its near-twin."""
    return [
        observation(1, topic_id=KEY, title="Acme", summary="Ours now"),
        observation(2, topic_id="twin", title="Acme again", fields=[field("owner", '"Mallory"')]),
    ]


def taken_over() -> Observation:
    """The later observation of the other scope under its key."""
    said = {"scope": THEIRS, "topic_key": "acme", "title": "Acme", "summary": "Their secret", "observed_at": day(3)}
    return observation(3, fields=[field("price", "7")], **said)


def merged(stream: list[Observation], *merges: Merge) -> State:
    return folded(stream, merge_decisions(merges, reference.fold(occupied())))


@pytest.mark.parametrize("merge", [(KEY, "twin"), ("twin", KEY)])
def test_a_merge_with_an_end_in_another_scope_is_not_followed(merge: Merge) -> None:
    before = merged(occupied(), merge)
    assert set(before.evidence_topic["topic_id"]) == {merge[1]}
    after = merged([*occupied(), taken_over()], merge)
    owners = dict(after.topics.filter(pl.col("state") == "active").select("id", "scope").iter_rows())
    assert owners == {KEY: THEIRS, "twin": MINE}
    assert dict(after.evidence_topic.select("evidence_id", "topic_id").iter_rows()) == {"e02": "twin", "e03": KEY}
    fields = after.fields.select("topic_id", "name").rows()
    assert sorted(fields) == sorted([("twin", "owner"), (KEY, "price")])
    assert after.topics.filter(pl.col("id") == KEY)["summary"].item() == "Their secret"


@pytest.mark.parametrize("merge", [(KEY, "twin"), ("twin", KEY)])
def test_such_a_merge_is_undone_by_a_decision(merge: Merge) -> None:
    decisions = merge_decisions([merge], reference.fold(occupied()))
    in_force = decided.merges(decisions)
    frames = [evidence_frame(occupied()), evidence_frame([*occupied(), taken_over()])]
    before, after = (homes(place_named(frame, NO_SEGMENTS).placements) for frame in frames)
    assert across_scopes(in_force, before).is_empty()
    separations = decided.separations(across_scopes(in_force, after))
    assert separations.select("kind", "topic_id", "scope").rows() == [("unmerged", merge[0], MINE)]
    together = pl.concat([decisions, separations])
    assert decided.merges(together).is_empty()
    a, b = sorted(merge)
    assert decided.undone(together).select("a", "b").rows() == [(a, b)]


def test_merges_within_a_scope_are_followed_as_before() -> None:
    state = merged(occupied(), (KEY, "twin"))
    assert state.topics.filter(pl.col("id") == KEY)["merged_into"].item() == "twin"
    nobody = filled(pl.DataFrame(schema={}), PLACEMENTS)
    assert across_scopes(
        decided.merges(merge_decisions([(KEY, "twin")], reference.fold(occupied()))), homes(nobody)
    ).is_empty()


def test_no_decision_merges_topics_of_different_scopes() -> None:
    """Not even where pairs of both scopes form one group."""
    pair = {"scope": MINE, "probability": 0.99, "weight": 5.0, "band": "merge", "features": []}
    pairs = filled(pl.DataFrame([{"a": "a", "b": "b"} | pair, {"a": "b", "b": "c"} | pair]), PAIRS)
    topics = pl.DataFrame(
        [
            {"id": name, "scope": scope, "title": name, "topic_kind": None, "created_at": EPOCH}
            for name, scope in (("a", THEIRS), ("b", MINE), ("c", MINE))
        ],
        schema_overrides={"topic_kind": pl.String},
    )
    made = decide(pairs, topics)
    assert made.select("topic_id", "scope").rows() == [("c", MINE)]
    assert '"survivor":"b"' in made["payload_json"].item()
