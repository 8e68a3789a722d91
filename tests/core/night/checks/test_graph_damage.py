"""One row of a small graph is changed without a decision, and the condition that covers it detects it.

The graph is made by the real fold and the real review queue; the salience step has not run, so C6 is left out.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memstate_core.model.graph_tables import EDGES, REVISIONS, TOPICS
from memstate_core.model.ledger_tables import DECISION
from memstate_core.model.step_frames import CHANGES
from memstate_core.night.checks.bounds import bounded_state
from memstate_core.night.checks.check import Check
from memstate_core.night.checks.dependency import dependency_consistency
from memstate_core.night.checks.provenance import provenance
from memstate_core.night.checks.query_soundness import query_soundness
from memstate_core.night.checks.transition_soundness import transition_soundness
from memstate_core.policy.settings import Policy
from memstate_core.revise.dependency import queue_reviews
from memstate_core.state.fold.fold import State
from memstate_core.state.graph import EDGE, FIELD, REVIEW, REVISION, TOPIC, Graph, open_graph
from tests.core import reference
from tests.core.frames import filled
from tests.core.night.checks.checked_states import checked_state_of, tables
from tests.core.strategies import (
    BUFFER_MIB,
    SCOPES,
    begin,
    day,
    edge,
    evidence_frame,
    fill,
    folded,
    merge_decisions,
    observation,
)
from tests.core.strategies import field as stated

pytestmark = pytest.mark.slow

AYA, KITE = SCOPES
STREAM = [
    observation(1, topic_id="deal", title="Acme renewal", fields=[stated("owner", '"Aya"'), stated("stage", "1")]),
    observation(2, topic_id="deal", observed_at=day(1), fields=[stated("owner", '"Ben"')]),
    observation(3, topic_id="deal", observed_at=day(2), fields=[stated("owner", '"Cleo"')]),
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
BOUND = Policy(topic_count_soft_limit=ACTIVE, max_active_topics=ACTIVE)


@dataclass
class Night:
    """A graph with the ledger's record of it, the graph that the run started from, and what it decided."""

    graph: Path
    base: Path
    state: State
    earlier: pl.DataFrame
    last: pl.DataFrame
    policy: Policy = BOUND
    stream: list[reference.Observation] = field(default_factory=lambda: STREAM)

    def verdicts(self, base: bool = True) -> dict[str, Check]:
        """C1 to C5, by name."""
        state = self.state
        checked = checked_state_of(
            self.graph,
            evidence_frame(self.stream),
            self.earlier,
            self.last,
            policy=self.policy,
            aliases=state.aliases,
            held=state.evidence_topic,
        )
        found = [
            query_soundness(checked),
            transition_soundness(checked, tables(self.base).revisions if base else None),
            dependency_consistency(checked),
            provenance(checked),
            bounded_state(checked),
        ]
        return {check.name: check for check in found}

    def violations(self) -> dict[str, set[tuple[str, str]]]:
        """Failed checks with their (checked, problem)."""
        return {name: set(check.violations.rows()) for name, check in self.verdicts().items() if not check.passed}

    def damage(self, how: Callable[[Graph], None]) -> None:
        """Changes the graph without a decision."""
        with open_graph(self.graph, buffer_mib=BUFFER_MIB) as graph:
            how(graph)

    def decides(self, *rows: pl.DataFrame) -> None:
        """Decisions of earlier runs that the graph does not show."""
        self.earlier = pl.concat([self.earlier, *rows])


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Night:
    """A night without violations; its graph is copied for every test."""
    run = begin(tmp_path_factory.mktemp("sound") / "run", **BOUND.model_dump())
    state = folded(STREAM, recorded())
    with open_graph(run.graph, buffer_mib=BUFFER_MIB) as graph:
        fill(graph, state)
    changed = filled(pl.DataFrame({"topic_id": ["deal"], "scope": [AYA], "change": ["updated"]}), CHANGES)
    queued = queue_reviews(run, changed).decisions
    assert queued is not None
    return Night(run.graph, run.graph, state, recorded(), pl.concat([decision("topic_updated", "deal", {}), queued]))


@pytest.fixture
def night(sound: Night, tmp_path: Path) -> Night:
    for name in ("graph.kuzu", "base.kuzu"):
        shutil.copyfile(sound.graph, tmp_path / name)
    return replace(sound, graph=tmp_path / "graph.kuzu", base=tmp_path / "base.kuzu")


def recorded() -> pl.DataFrame:
    merged = merge_decisions([("again", "deal")], reference.fold(STREAM))
    return pl.concat([merged, decision("archived", "faded", {"salience": 0.01, "by": "threshold"})])


def decision(kind: str, topic: str, payload: dict[str, Any]) -> pl.DataFrame:
    row = {"kind": kind, "scope": AYA, "topic_id": topic, "payload_json": json.dumps(payload), "reason": "a test"}
    return filled(pl.DataFrame([row]), DECISION)


# Parts of the damages below


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
    row = {"id": topic, "scope": AYA, "state": "active", "archived": False, "pinned": False} | values
    return lambda graph: graph.insert(TOPIC, filled(pl.DataFrame([row]), TOPICS))


def add_edge(start: str, kind: str, end: str, *evidence: str, since: float = 0) -> Callable[[Graph], None]:
    row = {"from_id": start, "to_id": end, "kind": kind, "evidence_ids": [*evidence], "detached": False}
    row |= {"valid_from": day(since)}
    schema = {name: EDGES[name] for name in row}
    return lambda graph: graph.insert(EDGE, filled(pl.DataFrame([row], schema=schema), EDGES))


def swap_newest_two(graph: Graph) -> None:
    """The second newest value and the newest swap places and times, so that each history looks correct."""
    newest, older = revision(graph, 0), revision(graph, 1)
    rows = {"id": [newest, older], "rank": [1, 0], "valid_from": [day(1), day(2)]}
    graph.update(REVISION, pl.DataFrame(rows, schema={name: REVISIONS[name] for name in rows}))


def delete(table: Any, **key: str) -> Callable[[Graph], None]:
    return lambda graph: graph.delete(table, pl.DataFrame([key]))


def no_field_rows(graph: Graph) -> None:
    found = graph.read(FIELD, ["id"], "r.topic_id = 'deal' AND r.name = 'stage'")
    graph.delete(FIELD, found)


def detach_field(graph: Graph) -> None:
    found = graph.read(FIELD, ["id"], "r.topic_id = 'deal' AND r.name = 'stage'")
    graph.update(FIELD, found.with_columns(detached=pl.lit(True)))


def detach_edge(graph: Graph) -> None:
    mentions = graph.read(EDGE, where="r.kind = 'mentions'")
    graph.delete(EDGE, mentions.select(EDGE.key))
    graph.insert(EDGE, mentions.with_columns(detached=pl.lit(True)))


# The intact graph


def test_a_sound_night_passes_every_check(night: Night) -> None:
    assert night.violations() == {}
    assert list(night.verdicts()) == ["C1", "C2", "C3", "C4", "C5"]


def test_the_first_night_of_all_has_nothing_to_be_compared_with(night: Night) -> None:
    assert all(check.passed for check in night.verdicts(base=False).values())


def test_the_sound_night_holds_what_the_checks_are_about(night: Night) -> None:
    """Otherwise the damages below would damage nothing."""
    with open_graph(night.graph, read_only=True, buffer_mib=BUFFER_MIB) as graph:
        states = dict(graph.read(TOPIC, ["id", "state"]).iter_rows())
        queue = graph.read(REVIEW, ["topic_id"])["topic_id"].sort().to_list()
        owners = graph.read(REVISION, ["rank"], "r.topic_id = 'deal' AND r.name = 'owner'").height
    active = dict.fromkeys(("deal", "term", "clause", "lone", "far"), "active")
    assert states == active | {"again": "merged", "faded": "archived"}
    assert queue == ["clause", "term"]
    assert owners == 3


# One damage, one verdict

RANKS, OUTRANKED = "ranks are not 0, 1, 2 …", "a revision outranks a newer one"
UNPAIRED = "a field without a current revision, or a revision without its field"
MARKS, LOST = "state, archived and merged_into contradict each other", "a tombstone does not lead to a living topic"
UNDECIDED, REVIVED = "its state follows from no recorded decision", "a superseded value became current"
NOT_WAITING = "it was queued for review and does not wait"
UNQUEUED = "depends on a change and is not queued for review"
FOREIGN, UNFOUNDED = "a value cites evidence that its topic does not hold", "a topic without evidence"
FOREIGN_EDGE = "an edge cites evidence that its topic does not hold"
HOMELESS = "evidence of no living topic"
UNMARKED = "what is detached follows from no recorded decision"

DAMAGES: dict[str, tuple[Callable[[Graph], None], str, str, str]] = {
    "a gap between ranks": (set_revision(2, rank=7), "C1", "deal", RANKS),
    "two revisions of one rank": (set_revision(2, rank=1), "C1", "deal", RANKS),
    "an older one on top": (set_revision(0, valid_from=day(-3)), "C1", "deal", OUTRANKED),
    "a newer one below": (set_revision(2, valid_from=day(30)), "C1", "deal", OUTRANKED),
    "a field without a value": (drop_revision(0, "stage"), "C1", "deal", UNPAIRED),
    "a value without a field": (no_field_rows, "C1", "deal", UNPAIRED),
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
    "a field detached by nobody": (detach_field, "C2", "deal", UNMARKED),
    "an edge detached by nobody": (detach_edge, "C2", "term", UNMARKED),
    "a dependent that does not wait": (delete(REVIEW, id="term"), "C3", "term", NOT_WAITING),
    "a dependent of one that waits": (delete(REVIEW, id="clause"), "C3", "clause", NOT_WAITING),
    "a value that cites another topic": (set_revision(1, evidence_ids=["e06"]), "C4", "deal", FOREIGN),
    "a value that cites nothing real": (set_revision(1, evidence_ids=["e02", "e99"]), "C4", "deal", FOREIGN),
    "a value whose sources are gone": (set_revision(1, evidence_ids=None), "C4", "deal", FOREIGN),
    "a value that cites nothing at all": (set_revision(1, evidence_ids=[]), "C4", "deal", FOREIGN),
    "a value that cites another value": (
        set_revision(1, evidence_ids=["e03"]), "C4", "deal", "a value that none of its evidence states"
    ),
    "an edge that cites its other end": (add_edge("far", "mentions", "lone", "e06"), "C4", "far", FOREIGN_EDGE),
    "an edge that cites nothing at all": (add_edge("lone", "mentions", "deal"), "C4", "lone", FOREIGN_EDGE),
    "an edge that its evidence does not state": (
        add_edge("lone", "mentions", "deal", "e06"), "C4", "lone", "an edge that none of its evidence states"
    ),
    "a topic from nowhere": (add_topic("ghost", scope=KITE), "C4", "ghost", UNFOUNDED),
    "a topic that is gone": (delete(TOPIC, id="far"), "C4", "e09", HOMELESS),
    "a topic of another scope": (set_topic("far", scope="user:ben"), "C4", "far", "it holds evidence of another scope"),
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


def test_a_superseded_value_on_top_is_older_than_the_newest_and_was_below_it(night: Night) -> None:
    night.damage(swap_newest_two)
    found = night.violations()
    assert ("deal", REVIVED) in found["C2"]
    assert list(found) == ["C1", "C2"]


@pytest.mark.parametrize(("start", "kind", "end"), [("lone", "part_of", "deal"), ("deal", "has_detail", "lone")])
def test_one_more_dependent_of_the_change_has_to_wait(night: Night, start: str, kind: str, end: str) -> None:
    named = {"lone": 6, "deal": 3}[start]
    more = [
        {**said, "edges": [edge(kind, to_topic_id=end)]} if n == named else said for n, said in enumerate(STREAM, 1)
    ]
    night.stream = more
    night.damage(add_edge(start, kind, end, f"e{named:02}", since={"lone": 0, "deal": 2}[start]))
    assert night.violations() == {"C3": {("lone", UNQUEUED)}}


def test_association_with_a_change_asks_for_no_review(night: Night) -> None:
    edges = {6: edge("mentions", to_topic_id="deal"), 1: edge("associated_with", to_topic_id="lone")}
    night.stream = [{**said, "edges": [edges[n]] if n in edges else said["edges"]} for n, said in enumerate(STREAM, 1)]
    night.damage(add_edge("lone", "mentions", "deal", "e06"))
    night.damage(add_edge("deal", "associated_with", "lone", "e01"))
    assert night.violations() == {}


def test_beyond_the_cap_on_hops_nothing_has_to_wait(night: Night) -> None:
    """`clause` waits one hop further than the cap of this run lets a change reach."""
    night.policy = night.policy.model_copy(update={"dependency_max_hops": 1})
    night.last = night.last.filter(pl.col("topic_id") != "clause")
    night.damage(delete(REVIEW, id="clause"))
    assert night.violations() == {}


def test_over_the_bound(night: Night) -> None:
    night.policy = Policy(topic_count_soft_limit=3, max_active_topics=ACTIVE - 1)
    assert night.violations() == {"C5": {(AYA, "over the bound of 3 active topics")}}


# Damage beside the graph


def test_a_merge_that_the_graph_does_not_show(night: Night) -> None:
    night.decides(merge_decisions([("lone", "deal")], reference.fold(STREAM)))
    assert ("lone", UNDECIDED) in night.violations()["C2"]


def test_an_archiving_that_the_graph_does_not_show(night: Night) -> None:
    night.decides(decision("archived", "lone", {}))
    assert night.violations() == {"C2": {("lone", UNDECIDED)}}


def test_a_restored_topic_that_is_still_archived(night: Night) -> None:
    night.decides(decision("restored", "faded", {}))
    assert night.violations() == {"C2": {("faded", UNDECIDED)}}


DETACHED = {
    "a field": (detach_field, "deal", {"fields": ["stage"]}),
    "an edge": (detach_edge, "term", {"edges": [{"to": "lone", "kind": "mentions"}]}),
}


@pytest.mark.parametrize(("damage", "topic", "payload"), DETACHED.values(), ids=DETACHED)
def test_what_is_detached_needs_a_decision_in_force(
    night: Night, damage: Callable[[Graph], None], topic: str, payload: dict[str, Any]
) -> None:
    night.damage(damage)
    assert night.violations() == {"C2": {(topic, UNMARKED)}}
    night.decides(decision("detached", topic, payload))
    assert night.violations() == {}
    night.decides(decision("attached", topic, payload))
    assert night.violations() == {"C2": {(topic, UNMARKED)}}


@pytest.mark.parametrize(("topic", "payload"), [row[1:] for row in DETACHED.values()], ids=DETACHED)
def test_a_decision_to_detach_must_show_in_the_graph(night: Night, topic: str, payload: dict[str, Any]) -> None:
    night.decides(decision("detached", topic, payload))
    assert night.violations() == {"C2": {(topic, UNMARKED)}}


def test_merges_in_a_circle(night: Night) -> None:
    night.decides(
        *(decision("merged", one, {"survivor": other}) for one, other in (("lone", "term"), ("term", "lone")))
    )
    assert ("lone", "its merges lead in a circle") in night.violations()["C2"]
