"""Limits of validation: every part of an observation has one, and what exceeds it is refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from memstate_core.ingest.validation.limits import LIMITS, limited_scope
from memstate_core.model.forms.form import Form
from memstate_core.model.forms.registry import FORMS
from memstate_core.model.observation import Details, Observation
from memstate_core.model.parts import EdgeTo, FieldValue

CHOICES = {"kind", "provenance", "placement", "fields[].field_type", "scope", "memory", "details"}
TIMES = {"observed_at", "fields[].valid_from", "edges[].valid_from", "edges[].valid_until"}
NUMBERS = {"turn", "fields[].confidence"}


def row_with(path: str, length: int) -> dict[str, Any]:
    """An observation that is accepted but for the length of one part."""
    row: dict[str, Any] = {"title": "Acme", "text": "a"}
    if path in ("fields", "edges"):
        part = {"name": "n", "value": 1} if path == "fields" else {"kind": "part_of", "to_topic_id": "b"}
        return row | {path: [part] * length}
    if path.startswith("details."):
        name = path.removeprefix("details.")
        return {"text": "a", "details": {name: "x" * (length - 2 if name == "arguments" else length)}}
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
    parts = {"": Observation, "fields[].": FieldValue, "edges[].": EdgeTo, "details.": Details}
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


def test_the_scope_of_rows_that_name_none_has_the_same_limit() -> None:
    longest = "user:" + "x" * LIMITS["scope.id"]
    assert limited_scope(longest) == longest
    with pytest.raises(ValueError, match=r"the id of the scope has 1,025 characters, expected at most 1,024"):
        limited_scope(longest + "x")
    with pytest.raises(ValueError, match="is not a scope"):
        limited_scope("nobody")


def test_limits_count_characters_and_not_bytes(desk):
    assert desk.rows({"text": "a", "actor": "\U0001f600" * LIMITS["actor"]}).accepted == 1


REQUIRED = {"relation": {"relation": "extends"}, "fact": {"object": "v"}, "verification": {"status": "passed"}}
"""What texts cannot be: words of a choice, and a value that may be of any type."""
ITEMS = {"source": "key:s", "subject": "key:s", "target": "key:t"}
INSTEAD = {"object_item": "object"}


def form_with(form: type[Form], name: str, length: int) -> dict[str, Any]:
    """A record with a form whose texts are short but for one part."""
    texts = () if form.form() in REQUIRED else (str, str | None)
    named = [key.name for key in form.keys() if key.required or key.type in texts]  # noqa: SIM118, no mapping
    given = {name: ITEMS.get(name, name) for name in named}
    given |= {key: value for key, value in REQUIRED.get(form.form(), {}).items() if key != INSTEAD.get(name)}
    text = ("key:" + "x" * length)[:length] if name in (*ITEMS, "object_item") else "x" * length
    part = ["x" * length] if name.endswith("[]") else ["x"] * length if is_list(form, name) else text
    return {"memory": {"type": form.form()} | given | {name.removesuffix("[]"): part}}


def is_list(form: type[Form], name: str) -> bool:
    return any(key.name == name and "list[" in str(key.type) for key in form.keys())  # noqa: SIM118, no mapping


OF_FORMS = [(form, name) for form in FORMS for name in form.LIMITS]


@pytest.mark.parametrize(("form", "name"), OF_FORMS)
def test_a_part_of_a_form_may_be_as_long_as_its_limit_and_no_longer(desk, form, name):
    limit = form.LIMITS[name]
    assert desk.rows(form_with(form, name, limit)).accepted == 1
    assert desk.rows(form_with(form, name, limit + 1)).reasons == {"field_too_long": 1}
    [refused] = desk.quarantine()
    assert refused["detail"].startswith(f"$.memory.{name.replace('[]', '[0]')} has {limit + 1:,} ")


@pytest.mark.parametrize("form", FORMS)
def test_every_text_of_a_form_has_a_limit(form: type[Form]) -> None:
    texts = {key.name for key in form.keys() if "str" in str(key.type)}  # noqa: SIM118, no mapping
    lists = {f"{name}[]" for name in texts if is_list(form, name)}
    assert (texts | lists) - form.TIMES.keys() == set(form.LIMITS)
