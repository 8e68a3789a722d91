"""What counts as a term."""

from __future__ import annotations

import pytest

from memstate_core.model.terms import question_terms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello, WORLD!", ["hell*", "hello", "worl*", "world"]),
        ("Invoice 2024-117b", ["117b", "2024", "invo*", "invoice"]),
        ("ACME1234", ["acme1234"]),
        ("ﬁne café CAFE\u0301", ["café", "fine"]),
        ("東京 tower", ["towe*", "tower", "京", "東"]),
        ("it's its", ["it", "its", "s"]),
        ("мир миру", ["мир", "миру"]),
        ("…!?", []),
        ("", []),
    ],
)
def test_terms_of_a_text(text, expected):
    assert question_terms(text) == expected


def test_forms_of_a_word_share_a_term():
    assert "pain*" in set(question_terms("painting")) & set(question_terms("painted"))
