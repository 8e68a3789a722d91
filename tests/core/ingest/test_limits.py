"""Limits of validation: every part of an observation has one, and what exceeds it is refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from memstate_core.ingest.validation.limits import LIMITS
from memstate_core.model.core_block import CoreBlock
from memstate_core.model.observation import EdgeTo, FieldValue, Observation

CHOICES = {"kind", "provenance", "placement", "fields[].field_type", "scope", "memory", "memory.read_only"}
TIMES = {"observed_at", "fields[].valid_from", "edges[].valid_from", "edges[].valid_until"}
NUMBERS = {"turn", "fields[].confidence", "memory.authority"}


def row_with(path: str, length: int) -> dict[str, Any]:
    """An observation that is accepted but for the length of one part."""
    row: dict[str, Any] = {"title": "Acme", "text": "a"}
    if path in ("fields", "edges"):
        part = {"name": "n", "value": 1} if path == "fields" else {"kind": "part_of", "to_topic_id": "b"}
        return row | {path: [part] * length}
    if path.startswith("memory."):
        block = {"type": "core_block", "label": "n", "content": "v"}
        return {"text": "a", "memory": block | {path.removeprefix("memory."): "x" * length}}
    if path == "scope.id":
        return row | {"scope": {"type": "user", "id": "x" * length}}
    group, _, name = path.rpartition("[].")
    if group == "fields":
        text = "x" * (length - 2) if name == "value" else "x" * length
        return row | {"fields": [{"name": "n", "value": "v"} | {name: text}]}
    if group == "edges":
        return row | {"edges": [{"kind": "part_of", "to_topic_id": "b"} | {name: "x" * length}]}
    return row | {name: "x" * length}


def test_every_part_of_an_observation_has_a_limit() -> None:
    parts = {"": Observation, "fields[].": FieldValue, "edges[].": EdgeTo, "memory.": CoreBlock}
    every = {prefix + name for prefix, struct in parts.items() for name in struct.__struct_fields__}

    assert every - CHOICES - TIMES - NUMBERS | {"scope.id"} == LIMITS.keys()


@pytest.mark.parametrize("path", LIMITS)
def test_a_part_may_be_as_long_as_its_limit_and_no_longer(desk, path):
    desk.settings = desk.settings.model_copy(
        update={"ingest": desk.settings.ingest.model_copy(update={"max_line_mib": 16})}
    )
    assert desk.rows(row_with(path, LIMITS[path])).accepted == 1
    assert desk.rows(row_with(path, LIMITS[path] + 1)).reasons == {"field_too_long": 1}
    [refused] = desk.quarantine()
    where = "$." + path.replace("[]", "[0]")
    assert refused["detail"].startswith(f"{where} has {LIMITS[path] + 1:,} ")
    assert refused["detail"].endswith(f"expected at most {LIMITS[path]:,}")


def test_limits_count_characters_and_not_bytes(desk):
    assert desk.rows({"text": "a", "actor": "\U0001f600" * LIMITS["actor"]}).accepted == 1
