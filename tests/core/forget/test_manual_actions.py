"""Manual actions win over the ladder: restored and pinned topics stay, unpinned ones need not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from memstate_core.forget.manual_actions import pin_decisions, restore_decisions
from memstate_core.revise.undo import undo_decisions
from memstate_core.state.graph import EDGE, FIELD, TOPIC
from tests.core.forget.lives import KEPT, Life, owner, topic_id
from tests.core.forget.test_ladder import owners

pytestmark = pytest.mark.slow

ALL = ["restored", "attached", "expanded"]


@pytest.fixture(scope="module")
def merged_home(young_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which `boat` was merged into `acme`, and faded with it in the night of day 10."""
    life = Life(shutil.copytree(young_home, tmp_path_factory.mktemp("merged") / "home"), **KEPT)
    life.merges("acme", "boat", 0.6)
    assert life.night(10)["archived"] == 2
    return life.home.root


@pytest.fixture
def merged(merged_home: Path, tmp_path: Path) -> Life:
    return Life(shutil.copytree(merged_home, tmp_path / "home"), **KEPT)


def pinned(life: Life) -> list[str]:
    return life.read(TOPIC, ["id"], "r.pinned = true")["id"].sort().to_list()


# Restoring


def test_restoring_takes_every_step_back_at_once(faded: Life) -> None:
    faded.restores("acme", 10)
    assert (faded.states("acme", "boat"), len(owners(faded))) == (["active", "archived"], 6)
    assert faded.detached() == ["mentions", "owner"]
    assert [row["kind"] for row in faded.decided(*ALL)] == ALL
    assert {row["reason"] for row in faded.decided(*ALL)} == {"a person"}


def test_restoring_attaches_the_edges_that_start_at_a_topic(faded: Life) -> None:
    faded.restores("boat", 10)
    assert faded.detached() == ["owner"]


def test_topics_without_any_step_need_no_decision(faded: Life) -> None:
    faded.restores("acme", 10)
    assert restore_decisions(faded.served(), [topic_id("acme")], "again").is_empty()
    assert restore_decisions(faded.served(), ["nobody"], "x").is_empty()
    assert undo_decisions(faded.served(), topic_id("acme")) is None


def test_the_ladder_leaves_it_alone_until_another_event_and_then_not(faded: Life) -> None:
    """For any length of time, and whatever evidence other topics get."""
    faded.undoes("acme", 10)
    assert faded.night(100) == {}
    faded.says(100, {"boat": owner("Zoe")})
    faded.night(101)
    assert (faded.states("acme"), len(owners(faded))) == (["active"], 6)
    faded.says(101, {"acme": owner("Late")})
    assert faded.night(101) == {"attached": 1}
    assert faded.night(130) == {"archived": 2, "summarised": 1, "detached": 3}


def test_what_was_restored_as_a_use_is_not_undone_in_the_next_night(faded: Life) -> None:
    """As `memstate restore` does: the decision, then the access."""
    faded.restores("acme", 10)
    faded.accesses(10, "acme")
    faded.night(10.5)
    assert topic_id("acme") not in faded.read(FIELD, ["topic_id"], "r.detached = true")["topic_id"]
    assert len(owners(faded)) == 6


def test_over_the_bound_topics_restored_by_a_person_are_archived_last(faded: Life) -> None:
    faded.undoes("acme", 10)
    faded.under(**KEPT, max_active_topics=1)
    faded.says(11, {"boat": owner("Zoe")})
    assert "restored" not in faded.night(11)
    assert faded.states("acme", "boat") == ["active", "archived"]


# Pinning


def test_a_pin_holds_through_nights_and_a_rebuild_until_it_is_taken_off(faded: Life, tmp_path: Path) -> None:
    faded.restores("acme", 10)
    faded.pins("acme", 10)
    faded.says(11, {"acme": owner("Zoe")})
    faded.night(11)
    assert faded.night(500) == {}
    assert (faded.states("acme"), pinned(faded)) == (["active"], [topic_id("acme")])
    assert faded.rebuilt(tmp_path / "fold") == faded.state_hash()
    faded.pins("acme", 500, on=False)
    assert pinned(faded) == []
    assert faded.night(501) == {"archived": 1, "summarised": 1, "detached": 2}


def test_pinning_twice_and_letting_go_of_what_is_loose_decide_nothing(faded: Life) -> None:
    assert pin_decisions(faded.served(), [topic_id("acme")], on=False).is_empty()
    faded.pins("acme", 10)
    assert pin_decisions(faded.served(), [topic_id("acme")], on=True).is_empty()
    assert pin_decisions(faded.served(), [topic_id("boat")], on=True).height == 1


def test_a_pin_follows_its_topic_into_a_merge_and_back(young: Life) -> None:
    acme, boat = topic_id("acme"), topic_id("boat")
    young.pins("boat", 0.5)
    young.merges("acme", "boat", 0.6)
    assert (young.states("acme", "boat"), pinned(young)) == (["active", "merged"], [acme])
    assert young.night(30) == {"archived": 1}
    young.undoes("boat", 30)
    assert pinned(young) == [boat]
    assert young.states("acme", "boat") == ["active", "active"]
    assert young.night(30.1) == {"archived": 1, "summarised": 1, "detached": 1}


def test_letting_go_of_a_topic_lets_go_of_the_pins_on_all_that_it_is_one_with(young: Life) -> None:
    for key in ("acme", "boat"):
        young.pins(key, 0.5)
    young.merges("acme", "boat", 0.6)
    rows = pin_decisions(young.served(), [topic_id("acme")], on=False)
    assert set(rows["topic_id"]) == {topic_id("acme"), topic_id("boat")}
    young.decides(rows, 0.7)
    assert pinned(young) == []
    young.undoes("boat", 0.8)
    assert pinned(young) == []


# Merges and the ladder


def test_use_of_a_topic_that_was_merged_away_brings_its_survivor_back(merged: Life) -> None:
    merged.accesses(10.5, "boat")
    assert merged.night(11) == {"restored": 1}
    assert merged.states("acme", "boat", "cat") == ["active", "merged", "archived"]


def test_what_a_merge_took_in_comes_out_of_it_as_if_never_merged(merged: Life, tmp_path: Path) -> None:
    """The survivor was archived meanwhile; the unmerged topic was not, and is archived in its own night."""
    merged.undoes("boat", 10.1)
    assert merged.states("acme", "boat", "cat") == ["archived", "active", "archived"]
    assert merged.night(10.2)["archived"] == 1
    assert merged.read(EDGE, ["kind"], "r.detached = true")["kind"].to_list() == ["mentions"]
    assert merged.rebuilt(tmp_path / "fold") == merged.state_hash()
