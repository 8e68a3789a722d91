"""Conditions that take over what they found of a checked base find the same damage as conditions that examine all."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from memstate_core.night import publish as publishing
from memstate_core.night.checks import suite
from memstate_core.night.checks.suite import CONDITIONS, conditions
from memstate_core.run.run import Run
from memstate_core.run.store import Store, open_store
from memstate_core.state.graph import Graph, open_graph
from tests.core.night.checks.damage import BUFFER_MIB, Damage, Home
from tests.core.night.checks.store import LAST, key
from tests.core.night.checks.test_condition_damage import DAMAGES
from tests.core.revise import nights
from tests.core.strategies import day
from tests.pipeline.conftest import shared

pytestmark = pytest.mark.slow

Verdicts = dict[str, list[tuple[str, str]]]


class Working:
    """A run in progress, whose working graph may be damaged."""

    def __init__(self, root: Path) -> None:
        self.store: Store = open_store(root, {})
        self.run = Run.load(self.store.home.work("s0"))

    def graph(self, how: Callable[[Graph], None]) -> None:
        """Changes the working graph."""
        with open_graph(self.run.graph, buffer_mib=BUFFER_MIB) as graph:
            how(graph)

    def violations(self) -> Verdicts:
        """What the conditions find, by condition."""
        found = conditions(self.store, self.run)
        return {name[:2]: check.violations.rows() for name, check in found.items() if not check.passed}


class _OfGraph:
    """Finds out whether damage is done to the graph alone."""

    def __init__(self) -> None:
        self.found = True

    def graph(self, _how: Callable[[Graph], None]) -> None:
        """Damage to the graph."""

    def _elsewhere(self, *_: object) -> None:
        self.found = False

    ledger = file = manifest = _elsewhere


def _is_of_graph(damage: Damage) -> bool:
    try:
        damage(probe := _OfGraph())  # type: ignore[arg-type]
    except AttributeError:
        return False
    return probe.found


OF_GRAPH = {name: damage for name, damage in DAMAGES.items() if name[0] != "C3" and _is_of_graph(damage)}


def _checked(store: Store, run: Run, *_: object) -> None:
    """Checks the conditions, and publishes."""
    assert all(check.passed for check in conditions(store, run).values())
    run.keep_checks([{"name": name, "passed": True, "severity": "ERROR"} for name in CONDITIONS])
    publishing.publish(store, run)


@pytest.fixture(scope="session")
def night_home(grown_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store after a night that was checked, in the middle of the next one, in which some evidence arrived."""

    def begun(root: Path) -> None:
        store, at = open_store(shutil.copytree(grown_home, root), {}), day(LAST + 1).isoformat()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(nights, "publish", _checked)
            nights.night_without_duplicates(store, LAST + 1)
            nights.record_by_key(
                store, {"back": {"fields": [{"name": "desk", "value": "ash"}], "observed_at": at}}, LAST + 1
            )
            patch.setattr(nights, "publish", lambda *_: None)
            patch.setattr(Run, "end", lambda _: None)
            nights.night_without_duplicates(open_store(root, {}), LAST + 2)

    return shared(tmp_path_factory, "grown-checked", begun)


@pytest.fixture
def working(night_home: Path, tmp_path: Path) -> Working:
    return Working(shutil.copytree(night_home, tmp_path / "home"))


@pytest.fixture
def doubts(monkeypatch: pytest.MonkeyPatch) -> list[pl.Series | None]:
    """What was in doubt each time."""
    found: list[pl.Series | None] = []
    own = suite.in_doubt

    def noted(*given: object) -> pl.Series | None:
        found.append(own(*given))  # type: ignore[arg-type]
        return found[-1]

    monkeypatch.setattr(suite, "in_doubt", noted)
    return found


def whole(working: Working, patch: pytest.MonkeyPatch) -> Verdicts:
    patch.setattr(suite, "in_doubt", lambda *_: None)
    return working.violations()


def test_a_sound_night_examines_what_changed(working: Working, doubts: list[pl.Series | None]) -> None:
    assert working.violations() == {}
    (doubt,) = doubts
    assert doubt is not None
    assert 0 < len(doubt) < 4


@pytest.mark.parametrize(("condition", "name"), OF_GRAPH)
def test_the_same_damage_is_found(working: Working, monkeypatch: pytest.MonkeyPatch, condition: str, name: str) -> None:
    OF_GRAPH[condition, name](working)  # type: ignore[arg-type]
    found = working.violations()
    assert condition in found
    assert found == whole(working, monkeypatch)


def test_a_base_that_was_not_checked_is_examined_whole(home: Home, doubts: list[pl.Series | None]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nights, "publish", _checked)
        nights.night_without_duplicates(home.store, LAST + 1)
    assert doubts == [None]


def test_a_topic_that_the_night_should_have_changed_is_in_doubt(
    working: Working, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fold loses new evidence: no row differs from the base, and the ledger says that one must."""
    base = working.store.home.snapshots("s0") / str(working.run.facts.base) / "graph.kuzu"
    shutil.copyfile(base, working.run.graph)
    found = working.violations()
    assert [subject for subject, _ in found["C1"]] == [key("back")]
    assert found == whole(working, monkeypatch)
