"""Statements that a later one may have replaced give it their place, where a question asks for what holds now."""

from __future__ import annotations

import pytest

from memstate_core.retrieve.newest_first import asks_for_the_present


@pytest.mark.parametrize(
    "question",
    ["Where does Ines live?", "What's her job?", "Is he vegan?", "What is the code now?", "Which boats have sails?"],
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
        "Wo wohnt Ines?",
        "",
    ],
)
def test_other_questions_do_not(question: str) -> None:
    assert not asks_for_the_present(question, [2025, 2026])
