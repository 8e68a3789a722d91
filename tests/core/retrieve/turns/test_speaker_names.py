"""Names of speakers: those of the turns, those by which others address them, and questions without them."""

from __future__ import annotations

import polars as pl
import pytest

from memstate_core.model.terms import question_terms
from memstate_core.retrieve.turns.speaker_names import SpeakerNames, address_names, without_names

Turn = tuple[str | None, str | None, str]


def evidence(turns: list[Turn]) -> pl.DataFrame:
    return pl.DataFrame(turns, schema=dict.fromkeys(("session_id", "actor", "text"), pl.String), orient="row")


CHAT = [(f"day {day}", actor, text) for day in range(3) for actor, text in [
    ("u17", "Hey Kate, how was Miami?"), ("u18", "Oh hi Lou! I was in New York."), ("u17", "See you, Kate"),
]]  # fmt: skip


def names(turns: list[Turn]) -> list[tuple[str, str]]:
    return [(actor, word) for actor, word in address_names(evidence(turns)).rows()]


def test_a_word_that_addresses_the_other_one_in_several_sessions_is_a_name() -> None:
    assert names(CHAT) == [("u17", "lou"), ("u18", "kate")]


@pytest.mark.parametrize(
    ("why", "turns"),
    [
        ("too few turns", CHAT[:3]),
        ("one session only", [("one day", actor, text) for _, actor, text in CHAT]),
        ("no session", [(None, actor, text) for _, actor, text in CHAT]),
        ("no speaker", [(day, None, text) for day, _, text in CHAT]),
        ("three in a session", [*CHAT, *((f"day {day}", "u19", "hello") for day in range(3))]),
        ("both say it", [(day, actor, "Hey Merry, dear!") for day, actor, _ in CHAT]),
        ("no capital", [(day, actor, text.lower()) for day, actor, text in CHAT]),
        ("first word of the turn", [(day, actor, "Thanks!") for day, actor, _ in CHAT]),
        ("no mark behind it", [(day, actor, "I like Miami a lot") for day, actor, _ in CHAT]),
    ],
)
def test_other_words_are_no_names(why: str, turns: list[Turn]) -> None:
    assert names(turns) == [], why


def test_a_word_for_two_speakers_is_the_name_of_neither() -> None:
    others = [(f"other {day}", {"u17": "u20", "u18": "u21"}[by], text.replace("Lou", "Sue")) for day, by, text in CHAT]
    assert names([*CHAT, *others]) == [("u17", "lou"), ("u20", "sue")]


def test_rare_capitals_beside_a_frequent_name_are_not_names() -> None:
    often = [(f"day {day}", "u17", "Hi Kate!") for day in range(20)]
    places = [(f"day {day}", "u17", "In Miami!") for day in range(3)]
    answers = [(f"day {day}", "u18", "hello") for day in range(20)]
    assert names([*often, *places, *answers]) == [("u18", "kate")]


def of_chat() -> SpeakerNames:
    return SpeakerNames.of(evidence([*CHAT, ("x", "Anna-Lena Smith", "hello"), ("x", None, "hello")]))


@pytest.mark.parametrize(
    ("question", "shares"),
    [
        ("Where was Kate?", {"u18": 1}),
        ("Where was u18?", {"u18": 1}),
        ("Where was Smith?", {"Anna-Lena Smith": 1 / 3}),
        ("Where were Anna Lena Smith and Lou?", {"Anna-Lena Smith": 1, "u17": 1}),
        ("Where was Bob?", {}),
    ],
)
def test_speakers_are_named_by_the_share_of_their_names(question: str, shares: dict[str, float]) -> None:
    found = of_chat().named(question_terms(question))
    actors = ["", "Anna-Lena Smith", "u17", "u18"]
    assert {actor: share for actor, share in zip(actors, found, strict=True) if share} == pytest.approx(shares)


@pytest.mark.parametrize(
    ("question", "rest"),
    [
        ("What did Kate's dog eat?", "What did dog eat?"),
        ("What did KATE and Anna Lena like most?", "What did and like most?"),
        ("What did Mr Smith like most?", "What did Mr Smith like most?"),
        ("What did Kates dog eat?", "What did Kates dog eat?"),
        ("Who is Kate?", "Who is Kate?"),
        ("", ""),
    ],
)
def test_questions_lose_the_names_of_speakers(question: str, rest: str) -> None:
    assert without_names(question, of_chat().in_question(question_terms(question))) == rest
