"""Which recorded decisions belong to a shard, over several changes of the number of shards."""

from __future__ import annotations

import json

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstate_core.model.ledger_tables import TRANSITIONS
from memstate_core.model.scope import Layout, is_shard, layout_of, resharded, scopes_of_shard
from memstate_core.state.fold.decisions import MERGED, PUBLISHED, RESHARDED, SET_ASIDE
from memstate_core.state.fold.rollbacks import ROLLED_BACK, in_effect
from memstate_core.state.fold.shard_history import of_shard
from tests.core.frames import filled

SCOPES = [f"user:{number}" for number in range(7)]
Step = tuple[str, int]
steps = st.lists(
    st.tuples(st.sampled_from(["decide", "aside", "publish", "roll back"]), st.integers(0, 6)), max_size=25
)


def history(eras: list[tuple[int, list[Step]]]) -> pl.DataFrame:
    """What shards record, with a change of their number between eras (columns TRANSITIONS)."""
    rows: list[dict[str, object]] = []

    def record(kind: str, shard: str, scope: str | None = None, payload: str | None = None) -> None:
        rows.append({"seq": len(rows), "kind": kind, "shard": shard, "scope": scope, "payload_json": payload})

    for number, (count, taken) in enumerate(eras):
        layout = Layout(count, number)
        for shard in layout.names:
            record(RESHARDED if number else "placed", shard)
            record(PUBLISHED, shard)
        for kind, choice in taken:
            shard = layout.of(SCOPES[choice])
            published = [row["seq"] for row in rows if row["kind"] == PUBLISHED and row["shard"] == shard]
            match kind:
                case "decide":
                    record(MERGED, shard, SCOPES[choice])
                case "aside":
                    record(SET_ASIDE, shard)
                case "publish":
                    record(PUBLISHED, shard)
                case _:
                    record(ROLLED_BACK, shard, payload=json.dumps({"seq": published[choice % len(published)]}))
    return filled(pl.DataFrame(rows, schema_overrides={"payload_json": pl.String}), TRANSITIONS)


def effective(rows: pl.DataFrame, layout: Layout) -> dict[str, pl.DataFrame]:
    return {shard: in_effect(of_shard(rows.lazy(), shard).sort("seq").collect()) for shard in layout.names}


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(1, 4), steps), min_size=2, max_size=3))
def test_new_shards_have_together_what_the_old_ones_had_in_effect(eras: list[tuple[int, list[Step]]]) -> None:
    rows = history([*eras[:-1], (eras[-1][0], [])])
    before, after = (Layout(eras[place][0], place) for place in (len(eras) - 2, len(eras) - 1))
    old, new = effective(rows, before), effective(rows, after)
    for kind in (MERGED, SET_ASIDE):
        had, have = (pl.concat(found.values()).filter(kind=kind).sort("seq") for found in (old, new))
        assert have.unique("seq", maintain_order=True)["seq"].to_list() == had.unique("seq")["seq"].sort().to_list()
    for shard, found in new.items():
        own = found.filter(kind=MERGED)
        assert set(own["scope"]) == {*scopes_of_shard(own["scope"].unique(), shard, after.count)}
        assert found.filter(pl.col("shard") == shard)["kind"].to_list() == [RESHARDED, PUBLISHED]
        assert not found.filter(pl.col("shard") != shard)["kind"].is_in([PUBLISHED, ROLLED_BACK, RESHARDED]).any()
        assert found.filter(kind=SET_ASIDE)["seq"].to_list() == sorted(
            {seq for each in old.values() for seq in each.filter(kind=SET_ASIDE)["seq"]}
        )


def test_names_say_which_change_made_a_shard() -> None:
    assert Layout(2).names == ["s0", "s1"]
    assert Layout(2, 3).names == ["r3s0of2", "r3s1of2"]
    assert [resharded(name) for name in ("s1", "r3s1of2")] == [(0, 0), (3, 2)]
    assert all(layout_of(each.names) == each for each in (Layout(1), Layout(5), Layout(1, 2), Layout(12, 1)))
    assert [is_shard(name) for name in ("s0", "r1s0of4", "layout.json", "s", "r1s0", "xs0")] == [True, True] + [
        False
    ] * 4
    scopes = pl.Series(SCOPES)
    shared = [scopes_of_shard(scopes, name, 12).to_list() for name in Layout(12, 1).names]
    assert sorted(scope for each in shared for scope in each) == SCOPES
    assert all(
        Layout(12, 1).of(scope) == name
        for name, each in zip(Layout(12, 1).names, shared, strict=True)
        for scope in each
    )


@given(st.lists(st.text(min_size=1, max_size=12), unique=True, max_size=20), st.integers(1, 256), st.integers(0, 2))
def test_scopes_as_a_column_are_in_the_shards_that_hold_each(ids: list[str], count: int, number: int) -> None:
    layout, scopes = Layout(count, number), pl.Series("scope", [f"user:{each}" for each in ids], dtype=pl.String)
    assert layout.of_each(scopes).to_list() == [layout.of(scope) for scope in scopes]
    for shard in {layout.names[0], *layout.of_each(scopes)}:
        own = [scope for scope in scopes if layout.of(scope) == shard]
        assert scopes_of_shard(scopes, shard, count).to_list() == own
