"""Questions for what holds now: which they are, and how they are put for comparison with turns."""

from __future__ import annotations

import pytest

from memstate_core.model.terms import question_terms
from memstate_core.retrieve.question.present import asks_for_the_present, in_first_person, without_question_words


@pytest.mark.parametrize(
    "question",
    [
        "Where does Ines live?",
        "What's her job?",
        "Is he vegan?",
        "What is the code now?",
        "Which boats have sails?",
        "Which animal lives with Ines?",
        "Who likes the boat?",
        "Tell me Ines's current job",
        "Ines's phone number",
        "the boat's home harbour",
        "current phone number of Ines",
        "phone number of Ines now",
        "I need the number of Ines",
        "please remind me of his address",
    ],
)
def test_questions_in_the_present_tense_ask_for_the_present(question: str) -> None:
    assert asks_for_the_present(question, [2025, 2026])


@pytest.mark.parametrize(
    "question",
    [
        "Where did Ines live?",
        "Where does Ines say she lived before?",
        "What is the first code?",
        "What was it when Bo is away?",
        "Who does she meet in May 2025?",
        "favourite colour",
        "Which animal lived with Ines?",
        "Who likes what she wore last year?",
        "Which red dress fell?",
        "The man who likes boats",
        "Tell me when Ines moved",
        "Tell me why she left",
        "Ines's first phone number",
        "Ines's trip to Oslo in May 2025",
        "Tell me what Ines visited",
        "the harbour Ines visited, now",
        "Wo wohnt Ines?",
        "",
    ],
)
def test_other_questions_do_not(question: str) -> None:
    assert not asks_for_the_present(question, [2025, 2026])


@pytest.mark.parametrize(
    ("question", "put"),
    [
        ("Where does Kate live?", "Where do I live?"),
        ("What is Kate's job?", "What is my job?"),
        ("Is KATE Smith vegan?", "am I vegan?"),
        ("Which boat has Kate?", "Which boat have I?"),
        ("Who says that Kate is away?", "Who says that I am away?"),
        ("Where do Kates live?", "Where do Kates live?"),
        ("Where does Bo live?", "Where does Bo live?"),
    ],
)
def test_names_of_speakers_become_the_first_person(question: str, put: str) -> None:
    assert in_first_person(question, {"kate", "smith"}) == put


def test_a_question_without_names_stays_as_it_is() -> None:
    assert in_first_person("Where does Kate live?", set()) == "Where does Kate live?"


def test_words_that_make_a_question_are_not_looked_for() -> None:
    assert without_question_words(question_terms("Where does Kate live, and which boat is hers?")) == [
        "and", "boat", "hers", "kate", "live",
    ]  # fmt: skip
    assert without_question_words(["does", "who"]) == ["does", "who"]
