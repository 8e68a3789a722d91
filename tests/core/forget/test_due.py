"""Whether the ladder would act is asked of the served state alone, and is exactly what the next night does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memstate_core.forget.due import ladder_is_due
from memstate_core.model.text import iso
from memstate_core.policy.rules import Rule
from memstate_core.state.fold.ladder_state import ladder_state
from memstate_core.state.graph import open_graph
from tests.core.forget.lives import KEPT, Life, begun, owner
from tests.core.strategies import day

pytestmark = pytest.mark.slow

CALM = {"topic_count_soft_limit": 100}
SLOW = {"salience_half_life_days": 4.0}


def ruled(action: str, when: str, on: Any = "nightly") -> dict[str, Any]:
    return {"rules": (Rule(name="the rule", on=on, when=when, do=action),)}  # type: ignore[arg-type]


POLICIES: dict[str, dict[str, Any]] = {
    "pressure": SLOW,
    "histories alone": SLOW | CALM,
    "pressure of any scope": SLOW | {"topic_count_soft_limit": 0},
    "idle topics": CALM | ruled("archive", "idle_days >= 3 and title == 'Cat food'"),
    "old topics with little evidence": CALM | ruled("detach", "age_days > 2.5 and evidence < 2"),
    "pinned for some days": SLOW | ruled("pin", "age_days < 12"),
}


def is_due(life: Life, at: float) -> bool:
    served = life.served()
    links = pl.scan_parquet(served.snapshot.path / "evidence.parquet")
    with open_graph(served.snapshot.path / "graph.kuzu", read_only=True, buffer_mib=64) as graph:
        return ladder_is_due(graph, links, ladder_state(served.transitions), day(at), life.store.settings.policy)


@pytest.mark.parametrize("name", POLICIES)
def test_the_ladder_is_due_exactly_when_a_night_without_a_change_takes_a_step(tmp_path: Path, name: str) -> None:
    life = begun(tmp_path, **POLICIES[name])
    life.night(0.5)
    found = []
    for at in (1, 4, 15, 60, 61):
        found.append(is_due(life, at))
        assert bool(life.night(at)) == found[-1], at
    assert True in found
    assert found[-1] is False


def test_it_follows_the_dates_of_edges_and_what_was_exempt_for_an_access(tmp_path: Path) -> None:
    """A topic fades below the threshold of superseded topics once the edge is in force, and not on the night after
    its own access."""
    life = Life(tmp_path, **KEPT | SLOW | {"detach_salience_threshold": 0.6, "summarise_salience_threshold": 0.6})
    life.says(0, {"old": {"title": "Old yard"}})
    newer = {"title": "New yard", "edges": [{"to_topic_key": "old", "kind": "supersedes", "valid_from": iso(day(6))}]}
    life.says(5, {"new": newer | owner("Aya")})
    life.night(5)
    assert not is_due(life, 5.9)
    assert is_due(life, 6.1)
    life.accesses(6.1, "old")
    assert life.night(6.1) == {}, "it was accessed"
    assert is_due(life, 6.2)
    assert life.night(6.2) == {"archived": 1}
    assert not is_due(life, 6.3)


def test_what_a_correction_reverses_is_due_although_no_scope_is_under_pressure(faded: Life) -> None:
    assert not is_due(faded, 10.6)
    faded.pins("acme", 10.5)
    assert is_due(faded, 10.6)
    assert set(faded.night(10.6)) == {"attached"}
    assert not is_due(faded, 10.7)
