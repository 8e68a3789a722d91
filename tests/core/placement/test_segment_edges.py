"""Edges of segments: to the next topic of the session, and to topics that are mentioned."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from memstate_core.model.frames import empty
from memstate_core.model.step_frames import PLACEMENTS, SEGMENTS
from memstate_core.placement.entity_mentions import known_names, mentions
from memstate_core.placement.segment_edges import with_edges
from tests.core.frames import filled
from tests.core.placement.talk import BEGAN, talk, turn

SCOPE = "user:aya"


def said(*texts: str | None, scope: str = SCOPE) -> pl.DataFrame:
    """Segments of a turn each."""
    rows = [(at, scope, f"own-{at}", BEGAN, text) for at, text in enumerate(texts)]
    schema = {"segment": pl.Int64, "scope": pl.String, "topic_id": pl.String, "began_at": pl.Datetime("us", "UTC")}
    return pl.DataFrame(rows, schema=schema | {"text": pl.String}, orient="row")


def names(**called: str) -> pl.DataFrame:
    rows = [(SCOPE, topic, name, None) for topic, name in called.items()]
    schema = {"scope": pl.String, "topic_id": pl.String, "name": pl.String, "since": pl.Datetime("us", "UTC")}
    return pl.DataFrame(rows, schema=schema, orient="row")


def found(texts: pl.DataFrame, **called: str) -> list[tuple[int, str]]:
    return mentions(texts, names(**called)).rows()


@pytest.mark.parametrize(
    "text",
    [
        "We spoke of the Acme renewal today.", "acme RENEWAL!", "the acme-renewal, again",
        "Acme\nrenewal", "(Acme renewal)", "\uff21cme renewal",
    ],
)  # fmt: skip
def test_a_name_of_several_words_is_found_as_whole_words_in_any_case(text: str) -> None:
    assert found(said(text), acme="Acme renewal") == [(0, "acme")]


@pytest.mark.parametrize("text", ["Acme renewals", "renewal of Acme", "macme renewal", "", None, "\U0001f600"])
def test_what_is_not_the_whole_name_is_no_mention(text: str | None) -> None:
    assert found(said(text), acme="Acme renewal") == []


def test_names_that_overlap_are_all_found() -> None:
    hits = found(said("The Riverside Studio School opens."), a="Riverside Studio", b="Studio School")
    assert hits == [(0, "a"), (0, "b")]


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("We use Kuzu for it.", True), ("We use kuzu for it.", False), ("Kuzu.", False), ("Fine. Kuzu is it", False),
        ("It is Kuzu", True), ("It is Kuzumi", False),
    ],
)  # fmt: skip
def test_one_word_counts_only_where_it_is_written_as_a_name(text: str, counts: bool) -> None:
    assert found(said(text), kuzu="Kuzu") == ([(0, "kuzu")] if counts else [])


def test_a_common_word_and_a_short_one_are_no_names() -> None:
    assert found(said("the plan is a plan", "It is Plan"), plan="plan") == []
    assert "t" not in known_names(*known(("t", "Al", "person")))["topic_id"].to_list()


def test_what_is_said_all_the_time_is_no_name() -> None:
    texts = ["As Caroline said."] * 8 + ["Nothing."] * 12
    assert found(said(*texts), caroline="Caroline") == []
    assert len(found(said(*texts[5:]), caroline="Caroline")) == 3


def test_a_segment_does_not_mention_its_own_topic() -> None:
    texts = said("We spoke of the Acme renewal.").with_columns(topic_id=pl.lit("acme"))
    assert found(texts, acme="Acme renewal") == []


def test_scopes_do_not_know_each_others_names() -> None:
    assert found(said("We spoke of the Acme renewal.", scope="user:ben"), acme="Acme renewal") == []


def test_unspaced_scripts_are_searched_too() -> None:
    assert found(said("\u6211\u4eec\u53bb\u4e86\u9676\u827a\u8bfe\u3002"), p="\u9676\u827a\u8bfe\u5802") == []
    assert found(said("\u6211\u4eec\u53bb\u4e86\u9676\u827a\u8bfe\u5802\u3002"), p="\u9676\u827a\u8bfe\u5802") == [
        (0, "p")
    ]


def known(*topics: tuple[str, str, str]) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Arguments of `known_names` for active topics (id, title, kind) and one new segment."""
    frame = pl.DataFrame(topics, schema=["id", "title", "topic_kind"], orient="row").with_columns(scope=pl.lit(SCOPE))
    evidence = talk(turn(1, None, topic_key="acme-renewal", title="Acme"), turn(2, "hm"))
    placed = filled(pl.DataFrame({"evidence_id": ["e00001"], "scope": SCOPE, "topic_id": "acme"}), PLACEMENTS)
    return frame, evidence, placed, segments(segment("new", ["e00002"], title="Charity race, shoes"))


def segment(topic: str, evidence: list[str], **more: Any) -> dict[str, Any]:
    own = {"topic_id": topic, "scope": SCOPE, "evidence_ids": evidence, "title": None, "topic_kind": "conversation"}
    return {**own, "session_id": "s", "began_at": BEGAN, "ended_at": BEGAN} | more


def segments(*rows: dict[str, Any]) -> pl.DataFrame:
    schema = {name: SEGMENTS[name] for name in SEGMENTS if any(name in row for row in rows)}
    return filled(pl.DataFrame(rows, schema=schema), SEGMENTS)


def test_topics_are_called_by_title_key_and_first_phrase() -> None:
    known_by_name = known_names(
        *known(
            ("deal", "Plan B of Oslo", "deal"),
            ("talk", "Pottery class, bowl", "conversation"),
            ("word", "Necklace", "conversation"),
        )
    )
    called = {(topic, name) for topic, name in known_by_name.select("topic_id", "name").rows()}
    assert called == {
        ("deal", "Plan B of Oslo"), ("talk", "Pottery class"), ("new", "Charity race"),
        ("acme", "Acme"), ("acme", "acme-renewal"),
    }  # fmt: skip


def edges_of(
    *rows: dict[str, Any], evidence: pl.DataFrame | None = None, called: pl.DataFrame | None = None
) -> list[Any]:
    turns = talk(turn(0, "hm")) if evidence is None else evidence
    result = with_edges(segments(*rows), turns, names() if called is None else called)
    return [[tuple(link.values()) for link in row] for row in result["links"].to_list()]


def test_each_topic_of_a_session_leads_to_the_next_one() -> None:
    rows = [segment(topic, [f"e{at}"]) for at, topic in enumerate("abc")]
    assert edges_of(*rows) == [[("associated_with", "b")], [("associated_with", "c")], []]


def test_a_session_that_stays_with_its_topic_leads_nowhere() -> None:
    assert edges_of(segment("a", ["e1"]), segment("a", ["e2"])) == [[], []]


def test_other_sessions_and_notes_are_not_led_to() -> None:
    rows = [segment("a", ["e1"]), segment("b", ["e2"], session_id="t"), segment("c", ["e3"], session_id=None)]
    assert edges_of(*rows, segment("d", ["e4"], session_id=None)) == [[], [], [], []]


def test_edges_that_a_segment_already_has_stay() -> None:
    own = [{"kind": "part_of", "to_topic_id": "z"}]
    assert edges_of(segment("a", ["e1"], links=own), segment("b", ["e2"])) == [
        [("associated_with", "b"), ("part_of", "z")], [],
    ]  # fmt: skip


def test_a_name_is_not_known_before_it_was_said() -> None:
    """The segment that gave a topic its name may be mentioned by later ones alone, as over nights."""
    evidence = talk(turn(1, "A charity race would be good."), turn(2, "The charity race was hard."))
    named = names(race="charity race").with_columns(since=pl.lit(BEGAN).dt.offset_by("1d"))
    later = segment("b", ["e00002"], session_id="t", began_at=BEGAN.replace(day=7))
    found = edges_of(segment("a", ["e00001"]), later, evidence=evidence, called=named)
    assert found == [[], [("mentions", "race")]]


def test_no_segment_has_no_link() -> None:
    assert with_edges(empty(SEGMENTS), talk(turn(0, "hm")), names()).is_empty()
