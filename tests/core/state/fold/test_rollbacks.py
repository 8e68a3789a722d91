"""Which decisions are in effect, over random histories of decisions and rollbacks, beside a plain account of them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from memstate_core.model.ledger_tables import TRANSITIONS
from memstate_core.night.checks.recorded import _in_effect as as_checked
from memstate_core.state.fold.rollbacks import ROLLED_BACK, in_effect, undone_by_rollbacks
from tests.core.frames import filled
from tests.core.strategies import day


@dataclass
class History:
    """Transitions of a shard; after each publication, the numbers of those in effect then."""

    rows: list[tuple[str, str | None]] = field(default_factory=list)
    live: list[int] = field(default_factory=list)
    published: dict[int, list[int]] = field(default_factory=dict)

    def add(self, kind: str, payload: str | None = None) -> None:
        self.live = [*self.live, len(self.rows)]
        self.rows.append((kind, payload))
        if kind == "published":
            self.published[len(self.rows) - 1] = self.live

    def roll_back(self, place: int) -> None:
        seq = list(self.published)[place % len(self.published)]
        self.live = self.published[seq]
        self.add(ROLLED_BACK, json.dumps({"number": 1, "seq": seq}))

    def frame(self) -> pl.DataFrame:
        rows = [
            {"seq": seq, "kind": kind, "payload_json": payload, "at": day(seq)}
            for seq, (kind, payload) in enumerate(self.rows)
        ]
        return filled(pl.DataFrame(rows, schema_overrides={"payload_json": pl.String}), TRANSITIONS)


@st.composite
def histories(draw: st.DrawFn) -> History:
    history = History()
    history.add("published")
    for act in draw(st.lists(st.sampled_from(("decide", "publish", "roll back")), max_size=14)):
        if act == "roll back":
            history.roll_back(draw(st.integers(0, 20)))
        history.add("merged" if act == "decide" else "published")
    return history


@given(histories())
def test_what_counts_is_what_counted_then_and_what_came_since(history: History) -> None:
    rows = history.frame()
    assert in_effect(rows)["seq"].to_list() == history.live
    undone = undone_by_rollbacks(rows)
    assert sorted([*undone["seq"], *history.live]) == list(range(len(history.rows)))
    assert (undone["rolled_back_at"] > undone["at"]).all()
    assert as_checked(rows, [])[0]["seq"].to_list() == history.live
