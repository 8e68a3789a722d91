"""Reading what models write around and inside JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstate_core.llm.decoding import Decoded, decode

TOPIC = {"title": "Acme", "turns": [1, 2], "fields": [{"name": "owner", "value": "Aya"}]}
WHOLE = json.dumps({"topics": [TOPIC]})


@pytest.mark.parametrize(
    "text",
    [
        WHOLE,
        f"```json\n{WHOLE}\n```",
        f"Here {{are}} the topics:\n{WHOLE}\nI hope [this] helps!",
        f'<think>Maybe {{"topics": []}}?</think>{WHOLE}',
        json.dumps([TOPIC]),
        json.dumps({"why": "x", "topics": [TOPIC]}),
        WHOLE + WHOLE,
    ],
)
def test_an_answer_is_found_in_what_stands_around_it(text: str) -> None:
    assert decode(text, "topics") == Decoded([TOPIC], True)


@pytest.mark.parametrize(
    "text",
    ["", "no", "{", '{"topics": 3}', '{"topics": {}}', '{"title": "Acme", "turns": [1, 2', "[" * 5000, '{"a":' * 5000],
)
def test_an_answer_in_which_nothing_can_be_read_is_malformed(text: str) -> None:
    assert decode(text, "topics") == Decoded([], False)


def test_what_is_nested_too_deep_is_left_out() -> None:
    deep: Any = "x"
    for _ in range(200):
        deep = [deep]
    assert decode(json.dumps({"topics": [TOPIC, {"title": deep}]}), "topics") == Decoded([TOPIC], True)


TEXTS = st.dictionaries(st.text(max_size=8), st.text(max_size=8) | st.integers(), max_size=3)


@given(st.lists(TEXTS, max_size=4), st.integers(min_value=0), st.booleans())
def test_of_an_answer_that_breaks_off_every_whole_object_is_kept_and_no_torn_one(
    objects: list[Any], at: int, ascii: bool
) -> None:
    text = json.dumps({"topics": objects}, ensure_ascii=ascii)
    cut = text[: at % (len(text) + 1)]
    found = decode(cut, "topics")
    assert found.objects == objects[: len(found.objects)]
    assert found.whole == (cut == text)
    ends = [len(json.dumps({"topics": objects[: n + 1]}, ensure_ascii=ascii)) - 2 for n in range(len(objects))]
    assert len(found.objects) == sum(end <= len(cut) for end in ends)
