"""Relations decide about forgetting while they are in force: not before they begin, and not from their end on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import polars as pl
import pytest

from memstate_core.forget.forecast import forecast
from memstate_core.forget.ladder import forget
from memstate_core.forget.simulation.event_history import read_history
from memstate_core.forget.simulation.replay_nights import future_nights
from memstate_core.forget.simulation.simulation import Simulated, simulate_policy
from memstate_core.model.text import iso
from memstate_core.run.run import Run
from memstate_core.state.graph import EDGE, open_graph
from tests.core.forget.lives import Life, topic_id
from tests.core.strategies import day

pytestmark = pytest.mark.slow

NOW = 10
DATES: dict[str, tuple[float | None, float | None]] = {
    "undated": (None, None),
    "open": (None, 12),
    "ended": (None, 9.95),
    "ending": (None, NOW),
    "later": (11, None),
}
"""When the relation of each pair begins and ends: undated and open are in force on the day of the first night."""
POLICY = {"summarise_salience_threshold": 5.0, "detach_salience_threshold": 5.0, "salience_half_life_days": 3.0}
"""Within the nights nothing that was observed on the day before fades, unless a newer topic supersedes it."""
DISTANT = -40.0
"""Days ago that leave nothing of a salience."""


class Grown(NamedTuple):
    """A store after its nights: what was archived after each, and what a simulation said of all but the first."""

    life: Life
    archived: list[set[str]]
    simulated: Simulated
    expected: list[set[str]]


def said(life: Life) -> None:
    """A pair of a superseded and a newer topic, and one of a faded base and its dependent, for each of DATES."""
    life.says(DISTANT, {f"base-{name}": {"title": f"Base {name}"} for name in DATES})
    topics: dict[str, dict[str, Any]] = {}
    for name, dates in DATES.items():
        bounds = zip(("valid_from", "valid_until"), dates, strict=True)
        given = {bound: iso(day(at)) for bound, at in bounds if at is not None}
        topics[f"old-{name}"] = {"title": f"Old {name}"}
        for newer, kind, other in ((f"new-{name}", "supersedes", "old"), (f"part-{name}", "part_of", "base")):
            topics[newer] = {"title": newer, "edges": [{"to_topic_key": f"{other}-{name}", "kind": kind, **given}]}
    life.says(9.9, topics)


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Grown:
    """Nights on four days; every condition is checked in each."""
    life, after, due = Life(tmp_path_factory.mktemp("grown"), **POLICY), [], []
    said(life)
    simulated = None
    for at in range(NOW, NOW + 4):
        life.night(at)
        after.append(archived(life))
        if simulated is None:
            served = life.served()
            simulated = simulate_policy(read_history(life.store, served), life.store.settings.policy, coming())
            due = [predicted(life, at) for at in range(NOW, NOW + 4)]
    assert simulated is not None
    return Grown(life, after, simulated, due)


def coming() -> list[Any]:
    return future_nights(day(NOW), 3)


def archived(life: Life) -> set[str]:
    names = [f"{part}-{name}" for name in DATES for part in ("old", "new", "base", "part")]
    return {name for name, state in zip(names, life.states(*names), strict=True) if state == "archived"}


def predicted(life: Life, at: float) -> set[str]:
    """The superseded topics and bases that a forecast names for a day."""
    features = forecast(life.served(), day(at), life.store.settings.policy)
    marked = set(features.filter(pl.col("redundant") | pl.col("depended_on"))["id"])
    names = [f"{part}-{name}" for name in DATES for part in ("old", "base")]
    return {name for name in names if topic_id(name) in marked}


def test_only_relations_in_force_count(grown: Grown) -> None:
    superseded = {"old-undated", "old-open"}
    left_alone = {"base-ended", "base-ending", "base-later"}
    assert grown.archived[0] == superseded | left_alone


def test_a_relation_counts_from_its_beginning_and_until_its_end(grown: Grown) -> None:
    assert grown.archived[1] - grown.archived[0] == {"old-later"}
    assert grown.archived[2] - grown.archived[1] == {"base-open"}
    assert grown.archived[3] == grown.archived[2]


def test_a_simulation_of_coming_nights_follows_the_dates(grown: Grown) -> None:
    assert grown.simulated.nights["archivals"].to_list() == [1, 1, 0]
    titles = dict(grown.simulated.topics.select("topic_id", "archived").iter_rows())
    assert {name for name in (*grown.archived[3], "base-undated", "old-ended") if titles[topic_id(name)]} == (
        grown.archived[3]
    )


def test_a_forecast_knows_what_will_be_superseded_or_depended_on(grown: Grown) -> None:
    first = {"old-undated", "old-open", "base-undated", "base-open"}
    assert grown.expected == [
        first,
        first | {"old-later", "base-later"},
        (first | {"old-later", "base-later"}) - {"old-open", "base-open"},
        (first | {"old-later", "base-later"}) - {"old-open", "base-open"},
    ]


# The checks find out about dates by themselves


@pytest.fixture(scope="module")
def decided(tmp_path_factory: pytest.TempPathFactory) -> tuple[Life, Run]:
    """The first night, decided and not published."""
    life = Life(tmp_path_factory.mktemp("decided"), **POLICY)
    said(life)
    run, new = life.begun(NOW)
    run.keep("forgetting", forget(life.store, run, new), 0.0)
    return life, run


def test_the_night_before_damage_passes(decided: tuple[Life, Run]) -> None:
    life, run = decided
    assert all(check.passed for check in life.checked(run).values())


MISDATED = "an edge with other dates than its evidence states"
DAMAGES: dict[str, tuple[str, Callable[[pl.Expr], dict[str, pl.Expr]], tuple[str, str]]] = {
    "a supersession had ended": (
        "new-undated",
        lambda this: {"valid_until": pl.when(this).then(pl.lit(day(9.95))).otherwise("valid_until")},
        ("old-undated", "archived though policy does not ask for it"),
    ),
    "a supersession had not begun": (
        "new-open",
        lambda this: {"valid_from": pl.when(this).then(pl.lit(day(NOW + 1))).otherwise("valid_from")},
        ("old-open", "archived though policy does not ask for it"),
    ),
    "a dependence had no end": (
        "part-ended",
        lambda this: {"valid_until": pl.when(~this).then("valid_until")},
        ("base-ended", "archived though a topic that stays depends on it"),
    ),
    "a dependence had begun": (
        "part-later",
        lambda this: {"valid_from": pl.when(this).then(pl.lit(day(9.9))).otherwise("valid_from")},
        ("base-later", "archived though a topic that stays depends on it"),
    ),
}


@pytest.mark.parametrize(("start", "dates", "found"), DAMAGES.values(), ids=DAMAGES)
def test_a_date_that_is_changed_refuses_the_night(
    decided: tuple[Life, Run],
    start: str,
    dates: Callable[[pl.Expr], dict[str, pl.Expr]],
    found: tuple[str, str],
) -> None:
    life, run = decided
    with open_graph(run.graph, buffer_mib=64) as graph:
        whole = graph.read(EDGE)
        graph.sync(EDGE, whole.with_columns(**dates(pl.col("from_id") == topic_id(start))))
    try:
        failed = {name: set(check.violations.rows()) for name, check in life.checked(run).items() if not check.passed}
    finally:
        with open_graph(run.graph, buffer_mib=64) as graph:
            graph.sync(EDGE, whole)
    topic, problem = found
    assert failed == {
        "C2_transition_soundness": {(topic_id(topic), problem)},
        "C4_provenance_preservation": {(topic_id(start), MISDATED)},
    }
