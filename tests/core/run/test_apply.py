"""What counts as a change of a topic when a folded state is written into the graph."""

from __future__ import annotations

from pathlib import Path

import pytest

from memstate_core.state.graph import REVIEW
from tests.core.forget.lives import Life, owner, topic_id

pytestmark = pytest.mark.slow


def waiting(life: Life) -> set[str]:
    return set(life.read(REVIEW)["topic_id"])


def test_an_access_is_no_change_it_queues_no_dependent_and_ends_no_review(tmp_path: Path) -> None:
    life = Life(tmp_path, salience_half_life_days=90.0, topic_count_soft_limit=500)
    building_on = {"edges": [{"kind": "derives", "to_topic_key": "base"}]}
    life.says(1, {"base": owner("Aya"), "read": owner("Ben", **building_on), "unread": owner("Cleo", **building_on)})
    life.night(2)
    life.accesses(3, "base")
    life.night(4)
    assert waiting(life) == set(), "nothing changed, somebody looked at it"
    life.says(5, {"base": owner("Dora")})
    life.accesses(5, "read")
    life.night(6)
    assert waiting(life) == {topic_id("read"), topic_id("unread")}
    life.accesses(7, "read")
    life.night(8)
    assert waiting(life) == {topic_id("read"), topic_id("unread")}
    assert {row["topic_id"] for row in life.decided("topic_updated")} == {topic_id("base")}
