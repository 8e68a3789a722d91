"""As-of answers are those of a world that ended at the moment: what was not known then is absent."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from memstate_core.model.errors import TopicNotFound
from memstate_core.model.forms.core_block import CONTENT, CORE_BLOCK, CoreBlock
from memstate_core.model.forms.registry import FORM_KINDS
from memstate_core.model.frames import empty
from memstate_core.model.ledger_tables import TRANSITIONS
from memstate_core.model.step_frames import EVIDENCE_INDEX
from memstate_core.policy.settings import Policy
from memstate_core.retrieve.past import Past, read_past
from memstate_core.retrieve.query import Question, answer
from memstate_core.retrieve.views.core_blocks import core_blocks
from memstate_core.retrieve.views.topic import topic_record
from memstate_core.state.fold.decisions import ARCHIVED, MERGED, PINNED, RESTORED, SEGMENT_PLACED, segment_decisions
from memstate_core.state.fold.strength import saliences
from memstate_core.state.graph import Graph, open_graph
from memstate_core.state.ledger.ledger import Ledger
from tests.core import reference
from tests.core.frames import filled
from tests.core.reference import Merge, Observation, Segment
from tests.core.retrieve.conftest import Store, manifest
from tests.core.segments import conversations, placed_in_the_night, segment_frame, segments_by
from tests.core.strategies import (
    SCOPES,
    TITLES,
    accessed,
    day,
    edge,
    evidence_frame,
    field,
    folded,
    merge_decisions,
    observation,
    streams,
)

pytestmark = pytest.mark.slow

SCOPE = SCOPES[0]
MERGED_FROM = 7
"""Merges are decided on this day and the following ones, when everything has been observed."""


@pytest.fixture(scope="module")
def no_reviews(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    with open_graph(tmp_path_factory.mktemp("graph") / "graph.kuzu", buffer_mib=64) as graph:
        yield graph


@contextmanager
def ledger_of(stream: list[Observation], decisions: pl.DataFrame, accesses: pl.DataFrame) -> Iterator[Ledger]:
    with tempfile.TemporaryDirectory() as root:
        ledger = Ledger(Path(root))
        ledger.append("evidence", evidence_frame(stream), "test")
        ledger.append("accesses", accesses, "test")
        numbered = decisions.with_columns(
            seq=pl.int_range(pl.len(), dtype=pl.Int64), shard=pl.lit("s0"), run_id=pl.lit("run")
        )
        ledger.append("transitions", filled(numbered, TRANSITIONS), "test")
        yield ledger


def past_of(graph: Graph, stream: list[Observation], decisions: pl.DataFrame, accesses: pl.DataFrame, at: int) -> Past:
    with ledger_of(stream, decisions, accesses) as ledger:
        recorded = manifest("s0", {})
        pinned = structs.replace(recorded, evidence_version=0, accesses_version=0, policy=Policy().model_dump())
        return read_past(ledger, pinned, graph, empty(EVIDENCE_INDEX), SCOPE, day(at))


def in_one_scope(stream: list[Observation]) -> list[Observation]:
    """The stream in one scope, in which no value became true before it was observed."""

    def moved(said: dict[str, Any], observed: Any) -> dict[str, Any]:
        since = said["valid_from"]
        return said | {"valid_from": None if since is None or since < observed else since}

    return [
        said
        | {"scope": SCOPE}
        | {part: [moved(each, said["observed_at"]) for each in said[part]] for part in ("fields", "edges")}
        for said in stream
    ]


def as_block(said: Observation, label: str) -> Observation:
    """The observation as one that writes a core block, of which the value of its first field is the content."""
    contents = [each | {"name": CONTENT, "ref_given": False, "ref_topic_id": None} for each in said["fields"][:1]]
    own = {"topic_id": None, "topic_key": CoreBlock.key_of(label), "topic_kind": CORE_BLOCK, "title": label}
    return said | own | {"placement": None, "summary": None, "fields": contents, "edges": []}


def without_forms(topics: dict[str, dict[str, Any]]) -> list[str]:
    """The ids of topics that nights may merge or place turns in."""
    return sorted(name for name, topic in topics.items() if topic["topic_kind"] not in FORM_KINDS)


def known_by(stream: list[Observation], at: int) -> list[Observation]:
    """What had been observed by a day, without what was to become true later."""
    return [
        said
        | {
            part: [each for each in said[part] if (each["valid_from"] or said["observed_at"]) <= day(at)]
            for part in ("fields", "edges")
        }
        for said in stream
        if said["observed_at"] <= day(at)
    ]


@st.composite
def histories(
    draw: st.DrawFn,
) -> tuple[list[Observation], list[Segment], list[Merge], pl.DataFrame, pl.DataFrame, int]:
    """Observations, core blocks and turns, segments, merges, all decisions with their times, accesses, and a day."""
    stream = in_one_scope(draw(streams(min_size=3, max_size=8)))
    labels = draw(st.lists(st.none() | st.sampled_from(TITLES), min_size=len(stream), max_size=len(stream)))
    stream = [as_block(said, label) if label else said for said, label in zip(stream, labels, strict=True)]
    turns, segments = draw(conversations(without_forms(reference.fold(stream).topics)))
    stream = stream + turns
    world = reference.fold(stream, segments=segments)
    topics = draw(st.permutations(without_forms(world.topics)))
    places = [draw(st.none() | st.integers(0, place - 1)) for place in range(1, len(topics))]
    merges = [(topics[n + 1], topics[place]) for n, place in enumerate(places) if place is not None]
    merged = merge_decisions(merges, world)
    days = [day(MERGED_FROM + number) for number in range(len(merges))]
    ladder = [
        (draw(st.sampled_from((ARCHIVED, RESTORED, PINNED))), topic, day(draw(st.integers(7, 12)))) for topic in topics
    ]
    schema = {"kind": pl.String, "topic_id": pl.String, "at": TRANSITIONS["at"]}
    rows = pl.DataFrame(ladder, schema, orient="row").with_columns(payload_json=pl.lit("{}"), scope=pl.lit(SCOPE))
    dated = merged.with_columns(pl.Series("at", days, TRANSITIONS["at"]))
    every = [placed_in_the_night(segments), dated, rows]
    decisions = pl.concat(every, how="diagonal").sort("at", maintain_order=True)
    read = draw(st.lists(st.tuples(st.sampled_from(topics), st.integers(0, 12)), max_size=4)) if topics else []
    accesses = accessed(*({"topic_id": topic, "at": at} for topic, at in read))
    return stream, segments, merges, decisions, accesses, draw(st.integers(0, 13))


@settings(max_examples=60)
@given(histories())
def test_every_part_of_a_past_state_is_that_of_a_world_which_ended_then(no_reviews: Graph, drawn: Any) -> None:
    stream, all_segments, merges, decisions, accesses, at = drawn
    past, known = past_of(no_reviews, stream, decisions, accesses, at), known_by(stream, at)
    merged_by_then = [merge for number, merge in enumerate(merges) if MERGED_FROM + number <= at]
    segments = segments_by(all_segments, at)
    world = reference.fold(known, merged_by_then, segments=segments)
    assert parts_of(past) == {name: parts(topic) for name, topic in world.topics.items()}
    tombstones = past.topics.filter(pl.col("state") == "merged")
    assert dict(tombstones.select("id", "merged_into").iter_rows()) == world.tombstones
    valid = {key: each for key, each in world.edges.items() if each[1] is None or each[1] > day(at)}
    assert edges_of(past) == valid
    placed = {evidence: topic for evidence, topic in world.placed.items() if topic is not None}
    assert dict(past.evidence_topic.select("evidence_id", "topic_id").iter_rows()) == placed
    assert saliences_of(past) == expected_saliences(known, segments, decisions, accesses, at)


def parts(topic: dict[str, Any]) -> dict[str, Any]:
    fields = {
        name: (each["field_type"], each["ref_topic_id"], [revision[:3] for revision in each["history"]])
        for name, each in topic["fields"].items()
    }
    return {name: topic[name] for name in ("title", "summary", "topic_kind")} | {"fields": fields}


def parts_of(past: Past) -> dict[str, dict[str, Any]]:
    living = past.topics.filter(pl.col("merged_into").is_null())
    own = ("title", "summary", "topic_kind")
    found = {row["id"]: {name: row[name] for name in own} | {"fields": {}} for row in living.iter_rows(named=True)}
    for row in past.fields.iter_rows(named=True):
        history = past.revisions.filter(
            (pl.col("part") == "field") & (pl.col("topic_id") == row["topic_id"]) & (pl.col("name") == row["name"])
        ).sort("rank")
        values = list(history.select("value_json", "valid_from", "evidence_ids").iter_rows())
        found[row["topic_id"]]["fields"][row["name"]] = (row["field_type"], row["ref_topic_id"], values)
    return found


def edges_of(past: Past) -> dict[Any, Any]:
    columns = ("from_id", "to_id", "kind", "valid_from", "valid_until", "evidence_ids")
    return {row[:3]: row[3:] for row in past.edges.select(columns).iter_rows()}


def saliences_of(past: Past) -> dict[str, Any]:
    rows = past.topics.filter(pl.col("merged_into").is_null()).select("id", "salience", "state", "pinned")
    return {name: tuple(rest) for name, *rest in rows.iter_rows()}


def expected_saliences(
    known: list[Observation], segments: list[Segment], decisions: pl.DataFrame, accesses: pl.DataFrame, at: int
) -> Any:
    """What a night on that day would have computed from nothing but what was known."""
    if not known:
        return {}
    later = decisions.filter((pl.col("at") <= day(at)) & (pl.col("kind") != SEGMENT_PLACED)).drop("at")
    stated = segment_decisions(segment_frame([segment for segment in segments if segment["stated"]]))
    by_then = pl.concat([stated, later], how="diagonal")
    used = accesses.filter(pl.col("at") <= day(at))
    recorded = filled(by_then, {n: TRANSITIONS[n] for n in by_then.columns})
    state = folded(known, recorded, accesses=used, segments=segment_frame(segments))
    topics = state.topics.filter(pl.col("merged_into").is_null()).drop("salience", "failed_salience")
    _, ranked = saliences(state.fields.drop("salience"), topics, day(at), Policy())
    return {name: tuple(rest) for name, *rest in ranked.select("id", "salience", "state", "pinned").iter_rows()}


# One moment, through the reader

STREAM = [
    observation(1, topic_id="acme", fields=[field("owner", '"Aya"')]),
    observation(2, topic_id="other", observed_at=day(1), title="Acme of old"),
    observation(3, topic_id="acme", observed_at=day(4), title="Acme renewal", summary="Won", topic_kind="deal"),
    observation(
        4, topic_id="third", observed_at=day(1), title="The quay", edges=[edge("mentions", to_topic_id="acme")]
    ),
    observation(5, topic_id="third", observed_at=day(5), title="The sold quay"),
]


@pytest.fixture
def readers(store: Store, opened: Any) -> Any:
    """A store of STREAM in which `other` was merged into `acme` on day 6, and `third` archived on day 8."""
    merged = merge_decisions([("other", "acme")], reference.fold(STREAM))
    for topic in folded(STREAM, merged).topics.to_dicts():
        state = {"state": "archived"} if topic["id"] == "third" else {"state": topic["state"]}
        store.topic(topic["id"], SCOPE, **{name: topic[name] for name in ("title", "merged_into")}, **state)
    store.edge("third", "acme", "mentions")
    store.says("acme", "The owner of Acme is Aya", on=0, scope=SCOPE)
    store.says("acme", "Acme of old had a fax", on=1, scope=SCOPE)
    store.observed = evidence_frame(STREAM).to_dicts() + [
        said | {"topic_id": topic} for said, topic in zip(store.evidence, ("acme", "other"), strict=True)
    ]
    store.decided = [(MERGED, "other", day(6), {"survivor": "acme"}), (ARCHIVED, "third", day(8), {})]
    return opened(store)


def ask(readers: Any, store: Store, at: int, **given: Any) -> dict[str, Any]:
    question = Question("Acme quay fax", scopes=(SCOPE,), as_of=day(at), **given)
    return {each["topic_id"]: each for each in answer(readers, store.encoder, None, question)["candidates"]}


def test_a_title_a_summary_and_a_kind_without_a_revision_by_then_are_absent(readers: Any, store: Store) -> None:
    then, later = (topic_record(readers, "acme", as_of=day(at)) for at in (3, 4))
    assert (then["title"], then["summary"], then["topic_kind"]) == ("acme", None, None)
    assert (later["title"], later["summary"], later["topic_kind"]) == ("Acme renewal", "Won", "deal")
    found = ask(readers, store, 3)["acme"]
    assert (found["title"], found["summary"], found["topic_kind"]) == ("acme", None, None)
    assert "renewal" not in json.dumps(ask(readers, store, 3, history=True))


def test_a_topic_that_was_merged_later_is_itself_before(readers: Any, store: Store) -> None:
    before, after = (topic_record(readers, "other", as_of=day(at)) for at in (5, 6))
    assert (before["id"], before["title"], before["state"]) == ("other", "Acme of old", "active")
    assert "resolved_from" not in before
    assert (after["id"], after["resolved_from"]) == ("acme", ["other"])
    assert set(ask(readers, store, 5)) == {"acme", "other", "third"}
    assert set(ask(readers, store, 6)) == {"acme", "third"}


def test_evidence_belongs_to_the_topic_that_it_had_then(readers: Any, store: Store) -> None:
    def topics(at: int) -> dict[str, str]:
        question = Question("Acme fax", scopes=(SCOPE,), as_of=day(at))
        found = answer(readers, store.encoder, None, question)["evidence"]
        return {each["observation_id"]: each["topic_id"] for each in found}

    assert topics(5) == {"o0000": "acme", "o0001": "other"}
    assert topics(7) == {"o0000": "acme", "o0001": "acme"}
    assert topics(0) == {"o0000": "acme"}


def test_a_topic_is_archived_from_the_night_that_archived_it(readers: Any, store: Store) -> None:
    assert [topic_record(readers, "third", as_of=day(at))["state"] for at in (7, 8)] == ["active", "archived"]
    assert "third" in ask(readers, store, 7)
    assert "third" not in ask(readers, store, 8)
    assert "third" in ask(readers, store, 8, topic_ids=("third",))


def test_neighbours_have_the_titles_of_then(readers: Any, store: Store) -> None:
    [near] = ask(readers, store, 4)["acme"]["neighbors"]
    assert (near["topic_id"], near["title"]) == ("third", "The quay")
    [near] = ask(readers, store, 5)["acme"]["neighbors"]
    assert near["title"] == "The sold quay"


def test_salience_is_that_of_the_moment(readers: Any) -> None:
    first, faded, said_again = (topic_record(readers, "acme", as_of=day(at))["salience"] for at in (0, 3, 4))
    assert first > faded > 0
    assert said_again != topic_record(readers, "acme")["salience"]


def test_an_id_that_nothing_had_yet_is_not_found(readers: Any, store: Store) -> None:
    with pytest.raises(TopicNotFound, match="as of 2026-01-01"):
        topic_record(readers, "other", as_of=day(0))
    with pytest.raises(TopicNotFound, match="as of 2026-01-01"):
        ask(readers, store, 0, topic_ids=("other",))


def test_core_blocks_are_those_of_the_moment(store: Store, opened: Any) -> None:
    def says(number: int, label: str, content: str, at: int) -> Observation:
        return as_block(observation(number, observed_at=day(at), fields=[field("", json.dumps(content))]), label)

    stream = [says(1, "rules", "Be brief", 1), says(2, "rules", "Be kind", 5), says(3, "persona", "A gardener", 6)]
    for topic in folded(stream).topics.to_dicts():
        store.topic(topic["id"], SCOPE, title=topic["title"], topic_kind=CORE_BLOCK)
    store.observed = evidence_frame(stream).to_dicts()
    readers = opened(store)
    known = {at: {each["label"]: each["content"] for each in core_blocks(readers, [SCOPE], day(at))} for at in range(8)}
    assert known[0] == {}
    assert known[1] == known[4] == {"rules": "Be brief"}
    assert known[5] == {"rules": "Be kind"}
    assert known[6] == {"rules": "Be kind", "persona": "A gardener"}
