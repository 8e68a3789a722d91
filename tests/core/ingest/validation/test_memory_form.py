"""The forms by which records write objects of memory, details of events, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

from memstate_core.model.forms.core_block import CORE_BLOCK
from memstate_core.model.forms.registry import FORMS

SCOPE = {"type": "user", "id": "aya"}
PERSONA = {"type": "core_block", "label": "persona", "content": "Aya sails.", "authority": 5, "read_only": True}


def row(**more: Any) -> dict[str, Any]:
    return {"scope": SCOPE, "observed_at": "2026-01-01T00:00:00Z"} | more


def test_a_core_block_is_evidence_about_a_topic_of_its_own(desk):
    assert desk.rows(row(memory=PERSONA, text="She said so.")).accepted == 1
    [kept] = desk.ledger.scan("evidence").collect().to_dicts()
    assert (kept["topic_key"], kept["topic_kind"], kept["title"]) == (f"{CORE_BLOCK}:persona", CORE_BLOCK, "persona")
    assert {field["name"]: (field["value_json"], field["field_type"]) for field in kept["fields"]} == {
        "content": ('"Aya sails."', "string"),
        "authority": ("5", "int"),
        "read_only": ("true", "bool"),
    }
    assert kept["text"] == "She said so."


def test_nulls_are_the_same_record_as_absent_keys_and_state_nothing(desk):
    short = {"type": "core_block", "label": "rules", "content": "Be brief."}
    assert desk.rows(row(memory=short)).accepted == 1
    assert desk.rows(row(memory=short | {"authority": None}, title=None)).duplicate == 1
    fields = desk.ledger.scan("evidence").select(pl.col("fields").explode().struct.unnest()).collect()
    assert list(fields.select("name", "value_json").iter_rows()) == [("content", '"Be brief."')]


@pytest.mark.parametrize(
    ("given", "reason", "named"),
    [
        ({"memory": PERSONA | {"label": "  "}}, "missing_content", "$.memory.label is blank"),
        ({"memory": PERSONA | {"content": ""}}, "missing_content", "$.memory.content is blank"),
        ({"memory": PERSONA | {"authority": 10**7}}, "bad_value", "$.memory.authority is 10000000"),
        ({"memory": PERSONA | {"authority": "high"}}, "wrong_type", "$.memory.authority"),
        ({"memory": PERSONA | {"type": "poem"}}, "unknown_word", "expected one of core_block, "),
        ({"memory": "persona"}, "wrong_type", "$.memory"),
        ({"memory": {"type": "core_block", "label": "persona"}}, "wrong_type", "content"),
        ({"memory": PERSONA, "title": "Persona"}, "bad_value", "$.memory stands beside title"),
        ({"memory": PERSONA, "fields": [{"name": "n", "value": "v"}]}, "bad_value", "$.memory stands beside fields"),
        ({"title": "Persona", "topic_kind": CORE_BLOCK}, "bad_value", "$.topic_kind"),
        ({"topic_key": f"{CORE_BLOCK}:persona", "title": "Persona"}, "bad_value", "$.topic_key"),
    ],
)
def test_what_is_no_core_block_is_quarantined_with_its_reason(desk, given, reason, named):
    report = desk.rows(row(**given), row(memory=PERSONA))
    assert (report.accepted, report.reasons) == (1, {reason: 1})
    [refused] = desk.quarantine()
    assert named in refused["detail"]


STATE = {"type": "session_state", "session_id": "s1", "current_goal": "Find the leak"}
MANUAL = {"type": "resource", "uri": "boat:/manual", "title": "Manual"}


def test_a_session_state_belongs_to_its_session(desk):
    assert desk.rows(row(memory=STATE | {"working_set": ["hull.md"]})).accepted == 1
    [kept] = desk.ledger.scan("evidence").collect().to_dicts()
    assert (kept["session_id"], kept["title"], kept["summary"]) == ("s1", "s1", "Find the leak")
    assert {each["name"]: each["value_json"] for each in kept["fields"]} == {
        "current_goal": '"Find the leak"',
        "working_set": '["hull.md"]',
    }


def test_an_empty_parent_makes_a_resource_a_root(desk):
    assert desk.rows(row(memory=MANUAL | {"parent_uri": "", "content": "Pull the red handle."})).accepted == 1
    [kept] = desk.ledger.scan("evidence").collect().to_dicts()
    assert (kept["topic_kind"], kept["summary"]) == ("memory:resource", "Pull the red handle.")
    assert {each["name"]: each["value_json"] for each in kept["fields"]} == {
        "uri": '"boat:/manual"',
        "content": '"Pull the red handle."',
        "parent_uri": "null",
    }


@pytest.mark.parametrize(
    ("given", "reason", "named"),
    [
        ({"memory": {"type": "session_state", "session_id": "s1"}}, "missing_content", "stands alone"),
        ({"memory": STATE | {"session_id": " "}}, "missing_content", "$.memory.session_id is blank"),
        ({"memory": STATE, "session_id": "s2"}, "bad_value", "the same session as $.session_id"),
        ({"memory": STATE | {"status": "lost"}}, "unknown_word", "expected one of active, blocked, complete"),
        ({"memory": STATE | {"working_set": "hull.md"}}, "wrong_type", "working_set"),
        ({"memory": MANUAL | {"kind": "poem"}}, "unknown_word", "expected one of doc, file, note, url, other"),
        ({"memory": MANUAL | {"parent_uri": "boat:/manual"}}, "bad_value", "$.memory.parent_uri is its own URI"),
        ({"memory": {"type": "resource", "uri": "boat:/"}}, "wrong_type", "title"),
        *(({"title": "x", "topic_kind": form.topic_kind()}, "bad_value", "$.topic_kind") for form in FORMS),
        *(({"title": "x", "topic_key": form.key_of("y")}, "bad_value", "$.topic_key") for form in FORMS),
        ({"text": "ran", "details": "pytest"}, "wrong_type", "$.details"),
        ({"text": "ran", "details": {"tool": 5}}, "wrong_type", "$.details.tool"),
    ],
)
def test_what_is_no_object_or_detail_is_quarantined_with_its_reason(desk, given, reason, named):
    report = desk.rows(row(**given), row(memory=PERSONA))
    assert (report.accepted, report.reasons) == (1, {reason: 1})
    [refused] = desk.quarantine()
    assert named in refused["detail"]


def test_details_are_kept_with_the_evidence_and_nulls_in_them_are_nothing(desk):
    details = {"tool": "pytest", "arguments": {"path": "tests"}, "status": "error", "exit_code": 1}
    assert desk.rows(row(text="ran", kind="tool_result", details=details)).accepted == 1
    assert desk.rows(row(text="ran", kind="tool_result", details=details | {"path": None})).duplicate == 1
    assert desk.rows(row(text="sat", details={"tool": None}), row(text="sat")).accepted == 1
    [payload] = desk.ledger.scan("evidence").select("payload_json").drop_nulls().collect()["payload_json"]
    assert json.loads(payload) == {"details": details}
