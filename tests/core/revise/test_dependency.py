"""A change queues what depends on it: over extension edges, many hops, ending in circles and at caps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstate_core.model.frames import MOMENT, empty
from memstate_core.model.graph_tables import REVIEWS
from memstate_core.model.ledger_tables import DECISION, TRANSITIONS
from memstate_core.model.step_frames import CHANGES
from memstate_core.night.checks.dependency import dependency_consistency
from memstate_core.policy.settings import Policy
from memstate_core.revise.dependency import queue_reviews, recorded_queue
from memstate_core.run.run import Run
from memstate_core.state.fold.dependents import affected, dependents
from memstate_core.state.fold.edges import EXTENSION_KINDS
from memstate_core.state.graph import EDGE, REVIEW, open_graph
from tests.core.frames import filled
from tests.core.night.checks.checked_states import checked_state_of
from tests.core.strategies import BUFFER_MIB, SCOPES, begin, day, edge, evidence_frame, fill, folded, observation

Pair = tuple[str, str]
"""A base and what depends on it."""

TOPICS = "abcdefg"
NAMES = f"{TOPICS}xyz"
webs = st.lists(st.tuples(st.sampled_from(TOPICS), st.sampled_from(TOPICS)), max_size=16)
changes = st.lists(st.sampled_from(TOPICS), max_size=3)


def web(pairs: Sequence[Pair]) -> pl.DataFrame:
    return pl.DataFrame(pairs, orient="row", schema={"base": pl.String, "dependent": pl.String}).unique()


def topics(scopes: Mapping[str, str]) -> pl.DataFrame:
    """The topics by name; those in `scopes` have that scope, all others the first."""
    return pl.DataFrame({"topic_id": [*NAMES], "scope": [scopes.get(name, SCOPES[0]) for name in NAMES]})


def reached(
    changed: Sequence[str], pairs: Sequence[Pair], scopes: Mapping[str, str] = MappingProxyType({}), **policy: int
) -> dict[str, int]:
    """Topics and hops that `affected` answers, in its order."""
    found = affected(pl.Series([*changed], dtype=pl.String), web(pairs), topics(scopes), Policy(**policy))
    return dict(found.select("topic_id", "hops").iter_rows())


def by_a_plain_search(changed: Sequence[str], pairs: Sequence[Pair], max_hops: int) -> dict[str, tuple[int, str]]:
    """Breadth first, one topic at a time; of equally near causes the first by id."""
    found = {topic: (0, topic) for topic in changed}
    for hop in range(1, max_hops + 1):
        near = {topic: cause for topic, (hops, cause) in found.items() if hops == hop - 1}
        for base, dependent in sorted(pairs, key=lambda pair: near.get(pair[0], "")):
            if base in near and dependent not in found:
                found[dependent] = (hop, near[base])
    return {topic: place for topic, place in found.items() if place[0] > 0}


# Which way an edge points


@pytest.mark.parametrize("kind", ["has_detail", "has_subtopic"])
def test_a_detail_or_subtopic_depends_on_what_has_it(kind: str) -> None:
    assert dependence([("whole", "detail", kind)]) == [("whole", "detail")]


@pytest.mark.parametrize("kind", ["part_of", "extends", "derives"])
def test_a_part_an_extension_or_a_derivation_depends_on_where_it_points(kind: str) -> None:
    assert dependence([("part", "whole", kind)]) == [("whole", "part")]


def test_every_extension_kind_has_a_direction() -> None:
    assert set(EXTENSION_KINDS) == {"has_detail", "has_subtopic", "part_of", "extends", "derives"}


@pytest.mark.parametrize("kind", ["associated_with", "mentions", "references", "supports", "contradicts", "supersedes"])
def test_association_is_no_dependence(kind: str) -> None:
    assert dependence([("one", "other", kind), ("other", "one", kind)]) == []


def test_said_in_both_directions_it_is_one_dependence() -> None:
    assert dependence([("whole", "part", "has_subtopic"), ("part", "whole", "part_of")]) == [("whole", "part")]


def dependence(edges: list[tuple[str, str, str]]) -> list[Pair]:
    frame = pl.DataFrame(edges, orient="row", schema=dict.fromkeys(("from_id", "to_id", "kind"), pl.String))
    return dependents(frame).rows()


# How far a change reaches


@given(changes, webs, st.integers(1, 8))
def test_it_reaches_what_a_plain_search_finds(changed: list[str], pairs: list[Pair], max_hops: int) -> None:
    policy = Policy(dependency_max_hops=max_hops)
    found = affected(pl.Series(changed, dtype=pl.String), web(pairs), topics({}), policy)
    expected = by_a_plain_search(changed, pairs, max_hops)
    assert {row[0]: (row[2], row[1]) for row in found.iter_rows()} == expected
    assert found["hops"].is_sorted()


def test_many_hops() -> None:
    assert reached("a", [("a", "b"), ("b", "c"), ("c", "d")]) == {"b": 1, "c": 2, "d": 3}


def test_a_circle_ends_the_search() -> None:
    assert reached("a", [("a", "b"), ("b", "c"), ("c", "a"), ("b", "b")]) == {"b": 1, "c": 2}


def test_what_changed_itself_is_not_queued() -> None:
    assert reached("ab", [("a", "b"), ("b", "c")]) == {"c": 1}


def test_the_shortest_way_counts() -> None:
    assert reached("a", [("a", "b"), ("b", "c"), ("a", "c")]) == {"b": 1, "c": 1}


def test_it_stops_at_the_cap_on_hops() -> None:
    assert reached("a", [("a", "b"), ("b", "c"), ("c", "d")], dependency_max_hops=2) == {"b": 1, "c": 2}


def test_it_stops_at_the_cap_on_topics_and_the_nearest_come_first() -> None:
    pairs = [("a", "z"), ("z", "b"), ("a", "y")]
    assert reached("a", pairs, dependency_max_topics=2) == {"y": 1, "z": 1}


def test_each_scope_has_its_own_cap_on_topics() -> None:
    pairs = [("a", "b"), ("a", "c"), ("a", "d"), ("x", "y"), ("y", "z")]
    others = dict.fromkeys("xyz", SCOPES[1])
    assert reached("ax", pairs, others, dependency_max_topics=2) == {"b": 1, "c": 1, "y": 1, "z": 2}


def test_a_merged_topic_takes_no_place_under_the_cap() -> None:
    pairs = [("a", "m"), ("m", "b"), ("a", "z")]
    assert reached("a", pairs, dependency_max_topics=2) == {"z": 1, "b": 2}


def test_no_change_reaches_nothing() -> None:
    assert reached("", [("a", "b")]) == {}


# The queue over several nights

CHAIN = [
    observation(1, topic_id="whole", title="Whole", edges=[edge("mentions", to_topic_id="friend")]),
    observation(2, topic_id="part", edges=[edge("part_of", to_topic_id="whole")]),
    observation(3, topic_id="detail", edges=[edge("part_of", to_topic_id="part")]),
    observation(4, topic_id="friend", edges=[edge("mentions", to_topic_id=name) for name in ("whole", "part")]),
]
"""`detail` is part of `part`, which is part of `whole`; `friend` mentions all, and all mention it."""


def test_the_queue_names_its_cause(chain: Run) -> None:
    queue = night(chain, "whole")
    assert queue.schema == REVIEWS
    assert queue.select("topic_id", "cause_topic_id", "hops", "reason", "queued_at").rows() == [
        ("detail", "whole", 2, "Whole changed, 2 extensions away", day(10)),
        ("part", "whole", 1, "Whole changed, 1 extension away", day(10)),
    ]


def test_association_never_queues(chain: Run) -> None:
    assert night(chain, "friend").is_empty()


def test_what_waits_goes_on_waiting_and_is_queued_once(chain: Run) -> None:
    night(chain, "whole")
    assert night(chain, "friend")["topic_id"].to_list() == ["detail", "part"]
    assert night(chain, "whole")["topic_id"].to_list() == ["detail", "part"]


def test_what_changes_leaves_the_queue(chain: Run) -> None:
    night(chain, "whole")
    assert night(chain, "detail")["topic_id"].to_list() == ["part"]


def test_the_recorded_decisions_give_the_queue_again(chain: Run) -> None:
    """Law L3 for the queue: queued, left, queued by another."""
    queue, recorded = pl.DataFrame(), []
    for changed in ("whole", "detail", "part", "friend"):
        result = queue_reviews(chain, changed_topics(changed))
        assert result.decisions is not None
        recorded.append(result.decisions)
        queue = result.frame
    transitions = pl.concat(recorded).with_row_index("seq").with_columns(at=pl.lit(day(10)))
    assert recorded_queue(filled(transitions, TRANSITIONS)).equals(queue)


@pytest.mark.parametrize("nights", [("whole", "detail", "friend"), ("whole", "detail", "")])
def test_a_dependent_that_was_evaluated_anew_is_not_asked_for_again(chain: Run, nights: tuple[str, ...]) -> None:
    """`part` waits, `detail` depends on it and has changed since: no later night may fail over it."""
    earlier = empty(DECISION)
    for changed in nights:
        result = queue_reviews(chain, changed_topics(changed))
        assert result.decisions is not None
        updated = changed_topics(changed).with_columns(kind=pl.lit("topic_updated"))
        last = pl.concat([updated.select("kind", "topic_id", "scope"), result.decisions], how="diagonal")
        last = filled(last, DECISION)
        check = dependency_consistency(checked_state_of(chain.graph, evidence_frame(CHAIN), earlier, last))
        assert check.passed, f"the night on which {changed!r} changed: {check.violations.rows()}"
        earlier = pl.concat([earlier, last])


def test_only_edges_in_force_queue_and_the_check_agrees(tmp_path: Path) -> None:
    """What no longer, or not yet, depends on the change does not wait; a damaged date is noticed in both directions."""
    dates = {"ended": (None, day(9)), "ending": (None, day(10)), "later": (day(11), None), "open": (None, day(11))}
    stream = [
        observation(1, topic_id="whole", title="Whole"),
        *(
            observation(n, topic_id=name, edges=[edge("extends", to_topic_id="whole", valid_from=one, valid_until=two)])
            for n, (name, (one, two)) in enumerate(dates.items(), 2)
        ),
        observation(9, topic_id="beyond", edges=[edge("part_of", to_topic_id="ended")]),
    ]
    run = begin(tmp_path / "run")
    with open_graph(run.graph, buffer_mib=BUFFER_MIB) as graph:
        fill(graph, folded(stream))
    result = queue_reviews(run, changed_topics("whole"))
    assert result.frame["topic_id"].to_list() == ["open"]
    assert result.decisions is not None
    updated = changed_topics("whole").select("topic_id", "scope", kind=pl.lit("topic_updated"))
    last = filled(pl.concat([updated, result.decisions], how="diagonal"), DECISION)

    def missing() -> list[str]:
        checked = checked_state_of(run.graph, evidence_frame(stream), empty(DECISION), last)
        return dependency_consistency(checked).violations["subject"].sort().to_list()

    assert missing() == []
    with open_graph(run.graph, buffer_mib=BUFFER_MIB) as graph:
        unbounded = graph.read(EDGE).with_columns(valid_from=pl.lit(day(0)), valid_until=pl.lit(None, MOMENT))
        graph.sync(EDGE, unbounded)
    assert missing() == ["beyond", "ended", "ending", "later"]


def test_a_full_queue_of_one_scope_excuses_no_other(tmp_path: Path) -> None:
    """Both scopes change; under a cap of one topic each has its nearest dependent queued, and the check wants both."""
    stream = [
        observation(number, topic_id=f"{name}{part}", scope=scope, edges=edges)
        for number, (name, scope, part, edges) in enumerate(
            (name, scope, part, [edge("part_of", to_topic_id=f"{name}0")] if part else [])
            for name, scope in zip("ab", SCOPES, strict=True)
            for part in range(3)
        )
    ]
    run = begin(tmp_path / "run", dependency_max_topics=1)
    with open_graph(run.graph, buffer_mib=BUFFER_MIB) as graph:
        fill(graph, folded(stream))
    changed = pl.DataFrame(
        [(f"{name}0", scope, "updated") for name, scope in zip("ab", SCOPES, strict=True)], orient="row", schema=CHANGES
    )
    result = queue_reviews(run, changed)
    assert (result.frame["topic_id"].to_list(), result.counts["capped"]) == (["a1", "b1"], 1)
    assert result.decisions is not None
    updated = changed.select("topic_id", "scope", kind=pl.lit("topic_updated"))

    def violations(decided: pl.DataFrame) -> list[str]:
        with open_graph(run.graph, buffer_mib=BUFFER_MIB) as graph:
            graph.sync(REVIEW, result.frame.join(decided, on="topic_id", how="semi"))
        last = filled(pl.concat([updated, decided], how="diagonal"), DECISION)
        checked = checked_state_of(run.graph, evidence_frame(stream), empty(DECISION), last, policy=run.policy)
        return dependency_consistency(checked).violations["subject"].sort().to_list()

    assert violations(result.decisions) == []
    assert violations(result.decisions.filter(pl.col("scope") == SCOPES[0])) == ["b1", "b2"]


@pytest.fixture
def chain(tmp_path: Path) -> Run:
    run = begin(tmp_path / "run")
    with open_graph(run.graph, buffer_mib=BUFFER_MIB) as graph:
        fill(graph, folded(CHAIN))
    return run


def night(run: Run, changed: str) -> pl.DataFrame:
    return queue_reviews(run, changed_topics(changed)).frame


def changed_topics(*names: str) -> pl.DataFrame:
    rows = [(name, SCOPES[0], "updated") for name in names if name]
    return pl.DataFrame(rows, orient="row", schema=CHANGES)
