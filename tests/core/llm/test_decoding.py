"""Decoding what models write around and inside JSON, also compared with the partial JSON of pydantic_core."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import from_json

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


# Beside pydantic_core.from_json(allow_partial=True)


def by_pydantic(text: str) -> list[Any]:
    try:
        found = from_json(text, allow_partial=True)
    except ValueError:
        return []
    found = found.get("topics", []) if isinstance(found, dict) else found
    return found if isinstance(found, list) else []


@given(st.lists(TEXTS, max_size=4), st.integers(min_value=0))
def test_of_a_truncated_answer_pydantic_keeps_the_same_objects_and_at_most_the_incomplete_one(
    objects: list[Any], at: int
) -> None:
    text = json.dumps({"topics": objects})
    cut = text[: at % len(text)]
    ours, theirs = decode(cut, "topics").objects, by_pydantic(cut)
    assert theirs in (ours, [*ours, *theirs[-1:]])


def test_pydantic_does_not_distinguish_an_incomplete_object_from_a_complete_one() -> None:
    truncated = '{"topics": [{"title": "a"}, {"title": "b", "turns": [1], "summary": "It is'
    assert by_pydantic(truncated) == [{"title": "a"}, {"title": "b", "turns": [1]}]
    assert decode(truncated, "topics").objects == [{"title": "a"}]


@pytest.mark.parametrize(
    ("text", "ours", "theirs"),
    [
        ('{"topics": [{"title": "a"}, {"title": "b"}}', 2, 2),
        ('{"topics": [{"title": "a"} {"title": "b"}]}', 2, 1),
        ('{"topics": [{"title": "a"},, {"title": "b"}]}', 2, 0),
        ('{"topics": [{"title": "a"}, {"title": "b"}, x]}', 2, 0),
        ('{"topics": [{"title": "a"}, {title: "b"}]}', 1, 0),
        ('{"topics": [{"title": "a"}, {"title": "b\nc"}]}', 1, 0),
        ('```json\n{"topics": [{"title": "a"}, {"ti', 1, 0),
    ],
)
def test_of_a_broken_answer_as_many_objects_are_kept_as_by_pydantic_or_more(text: str, ours: int, theirs: int) -> None:
    kept = decode(text, "topics")
    assert (kept.whole, len(kept.objects), len(by_pydantic(text))) == (False, ours, theirs)
