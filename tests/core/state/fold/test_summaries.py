"""A summary loses nothing: it describes the older revisions, and these are stored unchanged beside it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memstate_core.model.graph_tables import REVISIONS
from memstate_core.model.ledger_tables import DECISION
from memstate_core.model.text import parse_moment
from memstate_core.policy.settings import Policy
from memstate_core.state.fold.fold import State
from memstate_core.state.fold.summaries import MOST_VALUES, summarised
from tests.core.frames import filled
from tests.core.reference import Observation
from tests.core.strategies import day, field, folded, observation, streams

values = st.lists(st.sampled_from(("1", "2.5", "-3", "null", '"Aya"', '["x"]', "true", '"5"')), max_size=12)
keeps = st.integers(1, 5)


def stating(values: Sequence[str], name: str = "owner") -> list[Observation]:
    """A topic whose field has these values, one a day."""
    return [
        observation(number, topic_id="a", observed_at=day(number), fields=[field(name, value)])
        for number, value in enumerate(values)
    ]


def short(topic: str, *names: str, keep: int = 2, kind: str = "summarised") -> pl.DataFrame:
    payload = json.dumps({"fields": names, "keep": keep if kind == "summarised" else None})
    rows = {"kind": [kind], "scope": ["user:aya"], "topic_id": [topic], "payload_json": [payload]}
    return filled(pl.DataFrame(rows), DECISION)


def summed(values: Sequence[str], keep: int = 2, **policy: Any) -> State:
    return folded(stating(values), short("a", "owner", keep=keep), Policy(**policy))


def history(state: State, name: str = "owner") -> list[dict[str, Any]]:
    """The visible revisions of a field, newest first."""
    return state.revisions.filter(name=name).sort("rank").to_dicts()


def described(values: Sequence[str], keep: int = 2) -> dict[str, Any]:
    """The value of the summary of a history."""
    last = history(summed(values, keep))[-1]
    assert last["summarises"]
    return dict(json.loads(last["value_json"]))


def same(one: pl.DataFrame, other: pl.DataFrame) -> bool:
    return one.sort("id").equals(other.sort("id"))


# Nothing is lost


@pytest.mark.slow
@settings(max_examples=60)
@given(streams(min_size=4), keeps, st.integers(2, 6))
def test_what_is_kept_and_what_is_compressed_are_the_whole_history(
    stream: list[Observation], keep: int, most: int
) -> None:
    full = folded(stream).revisions
    slots = full.filter(part="field").select("topic_id", "name").unique().with_columns(keep=pl.lit(keep, pl.Int64))
    kept, compressed = summarised(full, slots, Policy(max_field_history=most))
    own = kept.filter(pl.col("summarises").is_null())
    assert same(pl.concat([own, compressed]), full)
    assert own.join(compressed, on="id").is_empty()
    summaries = kept.filter(pl.col("summarises").is_not_null())
    assert summaries["summarises"].sum() == compressed.height
    for slot in kept.partition_by("topic_id", "part", "name"):
        assert slot["rank"].sort().to_list() == list(range(slot.height))
    for row in summaries.iter_rows(named=True):
        part = compressed.filter(topic_id=row["topic_id"], name=row["name"])
        assert row["evidence_ids"] == part["evidence_ids"].explode().unique().sort().to_list()
        assert (row["valid_from"], row["rank"]) == (part["valid_from"].max(), part["rank"].min())


@pytest.mark.slow
@settings(max_examples=40)
@given(values, keeps)
def test_expanding_gives_the_very_same_histories(values: list[str], keep: int) -> None:
    decided = pl.concat([short("a", "owner", keep=keep), short("a", "owner", kind="expanded")])
    again, never = folded(stating(values), decided), folded(stating(values))
    assert same(again.revisions, never.revisions)
    assert again.compressed.is_empty()


@pytest.mark.slow
@settings(max_examples=40)
@given(values, keeps)
def test_a_summary_stands_for_more_than_one_revision_and_follows_what_is_kept(values: list[str], keep: int) -> None:
    whole = history(folded(stating(values)))
    count = len(whole)
    found = history(summed(values, keep))
    if count > keep + 1:
        assert (len(found), found[-1]["summarises"]) == (keep + 1, count - keep)
    else:
        assert found == whole


def test_titles_and_other_fields_stay_whole() -> None:
    stream = [
        observation(number, topic_id="a", observed_at=day(number), title=f"Plan {number}",
                    fields=[field("owner", str(number)), field("stage", str(number))])
        for number in range(6)
    ]  # fmt: skip
    state = folded(stream, short("a", "owner"))
    assert Counter(state.revisions["name"]) == {"owner": 3, "stage": 6, "title": 6}


# Content of a summary


def test_a_summary_of_numbers_gives_span_ends_range_and_mean() -> None:
    assert described(["5", "2.5", "9", "1", "7"]) == {
        "from": "2026-01-01T00:00:00Z", "to": "2026-01-03T00:00:00Z", "count": 3, "first": 5, "last": 9,
        "min": 2.5, "max": 9.0, "mean": 5.5,
    }  # fmt: skip


def test_a_summary_of_anything_else_counts_the_values_the_most_frequent_first() -> None:
    found = described(['"Aya"', '"Ben"', '"Aya"', "null", "3", '"x"', '"y"'])
    assert (found["first"], found["last"], found["count"], found["others"]) == ("Aya", 3, 5, 0)
    assert [(entry["value"], entry["count"]) for entry in found["values"]] == [
        ("Aya", 2), ("Ben", 1), (3, 1), (None, 1),
    ]  # fmt: skip
    assert "min" not in found


@pytest.mark.parametrize("odd", ["null", '"5"', "true", "[1]", '{"a": 1}'])
def test_one_value_that_is_no_number_makes_a_count_of_values(odd: str) -> None:
    assert "values" in described(["1", odd, "3", "4", "5"])


def test_beyond_the_most_values_the_rest_is_one_number() -> None:
    values = [f'"v{number:03}"' for number in range(MOST_VALUES + 7)]
    found = described([*values, '"v000"', '"new"', '"newer"'])
    assert (len(found["values"]), found["others"]) == (MOST_VALUES, 7)
    assert found["values"][0] == {"value": "v000", "count": 2}
    assert sum(entry["count"] for entry in found["values"]) + found["others"] == found["count"] == MOST_VALUES + 8


@pytest.mark.parametrize(
    "extreme",
    [
        "1e308",
        "-1e308",
        "123456789012345678901234567890",
        "1e-320",
        "1e400",
    ],
)
def test_a_summary_of_extreme_numbers_is_valid_json(extreme: str) -> None:
    found = described([extreme, "0", extreme, "1", extreme, "2", "3", "4"])
    assert found["count"] == 6


def test_a_summary_is_identified_by_its_span_and_explains_its_origin() -> None:
    one, two = history(summed(["1", "2", "3", "4"])), history(summed(["1", "2", "3", "4", "5"]))
    assert one[-1]["id"] != two[-1]["id"]
    assert (one[-1]["field_type"], one[-1]["provenance"], one[-1]["rivals"]) == ("json", "revision", None)
    assert one[-1]["why_changed"] == "summary of 2 older revisions"
    assert history(summed(["1", "2", "3", "4"])) == one


# The bound of policy


@pytest.mark.slow
@pytest.mark.parametrize("most", range(2, 7))
def test_no_field_has_more_revisions_than_policy_allows_the_summary_among_them(most: int) -> None:
    for count in range(1, 9):
        state = folded(stating([str(number) for number in range(count)]), policy=Policy(max_field_history=most))
        assert len(history(state)) == min(count, most)
        assert state.revisions.height + state.compressed.height >= count


def test_the_tighter_of_decision_and_policy_holds() -> None:
    numbers = [str(number) for number in range(10)]
    assert len(history(summed(numbers, keep=5, max_field_history=4))) == 4
    assert len(history(summed(numbers, keep=2, max_field_history=6))) == 3


# Late data (law L7)


@pytest.mark.slow
@settings(max_examples=40)
@given(st.integers(0, 95), keeps)
def test_late_data_lands_inside_a_summarised_span_and_never_becomes_current(tenths: int, keep: int) -> None:
    stream = stating([str(number) for number in range(10)])
    late = observation(99, topic_id="a", observed_at=day(tenths / 10 - 1), fields=[field("owner", '"late"')])
    decided = short("a", "owner", keep=keep)
    state = folded([*stream, late], decided)
    assert history(state)[0]["value_json"] == "9"
    whole = pl.concat([state.revisions.filter(pl.col("summarises").is_null()), state.compressed])
    assert same(whole.filter(name="owner"), folded([*stream, late]).revisions.filter(name="owner"))
    if tenths / 10 - 1 < 9 - keep:
        assert '"late"' in state.compressed["value_json"].to_list()
        assert "e99" in history(state)[-1]["evidence_ids"]
        assert any(entry["value"] == "late" for entry in json.loads(history(state)[-1]["value_json"])["values"])


def test_a_summary_of_a_merged_topic_is_not_that_of_its_survivor() -> None:
    """Decisions name a topic; after a merge they are made again."""
    decided = short("b", "owner")
    state = folded(stating([str(number) for number in range(6)]), decided)
    assert len(history(state)) == 6
    assert state.compressed.schema == REVISIONS


def test_a_conflict_asks_for_no_summary_and_what_it_names_stays_out_of_one() -> None:
    contested = [("2026-01-01", "Aya"), ("2026-01-01", "Ben"), ("2025-01-03", "Cleo"), ("2025-01-02", "Dora")]
    rows = [
        observation(number, topic_key="acme", fields=[field("owner", f'"{who}"', valid_from=parse_moment(at))])
        for number, (at, who) in enumerate(contested)
    ]
    state = folded(rows)
    assert state.compressed.is_empty()
    slots = state.revisions.filter(part="field").select("topic_id", "name").unique().with_columns(keep=pl.lit(1))
    kept, compressed = summarised(state.revisions, slots.cast({"keep": pl.Int64}), Policy())
    rivals = state.revisions.filter(rank=0, part="field")["rivals"].explode()
    assert len(rivals) == 1
    assert kept["id"].is_in(rivals.implode()).any()
    assert compressed.height == 2
