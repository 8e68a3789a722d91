"""Which topics are one and the same, and which of them survives."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import json as msgjson

from memstate_core.model.frames import DECISION, PAIRS, TOPICS, VECTORS, conform
from memstate_core.revise.duplicates import MAX_BLOCK, find_duplicates
from memstate_core.revise.merge import decide
from memstate_core.state import decisions as decided
from memstate_core.state.graph import TOPIC, VECTOR, open_graph
from memstate_core.state.resolve import survivors
from memstate_core.state.store import open_store
from tests.core.reference import Observation
from tests.core.strategies import (
    BUFFER_MIB,
    SCOPES,
    begin,
    day,
    evidence_frame,
    field,
    fill,
    folded,
    observation,
)

OWNER = [field("owner", '"Aya"')]


def deal(number: int, **said: Any) -> Observation:
    """An observation with a topic of its own, titled as all of them."""
    plain = {"placement": "new_topic", "title": "Acme renewal", "topic_kind": "deal"}
    return observation(number, **(plain | said))


def found(home: Path, stream: Sequence[Observation], texts: dict[str, list[float]] | None = None) -> pl.DataFrame:
    """The pairs that the step finds in a graph folded from a stream, over a real ledger.

    Args:
        home: where the store lies.
        stream: the evidence.
        texts: the direction of the vector of each summary; every other points its own way.
    """
    store = open_store(home, {})
    with store.ledger.writing("test"):
        store.ledger.append("evidence", evidence_frame(stream), "import/1")
    run = begin(home / "work", evidence_version=store.ledger.version("evidence"))
    state = folded(stream)
    run.keep_table("links", state.links)
    with open_graph(run.graph, buffer_mib=BUFFER_MIB) as graph:
        fill(graph, state)
        graph.insert(VECTOR, vectors(state.topics, texts or {}))
    return find_duplicates(store, run).frame


def vectors(topics: pl.DataFrame, texts: dict[str, list[float]]) -> pl.DataFrame:
    directions = np.eye(384, dtype=np.float32)[100 : 100 + topics.height]
    for row, summary in enumerate(topics["summary"]):
        if summary in texts:
            directions[row] = 0
            directions[row, : len(texts[summary])] = texts[summary]
    embedding = pl.Series(directions, dtype=VECTORS["embedding"])
    return conform(topics.select("id", "text_hash", model=pl.lit("none")).with_columns(embedding=embedding), VECTORS)


def verdict(pairs: pl.DataFrame) -> tuple[int, int, bool]:
    """Agreements, conflicts and the decision of the one pair there is."""
    (row,) = pairs.select("agreements", "conflicts", "duplicate").rows()
    return row


# What makes a pair


def test_same_title_and_kind_and_a_field_that_agrees_is_a_duplicate(tmp_path: Path) -> None:
    pairs = found(tmp_path, [deal(1, fields=OWNER), deal(2, fields=OWNER)])
    assert pairs.schema == PAIRS
    assert verdict(pairs) == (1, 0, True)
    assert pairs.filter(pl.col("a") < pl.col("b")).height == 1


def test_titles_kinds_and_values_are_compared_normalised(tmp_path: Path) -> None:
    other = deal(2, title=" ACME\trenewal", topic_kind="Deal ", fields=[field("owner", '"AYA"')])
    assert verdict(found(tmp_path, [deal(1, fields=OWNER), other])) == (1, 0, True)


def test_the_same_title_alone_never_suffices(tmp_path: Path) -> None:
    assert verdict(found(tmp_path, [deal(1, fields=OWNER), deal(2)])) == (0, 0, False)


def test_one_conflict_blocks_however_much_agrees(tmp_path: Path) -> None:
    one = deal(1, summary="Same", fields=[*OWNER, field("stage", "1")])
    other = deal(2, summary="Same", fields=[*OWNER, field("stage", "2")])
    assert verdict(found(tmp_path, [one, other])) == (2, 1, False)


def test_only_current_values_are_compared(tmp_path: Path) -> None:
    """The one was Ben's too, until it became Aya's."""
    once = field("owner", '"Ben"', valid_from=day(-5))
    stream = [deal(1, fields=[once, *OWNER]), deal(2, fields=[field("owner", '"Ben"')])]
    assert verdict(found(tmp_path, stream)) == (0, 1, False)


def test_different_keys_block(tmp_path: Path) -> None:
    stream = [deal(1, topic_key="acme-1", fields=OWNER), deal(2, topic_key="acme-2", fields=OWNER)]
    assert verdict(found(tmp_path, stream)) == (1, 1, False)


def test_a_key_on_one_side_only_does_not_block(tmp_path: Path) -> None:
    assert verdict(found(tmp_path, [deal(1, topic_key="acme-1", fields=OWNER), deal(2, fields=OWNER)])) == (1, 0, True)


def test_another_scope_is_never_compared(tmp_path: Path) -> None:
    assert found(tmp_path, [deal(1, fields=OWNER), deal(2, scope=SCOPES[1], fields=OWNER)]).is_empty()


@pytest.mark.parametrize("other", [{"topic_kind": "person"}, {"topic_kind": None}, {"title": "Acme renewals"}])
def test_another_kind_or_title_is_never_compared(tmp_path: Path, other: dict[str, Any]) -> None:
    assert found(tmp_path, [deal(1, fields=OWNER), deal(2, fields=OWNER, **other)]).is_empty()


def test_two_topics_without_a_kind_have_the_same_kind(tmp_path: Path) -> None:
    stream = [deal(number, topic_kind=None, fields=OWNER) for number in (1, 2)]
    assert verdict(found(tmp_path, stream)) == (1, 0, True)


@pytest.mark.parametrize(
    ("summaries", "agreements"),
    [(("The deal", "the  DEAL"), 1), (("near", "nearly"), 1), (("near", "far"), 0), (("near", None), 0)],
)
def test_summaries_agree_when_equal_or_alike_and_never_conflict(
    tmp_path: Path, summaries: tuple[str, str | None], agreements: int
) -> None:
    stream = [deal(number, summary=summary) for number, summary in enumerate(summaries, start=1)]
    texts = {"near": [1.0], "nearly": [0.95, 0.3122], "far": [0.8, 0.6]}
    assert verdict(found(tmp_path, stream, texts)) == (agreements, 0, agreements > 0)


def test_that_neither_says_a_value_is_no_agreement(tmp_path: Path) -> None:
    nothing = [field("owner", "null")]
    assert verdict(found(tmp_path, [deal(1, fields=nothing), deal(2, fields=nothing)])) == (0, 0, False)


def test_an_archived_topic_is_no_candidate(tmp_path: Path) -> None:
    stream = [deal(1, fields=OWNER), deal(2, fields=OWNER)]
    assert not found(tmp_path / "before", stream).is_empty()
    store = open_store(tmp_path, {})
    run = begin(tmp_path / "work")
    state = folded(stream)
    run.keep_table("links", state.links)
    with open_graph(run.graph, buffer_mib=BUFFER_MIB) as graph:
        fill(graph, state)
        graph.update(TOPIC, pl.DataFrame({"id": [state.topics["id"][0]], "state": ["archived"], "archived": [True]}))
    assert find_duplicates(store, run).frame.is_empty()


def test_a_block_too_large_to_compare_is_reported(tmp_path: Path) -> None:
    store = open_store(tmp_path, {})
    run = begin(tmp_path / "work")
    state = folded([deal(number, fields=OWNER) for number in range(MAX_BLOCK + 1)])
    run.keep_table("links", state.links)
    with open_graph(run.graph, buffer_mib=BUFFER_MIB) as graph:
        fill(graph, state)
    result = find_duplicates(store, run)
    assert result.frame.is_empty()
    assert result.counts["topics_in_oversized_blocks"] == MAX_BLOCK + 1


# What becomes of the pairs

NAMES = "abcdef"
Pair = tuple[str, str, bool]
"""Two topics, and whether they are duplicates; if not they conflict."""

pair_sets = st.dictionaries(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)).filter(lambda pair: pair[0] < pair[1]),
    st.sampled_from((True, True, True, False)),
    max_size=8,
).map(lambda pairs: [(*pair, duplicate) for pair, duplicate in pairs.items()])


def pair_frame(pairs: Sequence[Pair]) -> pl.DataFrame:
    schema = {"a": pl.String, "b": pl.String, "duplicate": pl.Boolean}
    frame = pl.DataFrame([*pairs], orient="row", schema=schema)
    count = pl.col("duplicate").cast(pl.Int64)
    said = {"scope": pl.lit(SCOPES[0]), "rule": pl.lit("same title and kind"), "score": count.cast(pl.Float64)}
    return conform(frame.with_columns(agreements=count, conflicts=1 - count, **said), PAIRS)


def topic_frame(created: dict[str, int] | None = None) -> pl.DataFrame:
    ages = dict.fromkeys(NAMES, 0) | (created or {})
    rows = [{"id": name, "scope": SCOPES[0], "title": name.upper(), "created_at": day(at)} for name, at in ages.items()]
    return conform(pl.DataFrame(rows), TOPICS).select("id", "scope", "title", "topic_kind", "created_at")


def merges(pairs: Sequence[Pair], created: dict[str, int] | None = None) -> dict[str, str]:
    """Dropped topics and their survivors."""
    frame = decide(pair_frame(pairs), topic_frame(created))
    assert frame.schema == DECISION
    return dict(decided.merges(frame).select("dropped", "survivor").iter_rows())


def by_hand(pairs: Sequence[Pair]) -> dict[str, str]:
    """Groups by painting: every duplicate pair gives both topics' groups one colour."""
    colour = {name: name for name in NAMES}
    for a, b, duplicate in pairs:
        if duplicate:
            colour = {name: colour[a] if of == colour[b] else of for name, of in colour.items()}
    torn = {colour[a] for a, b, duplicate in pairs if not duplicate and colour[a] == colour[b]}
    first = {of: min(name for name in NAMES if colour[name] == of) for of in colour.values()}
    return {name: first[of] for name, of in colour.items() if of not in torn and name != first[of]}


@given(pair_sets, st.randoms(use_true_random=False))
def test_groups_without_a_conflict_become_one_topic_each_in_any_order_of_pairs(pairs: list[Pair], chance: Any) -> None:
    assert merges(chance.sample(pairs, len(pairs))) == merges(pairs) == by_hand(pairs)


def test_the_survivor_is_the_one_that_was_there_first() -> None:
    assert merges([("a", "b", True), ("b", "c", True)], created={"a": 2, "b": 1, "c": 3}) == {"a": "b", "c": "b"}


def test_of_the_same_age_the_first_by_id_survives() -> None:
    assert merges([("b", "c", True), ("a", "c", True)]) == {"b": "a", "c": "a"}


def test_a_group_with_a_conflicting_pair_inside_is_left_alone() -> None:
    """a is b and b is c, but a is not c; d and e are none of their business."""
    torn = [("a", "b", True), ("b", "c", True), ("a", "c", False)]
    assert merges([*torn, ("d", "e", True)]) == {"e": "d"}


def test_a_conflict_between_two_groups_does_not_keep_either_from_merging() -> None:
    assert merges([("a", "b", True), ("c", "d", True), ("b", "c", False)]) == {"b": "a", "d": "c"}


def test_without_duplicates_nothing_is_decided() -> None:
    assert merges([]) == {}
    assert merges([("a", "b", False)]) == {}


def test_a_decision_holds_what_undoing_and_reading_it_need() -> None:
    (row,) = decide(pair_frame([("a", "b", True)]), topic_frame()).rows(named=True)
    payload = msgjson.decode(row["payload_json"])
    assert (row["kind"], row["topic_id"], row["scope"]) == ("merged", "b", SCOPES[0])
    assert row["reason"] == "same title and kind; 1 further agreements, no conflict"
    said = {"survivor": "a", "dropped_title": "B", "dropped_kind": None, "score": 1.0, "agreements": 1}
    assert payload == said


# Chains of merges over the nights

forests = st.lists(st.tuples(st.integers(1, 40), st.integers(0, 39)), max_size=40).map(
    lambda pairs: {f"t{of}": f"t{onto % of}" for of, onto in pairs}
)


@given(forests)
def test_chains_resolve_to_their_last_survivor(onto: dict[str, str]) -> None:
    frame = pl.DataFrame(
        {"dropped": [*onto], "survivor": [*onto.values()]},
        schema_overrides={"dropped": pl.String, "survivor": pl.String},
    )
    followed = dict(survivors(frame).iter_rows())
    for dropped, survivor in onto.items():
        while survivor in onto:
            survivor = onto[survivor]
        assert followed[dropped] == survivor


def test_a_long_chain_resolves() -> None:
    names = [f"t{number:04}" for number in range(3000)]
    frame = pl.DataFrame({"dropped": names[:-1], "survivor": names[1:]})
    assert survivors(frame)["survivor"].unique().to_list() == [names[-1]]


def test_a_circle_of_merges_is_refused() -> None:
    with pytest.raises(ValueError, match="circle"):
        survivors(pl.DataFrame({"dropped": ["a", "b", "c"], "survivor": ["b", "c", "a"]}))
