"""A fold of what changed, with the rest taken over, is the fold of everything: over random pairs of states."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memstate_core.model.frames import empty
from memstate_core.model.ids import uuid_text
from memstate_core.model.ledger_tables import DECISION
from memstate_core.policy.settings import Policy
from memstate_core.state.fold.changed_topics import EarlierFold, changed_topics
from memstate_core.state.fold.decisions import merges as merges_in_force
from memstate_core.state.fold.fold import State, fold
from memstate_core.state.fold.holdings import holdings, known_topics
from memstate_core.state.fold.ladder_state import ladder_state
from memstate_core.state.fold.refold import fold_changed
from memstate_core.state.state_hash import canonical_lines
from tests.core import reference
from tests.core.frames import filled
from tests.core.reference import Observation
from tests.core.strategies import (
    KEYS,
    NAMED_IDS,
    SCOPES,
    accessed,
    day,
    edge,
    evidence_frame,
    field,
    merge_decisions,
    observation,
    placed,
    streams_with_merges,
)

POLICY = Policy(max_field_history=3)
OWNER = {"topics": "id", "fields": "topic_id", "revisions": "topic_id", "edges": "from_id"}
"""The column that names the topic of a row, by frame of a state."""


@dataclass(frozen=True)
class Moment:
    """A state of a shard: what its ledger holds then.

    Attributes:
        stream: its evidence, without what is set aside.
        decisions: columns DECISION, those of an earlier moment first.
        accesses: columns ACCESSES.
    """

    stream: Sequence[Observation]
    decisions: pl.DataFrame
    accesses: pl.DataFrame

    @cached_property
    def placed(self) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
        """Evidence, placements and aliases."""
        merged = merges_in_force(self.decisions)
        evidence = evidence_frame(self.stream)
        return evidence, *placed(evidence, settled=[*merged["dropped"], *merged["survivor"]])

    @cached_property
    def folded(self) -> State:
        """The fold of everything."""
        evidence, placements, aliases = self.placed
        return fold(evidence, placements, aliases, self.decisions, POLICY, self.accesses)


def refolded(before: Moment, now: Moment) -> tuple[State, int]:
    """The fold of what changed between two moments, with the other rows of the first; and the number of topics."""
    was = before.folded
    old, new = set(before.accesses["access_id"]), set(now.accesses["access_id"])
    ids = pl.col("access_id").is_in(list(old ^ new))
    earlier = EarlierFold(
        evidence_topic=was.evidence_topic,
        aliases=was.aliases,
        merged=merges_in_force(before.decisions),
        problems=was.problems,
        compressed=was.compressed,
        decided=now.decisions[before.decisions.height :],
        accessed=pl.concat([before.accesses, now.accesses]).filter(ids)["topic_id"],
    )
    references = was.fields.select("topic_id", to_id="ref_topic_id").drop_nulls()
    named = pl.concat([was.edges.select(topic_id="from_id", to_id="to_id"), references])
    evidence, placements, aliases = now.placed
    found = fold_changed(
        earlier,
        holdings(placements, aliases, now.decisions),
        evidence.select("evidence_id"),
        named,
        lambda wanted: evidence.filter(pl.col("evidence_id").is_in(wanted.implode())),
        ladder_state(now.decisions),
        POLICY,
        now.accesses,
    )
    assert found.owners is not None
    kept = {
        name: getattr(was, name).filter(~pl.col(owner).is_in(found.owners.implode())) for name, owner in OWNER.items()
    }
    return replace(
        found.state, **{name: pl.concat([kept[name], getattr(found.state, name)]) for name in OWNER}
    ), found.topics


def assert_same(before: Moment, now: Moment) -> None:
    (found, topics), expected = refolded(before, now), now.folded
    for name, frame in vars(expected).items():
        assert canonical_lines(name, getattr(found, name)) == canonical_lines(name, frame), name
    assert topics == expected.topics.height


# --- what may happen between two states

_NAMED = {"fields": ["owner"]}
STEPS: list[tuple[str, dict[str, Any]]] = [
    ("archived", {}), ("restored", {}), ("pinned", {}), ("unpinned", {}), ("detached", _NAMED), ("attached", _NAMED),
    ("summarised", {**_NAMED, "keep": 1}), ("expanded", _NAMED),
]  # fmt: skip


def steps(taken: Sequence[tuple[str, tuple[str, dict[str, Any]]]]) -> pl.DataFrame:
    """Decisions of the ladder (columns DECISION): a topic, and what is done with it."""
    rows = [{"kind": kind, "topic_id": topic, "payload_json": json.dumps(said)} for topic, (kind, said) in taken]
    return filled(pl.DataFrame(rows, schema=dict.fromkeys(("kind", "topic_id", "payload_json"), pl.String)), DECISION)


@st.composite
def lives(draw: st.DrawFn) -> tuple[Moment, Moment]:
    """Two states of a shard, with evidence, merges, undone merges, steps of the ladder and accesses in between."""
    stream, merges = draw(streams_with_merges())
    world = reference.fold(stream)
    topics = st.sampled_from(sorted({*world.topics, *NAMED_IDS[:6]}))
    taken = st.lists(st.tuples(topics, st.sampled_from(STEPS)), max_size=3)
    used = st.lists(st.builds(lambda topic, at: {"topic_id": topic, "at": at}, topics, st.integers(0, 9)), max_size=3)
    cut = draw(st.integers(0, len(merges)))
    first = pl.concat([merge_decisions(merges[:cut], world), steps(draw(taken))])
    undone = [merge for merge in merges[:cut] if draw(st.booleans())]
    later = [merge_decisions(undone, world, "unmerged"), merge_decisions(merges[cut:], world), steps(draw(taken))]
    accesses = accessed(*draw(used), *draw(used))
    new = draw(st.sets(st.integers(0, len(stream) - 1), max_size=2))
    early = [said for number, said in enumerate(stream) if number not in new]
    before = Moment(early, first, accesses[: draw(st.integers(0, accesses.height))])
    return before, Moment(stream, pl.concat([first, *later]), accesses)


@pytest.mark.slow
@settings(max_examples=150)
@given(lives())
def test_folding_what_changed_gives_the_fold_of_everything(life: tuple[Moment, Moment]) -> None:
    before, now = life
    assert_same(before, now)


@pytest.mark.slow
@settings(max_examples=50)
@given(lives())
def test_evidence_and_accesses_that_are_set_aside_leave_no_trace(life: tuple[Moment, Moment]) -> None:
    before, now = life
    assert_same(now, replace(before, decisions=now.decisions))


def _moment(*stream: Observation, decisions: pl.DataFrame | None = None) -> Moment:
    return Moment(stream, empty(DECISION) if decisions is None else decisions, accessed())


def test_an_edge_to_a_topic_that_comes_later_is_found() -> None:
    plan = observation(1, topic_key="plan", edges=[edge("part_of", to_topic_key="acme")])
    other = observation(2, topic_key="other", fields=[field("owner", '"Aya"')])
    assert_same(_moment(plan, other), _moment(plan, other, observation(3, topic_key="acme", observed_at=day(1))))


ACME, PLAN = (uuid_text("key", SCOPES[0], key) for key in KEYS)
TITLED = uuid_text("title", SCOPES[0], "", "plan b")
POINTING = observation(
    1,
    topic_key="diary",
    edges=[edge("mentions", to_topic_id=ACME), edge("part_of", to_topic_id=TITLED)],
    fields=[field("owner", '"Aya"', ref_given=True, ref_topic_id=ACME)],
)
"""It names two topics, and nothing of its own changes."""
NAMED = [observation(2, topic_key="acme", title="Acme"), observation(3, topic_key="plan", title="Plan B")]


def _merge(dropped: str, survivor: str, *, undone: bool = False) -> pl.DataFrame:
    kind = "unmerged" if undone else "merged"
    return merge_decisions([(dropped, survivor)], reference.fold([POINTING, *NAMED]), kind)


def test_what_a_topic_names_is_merged_and_unmerged() -> None:
    merged = _merge(ACME, PLAN)
    apart = pl.concat([merged, _merge(ACME, PLAN, undone=True)])
    moments = [_moment(POINTING, *NAMED, decisions=decisions) for decisions in (None, merged, apart)]
    assert [moment.folded.edges["to_id"].n_unique() for moment in moments] == [2, 1, 2]
    assert_same(moments[0], moments[1])
    assert_same(moments[1], moments[2])


def test_late_data_takes_over_a_title_that_another_topic_names() -> None:
    late = observation(4, topic_key="older plan", title="Plan B", observed_at=day(-1))
    before, now = _moment(POINTING, *NAMED), _moment(POINTING, *NAMED, late)
    ends = [moment.folded.edges.filter(pl.col("kind") == "part_of")["to_id"].to_list() for moment in (before, now)]
    assert ends == [[PLAN], [uuid_text("key", SCOPES[0], "older plan")]]
    assert_same(before, now)


def test_nothing_is_folded_where_nothing_changed() -> None:
    moment = _moment(observation(1, topic_key="plan", edges=[edge("part_of", to_topic_key="nobody")]))
    state = moment.folded
    _, placements, aliases = moment.placed
    held = holdings(placements, aliases, moment.decisions)
    earlier = EarlierFold(
        state.evidence_topic, state.aliases, held.merged, state.problems, state.compressed, moment.decisions,
        pl.Series("topic_id", [], pl.String),
    )  # fmt: skip
    known = known_topics(held.evidence_topic, held.merged)
    named = pl.DataFrame(schema={"topic_id": pl.String, "to_id": pl.String})
    assert changed_topics(earlier, held, known, named).owners.to_list() == []
