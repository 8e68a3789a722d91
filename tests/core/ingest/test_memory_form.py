"""The form by which a record writes a core block, and what is refused."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from memstate_core.model.forms.core_block import CORE_BLOCK

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
        ({"memory": PERSONA | {"type": "poem"}}, "unknown_word", "$.memory.type"),
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
