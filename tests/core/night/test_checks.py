"""A sound graph passes C1 to C5, and each damage is seen by exactly the condition that is there to see it.

The graph comes about by the real fold and the real steps; then one row is changed behind their backs.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memstate_core.model.frames import CHANGES, DECISION, EDGES, PLACEMENTS, REVISIONS, TOPICS, conform
from memstate_core.night.checks import (
    Check,
    bounded_state,
    dependency_consistency,
    provenance_preservation,
    query_soundness,
    transition_soundness,
)
from memstate_core.placement.named import place_named
from memstate_core.revise.dependency import queue_reviews
from memstate_core.run.run import Run
from memstate_core.state.graph import EDGE, FIELD, REVIEW, REVISION, TOPIC, Graph, open_graph
from tests.core import reference
from tests.core.strategies import (
    BUFFER_MIB,
    NO_SEGMENTS,
    SCOPES,
    begin,
    day,
    edge,
    evidence_frame,
    field,
    fill,
    folded,
    merge_decisions,
    observation,
)

AYA, KITE = SCOPES
STREAM = [
    observation(1, topic_id="deal", title="Acme renewal", fields=[field("owner", '"Aya"'), field("stage", "1")]),
    observation(2, topic_id="deal", observed_at=day(1), fields=[field("owner", '"Ben"')]),
    observation(3, topic_id="deal", observed_at=day(2), fields=[field("owner", '"Cleo"')]),
    observation(4, topic_id="term", edges=[edge("part_of", to_topic_id="deal"), edge("mentions", to_topic_id="lone")]),
    observation(5, topic_id="clause", edges=[edge("part_of", to_topic_id="term")]),
    observation(6, topic_id="lone", summary="Nobody depends on it"),
    observation(7, topic_id="again", title="Acme renewal"),
    observation(8, topic_id="faded"),
    observation(9, topic_id="far", scope=KITE),
]
"""`again` is merged into `deal`; `faded` is archived; `deal` has changed, so `term` and `clause` wait for review."""

ACTIVE = 4
"""Active topics of the scope: deal, term, clause, lone. The bound is no higher."""


@dataclass
class Night:
    """A run in progress with the graph that it started from and what it changed and decided."""

    run: Run
    base: Path
    changed: pl.Series
    decisions: pl.DataFrame

    def verdicts(self, base: bool = True) -> dict[str, Check]:
        """All five checks, by name."""
        with open_graph(self.run.graph, read_only=True, buffer_mib=BUFFER_MIB) as graph:
            found = [
                query_soundness(graph),
                self._against_base(graph) if base else transition_soundness(graph, None, self.run, self.decisions),
                dependency_consistency(graph, self.changed, self.run),
                provenance_preservation(graph, self.run),
                bounded_state(graph, self.run),
            ]
        return {check.name: check for check in found}

    def violations(self) -> dict[str, set[tuple[str, str]]]:
        """Failed checks with their (subject, problem)."""
        return {name: set(check.violations.rows()) for name, check in self.verdicts().items() if not check.passed}

    def damage(self, how: Callable[[Graph], None]) -> None:
        """Changes the graph behind the steps' backs."""
        with open_graph(self.run.graph, buffer_mib=BUFFER_MIB) as graph:
            how(graph)

    def _against_base(self, graph: Graph) -> Check:
        with open_graph(self.base, read_only=True, buffer_mib=BUFFER_MIB) as base:
            return transition_soundness(graph, base, self.run, self.decisions)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scratch folder of a night after which everything is in order; copied for every test."""
    scratch = tmp_path_factory.mktemp("sound") / "run"
    run = begin(scratch, topic_count_soft_limit=ACTIVE, max_active_topics=ACTIVE)
    evidence, decided = evidence_frame(STREAM), recorded()
    state = folded(STREAM, decided)
    run.keep_table("placements", place_named(evidence, NO_SEGMENTS).placements)
    run.keep_table("links", state.links)
    run.decide("forgetting", decided.filter(pl.col("kind") == "archived"))
    with open_graph(run.graph, buffer_mib=BUFFER_MIB) as graph:
        fill(graph, state)
    queue_reviews(run, conform(pl.DataFrame({"topic_id": ["deal"], "scope": [AYA], "change": ["updated"]}), CHANGES))
    return scratch


@pytest.fixture
def night(sound: Path, tmp_path: Path) -> Night:
    scratch = tmp_path / "run"
    shutil.copytree(sound, scratch)
    run = Run.load(scratch)
    shutil.copyfile(run.graph, tmp_path / "base.kuzu")
    return Night(run, tmp_path / "base.kuzu", pl.Series(["deal"]), recorded())


def recorded() -> pl.DataFrame:
    merged = merge_decisions([("again", "deal")], reference.fold(STREAM))
    return pl.concat([merged, archived("faded", 0.01)])


def archived(topic: str, salience: float, reason: str = "it faded", by: str = "threshold") -> pl.DataFrame:
    payload = json.dumps({"salience": salience, "by": by, "active": ACTIVE + 1})
    row = {"kind": "archived", "scope": AYA, "topic_id": topic, "payload_json": payload, "reason": reason}
    return conform(pl.DataFrame([row]), DECISION)


# What the damages below are made of


def set_topic(topic: str, **values: Any) -> Callable[[Graph], None]:
    return lambda graph: graph.update(TOPIC, pl.DataFrame([{"id": topic, **values}], schema=only(TOPICS, values)))


def set_revision(rank: int, /, **values: Any) -> Callable[[Graph], None]:
    """Changes a revision of the deal's owner, of which there are three."""

    def damage(graph: Graph) -> None:
        row = {"id": revision(graph, rank), **values}
        graph.update(REVISION, pl.DataFrame([row], schema=only(REVISIONS, values)))

    return damage


def drop_revision(rank: int, name: str = "owner") -> Callable[[Graph], None]:
    return lambda graph: graph.delete(REVISION, pl.DataFrame({"id": [revision(graph, rank, name)]}))


def only(schema: Mapping[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    return {name: schema[name] for name in ("id", *values)}


def revision(graph: Graph, rank: int, name: str = "owner") -> str:
    found = graph.read(
        REVISION, ["id"], "r.topic_id = 'deal' AND r.name = $name AND r.rank = $rank", name=name, rank=rank
    )
    return str(found["id"].item())


def add_topic(topic: str, **values: Any) -> Callable[[Graph], None]:
    row = {"id": topic, "scope": AYA, "state": "active", "archived": False} | values
    return lambda graph: graph.insert(TOPIC, conform(pl.DataFrame([row]), TOPICS))


def add_edge(start: str, kind: str, end: str, *evidence: str) -> Callable[[Graph], None]:
    row = {"from_id": start, "to_id": end, "kind": kind, "evidence_ids": [*evidence]}
    schema = {name: EDGES[name] for name in row}
    return lambda graph: graph.insert(EDGE, conform(pl.DataFrame([row], schema=schema), EDGES))


def swap_newest_two(graph: Graph) -> None:
    """The second newest value and the newest trade places and times, so that each history looks sound."""
    newest, older = revision(graph, 0), revision(graph, 1)
    rows = {"id": [newest, older], "rank": [1, 0], "valid_from": [day(1), day(2)]}
    graph.update(REVISION, pl.DataFrame(rows, schema={name: REVISIONS[name] for name in rows}))


def delete(table: Any, **key: str) -> Callable[[Graph], None]:
    return lambda graph: graph.delete(table, pl.DataFrame([key]))


def no_field_rows(graph: Graph) -> None:
    found = graph.read(FIELD, ["id"], "r.topic_id = 'deal' AND r.name = 'stage'")
    graph.delete(FIELD, found)


# The sound graph


def test_a_sound_night_passes_every_check(night: Night) -> None:
    assert night.violations() == {}
    assert list(night.verdicts()) == ["C1", "C2", "C3", "C4", "C5"]


def test_the_first_night_of_all_has_nothing_to_be_compared_with(night: Night) -> None:
    assert all(check.passed for check in night.verdicts(base=False).values())


def test_the_sound_night_holds_what_the_checks_are_about(night: Night) -> None:
    """Otherwise the damages below would damage nothing."""
    with open_graph(night.run.graph, read_only=True, buffer_mib=BUFFER_MIB) as graph:
        states = dict(graph.read(TOPIC, ["id", "state"]).iter_rows())
        queue = graph.read(REVIEW, ["topic_id"])["topic_id"].sort().to_list()
        owners = graph.read(REVISION, ["rank"], "r.topic_id = 'deal' AND r.name = 'owner'").height
    active = dict.fromkeys(("deal", "term", "clause", "lone", "far"), "active")
    assert states == active | {"again": "merged", "faded": "archived"}
    assert queue == ["clause", "term"]
    assert owners == 3


# One damage, one verdict

RANKS, OUTRANKED = "ranks are not 0, 1, 2 …", "a revision outranks a newer one"
BARE = "a field without a current revision, or the other way round"
MARKS, LOST = "state, archived and merged_into contradict each other", "a tombstone does not lead to a living topic"
UNDECIDED, REVIVED = "its state follows from no recorded decision", "a superseded value became current"
UNQUEUED = "depends on a change and is not queued for review"
UNHEARD, UNFOUNDED = "a value or edge without evidence in its topic", "a topic without evidence"
HOMELESS, VANISHED = "evidence of no living topic", "placed evidence that was lost"

DAMAGES: dict[str, tuple[Callable[[Graph], None], str, str, str]] = {
    "a gap between ranks": (set_revision(2, rank=7), "C1", "deal", RANKS),
    "two revisions of one rank": (set_revision(2, rank=1), "C1", "deal", RANKS),
    "an older one on top": (set_revision(0, valid_from=day(-3)), "C1", "deal", OUTRANKED),
    "a newer one below": (set_revision(2, valid_from=day(30)), "C1", "deal", OUTRANKED),
    "a field without a value": (drop_revision(0, "stage"), "C1", "deal", BARE),
    "a value without a field": (no_field_rows, "C1", "deal", BARE),
    "marked archived while active": (set_topic("lone", archived=True), "C1", "lone", MARKS),
    "not marked archived though it is": (set_topic("faded", archived=False), "C1", "faded", MARKS),
    "leading elsewhere while alive": (set_topic("lone", merged_into="deal"), "C1", "lone", MARKS),
    "a tombstone that leads nowhere": (set_topic("again", merged_into=None), "C1", "again", MARKS),
    "a tombstone that leads to nobody": (set_topic("again", merged_into="ghost"), "C1", "again", LOST),
    "a tombstone that leads to itself": (set_topic("again", merged_into="again"), "C1", "again", LOST),
    "archived by nobody": (set_topic("lone", state="archived", archived=True), "C2", "lone", UNDECIDED),
    "a tombstone that nobody merged": (
        add_topic("ghost", state="merged", merged_into="deal"), "C2", "ghost", UNDECIDED
    ),
    "detached by nobody": (set_topic("lone", state="detached"), "C2", "lone", UNDECIDED),
    "a superseded value on top": (swap_newest_two, "C2", "deal", REVIVED),
    "a dependent that does not wait": (delete(REVIEW, id="term"), "C3", "term", UNQUEUED),
    "a dependent of one that waits": (delete(REVIEW, id="clause"), "C3", "clause", UNQUEUED),
    "one more dependent of the change": (add_edge("lone", "part_of", "deal", "e06"), "C3", "lone", UNQUEUED),
    "one more detail of the change": (add_edge("deal", "has_detail", "lone", "e01"), "C3", "lone", UNQUEUED),
    "a value that cites another topic": (set_revision(1, evidence_ids=["e06"]), "C4", "deal", UNHEARD),
    "a value that cites nothing real": (set_revision(1, evidence_ids=["e02", "e99"]), "C4", "deal", UNHEARD),
    "a value whose sources are gone": (set_revision(1, evidence_ids=None), "C4", "deal", UNHEARD),
    "an edge that cites its other end": (add_edge("far", "mentions", "lone", "e06"), "C4", "far", UNHEARD),
    "a topic from nowhere": (add_topic("ghost", scope=KITE), "C4", "ghost", UNFOUNDED),
    "a topic that is gone": (delete(TOPIC, id="far"), "C4", "e09", HOMELESS),
    "one active topic too many": (set_topic("far", scope=AYA), "C5", AYA, "over the bound"),
}  # fmt: skip


@pytest.mark.parametrize(("damage", "check", "subject", "problem"), DAMAGES.values(), ids=DAMAGES)
def test_damage_is_seen_by_the_check_that_is_there_for_it(
    night: Night, damage: Callable[[Graph], None], check: str, subject: str, problem: str
) -> None:
    night.damage(damage)
    found = night.violations()
    assert list(found) == [check]
    assert (subject, problem) in found[check]
    assert {named for named, _ in found[check]} == {subject}


@pytest.mark.parametrize("damage", [set_revision(1, evidence_ids=[]), add_edge("lone", "mentions", "deal")])
def test_a_value_or_an_edge_that_cites_nothing_at_all(night: Night, damage: Callable[[Graph], None]) -> None:
    night.damage(damage)
    assert list(night.violations()) == ["C4"]


def test_association_with_a_change_asks_for_no_review(night: Night) -> None:
    night.damage(add_edge("lone", "mentions", "deal", "e06"))
    night.damage(add_edge("deal", "associated_with", "lone", "e01"))
    assert night.violations() == {}


def test_beyond_the_cap_on_hops_nothing_has_to_wait(night: Night) -> None:
    """`clause` waits one hop further than the cap of this run lets a change reach."""
    night.run.policy = night.run.policy.model_copy(update={"dependency_max_hops": 1})
    night.damage(delete(REVIEW, id="clause"))
    assert night.violations() == {}


# Damage beside the graph


def test_a_merge_that_the_graph_does_not_show(night: Night) -> None:
    more = merge_decisions([("lone", "deal")], reference.fold(STREAM))
    night.decisions = pl.concat([night.decisions, more])
    assert night.violations() == {"C2": {("lone", UNDECIDED)}}


def test_an_archiving_that_the_graph_does_not_show(night: Night) -> None:
    night.decisions = pl.concat([night.decisions, archived("lone", 0.01)])
    assert night.violations() == {"C2": {("lone", UNDECIDED)}}


def test_a_restored_topic_that_is_still_archived(night: Night) -> None:
    restored = archived("faded", 0.01).with_columns(kind=pl.lit("restored"))
    night.decisions = pl.concat([night.decisions, restored])
    assert night.violations() == {"C2": {("faded", UNDECIDED)}}


AGAINST_POLICY = "archived though policy does not ask for it"


def test_archiving_what_is_not_low_under_no_bound(night: Night) -> None:
    """The scope is below its bound once `lone` has left, so only the salience can be a reason."""
    night.run.policy = night.run.policy.model_copy(update={"max_active_topics": 100})
    night.run.decide("forgetting", archived("faded", 0.5))
    assert night.violations() == {"C2": {("faded", AGAINST_POLICY)}}


def test_archiving_below_the_soft_limit(night: Night) -> None:
    limits = {"topic_count_soft_limit": ACTIVE + 2, "max_active_topics": 100}
    night.run.policy = night.run.policy.model_copy(update=limits)
    assert night.violations() == {"C2": {("faded", AGAINST_POLICY)}}


def test_archiving_over_the_bound_needs_no_low_salience(night: Night) -> None:
    night.run.decide("forgetting", archived("faded", 7.0, reason="over the bound", by="bound"))
    assert night.violations() == {}


def test_late_data_below_what_was_current_revives_nothing(night: Night) -> None:
    """A value between the newest two moves ranks, and no superseded one to the top."""
    late = observation(10, topic_id="deal", observed_at=day(1.5), fields=[field("owner", '"Dan"')])
    state = folded([*STREAM, late], night.decisions)
    night.run.keep_table("links", state.links)
    with open_graph(night.run.graph, buffer_mib=BUFFER_MIB) as graph:
        fill(graph, state)
    assert night.violations() == {}


def test_a_value_that_returns_with_new_evidence_is_a_new_revision(night: Night) -> None:
    again = observation(10, topic_id="deal", observed_at=day(3), fields=[field("owner", '"Ben"')])
    state = folded([*STREAM, again], night.decisions)
    night.run.keep_table("links", state.links)
    with open_graph(night.run.graph, buffer_mib=BUFFER_MIB) as graph:
        fill(graph, state)
    assert night.violations() == {}


def test_links_to_nobody_and_placements_without_a_link(night: Night) -> None:
    links = night.run.table("links", {"evidence_id": pl.String, "topic_id": pl.String})
    placements = night.run.table("placements", PLACEMENTS)
    ghost = pl.DataFrame({"evidence_id": ["e98"], "topic_id": ["ghost"]})
    night.run.keep_table("links", pl.concat([links, ghost]))
    night.run.keep_table(
        "placements", pl.concat([placements, conform(ghost.with_columns(evidence_id=pl.lit("e99")), PLACEMENTS)])
    )
    assert night.violations() == {"C4": {("e98", HOMELESS), ("e99", VANISHED)}}


def test_a_refused_piece_of_evidence_needs_no_topic(night: Night) -> None:
    placements = night.run.table("placements", PLACEMENTS)
    refused = conform(pl.DataFrame({"evidence_id": ["e99"], "operation": ["refused"]}), PLACEMENTS)
    night.run.keep_table("placements", pl.concat([placements, refused]))
    assert night.violations() == {}


def test_a_tombstone_may_not_keep_its_evidence(night: Night) -> None:
    """Evidence of the dropped topic belongs to the survivor; left behind, it reaches nobody."""
    links = night.run.table("links", {"evidence_id": pl.String, "topic_id": pl.String})
    left = pl.when(pl.col("evidence_id") == "e07").then(pl.lit("again")).otherwise("topic_id")
    night.run.keep_table("links", links.with_columns(topic_id=left))
    found = night.violations()
    assert list(found) == ["C4"]
    assert ("e07", HOMELESS) in found["C4"]


def test_the_bound_is_counted_in_each_scope_alone(night: Night) -> None:
    night.damage(add_topic("ghost", scope=KITE))
    assert "C5" not in night.violations()
