"""What a topic of an answer must be, by the rules of an import, before it counts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memstate_core.ingest.reasons import Reason
from memstate_core.llm.validation import Validator
from memstate_core.model.forms.core_block import CORE_BLOCK

LONGEST = 1 << 20


def topic(**said: Any) -> dict[str, Any]:
    return {"title": "Acme renewal", "summary": "It is Aya's.", "topic_kind": "deal", "turns": [1]} | said


def stating(*values: dict[str, Any]) -> dict[str, Any]:
    return topic(fields=[{"name": "x"} | value for value in values])


def test_a_topic_that_holds_is_kept_as_an_observation_would_be() -> None:
    field = {"name": "seats", "value": 3, "field_type": "float", "why_changed": "grew", "confidence": 0.5}
    said = topic(title=" Acme \n renewal", turns=[2, 1, 2], fields=[field], edges=[{"kind": "part_of", "to": "Acme"}])
    [found] = Validator("user:a", LONGEST).found([said], range(10, 15))
    assert (found.title, found.summary, found.topic_kind) == ("Acme renewal", "It is Aya's.", "deal")
    assert found.turns == (10, 11)
    assert found.fields == (("seats", "3.0", "float", False, None, "grew", None, 0.5, None),)
    assert found.edges == (("part_of", "Acme"),)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (topic(title="  "), Reason.MISSING_CONTENT),
        (topic(title=None), Reason.WRONG_TYPE),
        (topic(turns="1"), Reason.WRONG_TYPE),
        (topic(turns=["1"]), Reason.WRONG_TYPE),
        (topic(turns=[]), Reason.BAD_VALUE),
        (topic(turns=[0, -1, 6, 10**30]), None),
        ("a topic", Reason.WRONG_TYPE),
        (None, Reason.WRONG_TYPE),
        (stating({"value": "3", "field_type": "int"}), Reason.BAD_VALUE),
        (stating({"value": "3", "field_type": "number"}), Reason.UNKNOWN_WORD),
        (stating({"value": ["a"]}), Reason.BAD_VALUE),
        (stating({"value": "a", "confidence": 1.5}), Reason.BAD_VALUE),
        (stating({"value": "a", "name": " "}), Reason.WRONG_TYPE),
        (stating({"value": float("nan"), "field_type": "float"}), Reason.NOT_A_NUMBER),
        (stating({"value": "\ud800"}), Reason.BROKEN_JSON),
        (topic(edges=[{"kind": "part_of", "to": " "}]), Reason.MISSING_CONTENT),
        (topic(edges=[{"kind": "", "to": "Acme"}]), Reason.WRONG_TYPE),
        (topic(summary="x" * LONGEST), Reason.LINE_TOO_LONG),
        (topic(topic_kind=CORE_BLOCK), Reason.BAD_VALUE),
    ],
)
def test_a_topic_that_does_not_hold_is_refused_with_the_reason_of_an_import(said: Any, reason: Reason | None) -> None:
    validator = Validator("user:a", LONGEST)
    assert validator.found([said], range(5)) == []
    [refused] = validator.refusals
    assert refused.reason in ({reason} if reason else {Reason.BAD_VALUE, Reason.WRONG_TYPE})
    assert json.loads(refused.row.raw) == said or said != said or "NaN" in refused.row.raw.decode()
    assert "expect" in refused.detail.lower()


def test_a_bad_topic_does_not_take_the_good_ones_with_it() -> None:
    validator = Validator("user:a", LONGEST)
    found = validator.found([topic(title=""), topic(turns=[2]), topic(turns=[9])], range(5))
    assert [one.turns for one in found] == [(1,)]
    assert [refusal.row.line for refusal in validator.refusals] == [1, 3]


def test_a_turn_belongs_to_the_first_topic_that_names_it() -> None:
    validator = Validator("user:a", LONGEST)
    first, second = validator.found([topic(turns=[1, 2]), topic(turns=[2, 3]), topic(turns=[3, 1])], range(5))
    assert (first.turns, second.turns) == ((0, 1), (2,))
    [refused] = validator.refusals
    assert "only turns of topics before it" in refused.detail


def test_an_id_in_an_answer_is_no_reference() -> None:
    said = topic(topic_id="t-1", topic_key="k", observation_id="o", scope={"type": "user", "id": "other"})
    [field] = [{"name": "x", "value": "y", "ref_topic_id": "t-1"}]
    [found] = Validator("user:a", LONGEST).found([said | {"fields": [field]}], range(5))
    assert found.fields == (("x", '"y"', "string", False, None, None, None, None, None),)
