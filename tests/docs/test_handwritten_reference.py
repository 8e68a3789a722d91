"""Reference pages that are written by hand match the code: keys, formats, codes, columns, paths."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from docs.make import columns
from docs.make.settings import default_file
from memstate_core.ingest.formats import FORMATS
from memstate_core.ingest.reasons import Reason
from memstate_core.model.observation import Details, Observation
from memstate_core.model.parts import EdgeTo, FieldValue
from memstate_core.policy.settings import Settings, load_settings
from memstate_core.state.graph import EDGE, NODE_TABLES
from memstate_core.state.home import Home
from memstate_core.state.ledger.ledger import TABLES
from memstate_pipeline.notify.message import Event, Night, Problem, night_document
from tests.docs.conftest import PAGES

FORMATS_PAGE, STORE_PAGE = PAGES / "reference/formats.md", PAGES / "reference/store.md"
NOTIFICATIONS_PAGE = PAGES / "reference/notifications.md"


def rows(page: Path, heading: str) -> list[list[str]]:
    """The cells of the first table below a heading, without marks of code."""
    section = re.split(r"^#+ ", page.read_text().partition(f" {heading}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines[2:]]


@pytest.mark.parametrize(
    ("heading", "struct"),
    [
        ("Keys of an observation", Observation),
        ("Keys of a field", FieldValue),
        ("Keys of an edge", EdgeTo),
        ("Keys of details", Details),
    ],
)
def test_every_key_of_a_dump_is_described(heading: str, struct: Any) -> None:
    assert [row[0] for row in rows(FORMATS_PAGE, heading)] == [field.name for field in msgspec.structs.fields(struct)]


def test_every_format_is_described() -> None:
    assert {row[0] for row in rows(FORMATS_PAGE, "Formats")} == set(FORMATS)


def test_every_quarantine_reason_is_described() -> None:
    described = [row[0] for row in rows(PAGES / "reference/quarantine.md", "Quarantine reasons")]
    assert sorted(described) == sorted(reason.value for reason in Reason)


def test_every_key_and_event_of_a_notification_is_described() -> None:
    problem = Problem("key", "check", "growth", "it grew", "2026-04-06T02:00:00Z")
    night = Night("run", "s0", "2026-04-06T02:00:00Z", None, False, None, None, (problem,))
    document = night_document("night_failed", "home", night, night.problems)
    assert [row[0] for row in rows(NOTIFICATIONS_PAGE, "The document")] == list(document)
    assert [row[0] for row in rows(NOTIFICATIONS_PAGE, "Problems")] == list(document["problems"][0])
    assert [row[0] for row in rows(NOTIFICATIONS_PAGE, "Events")] == list(get_args(Event))


def test_every_column_of_the_ledger_and_of_the_graph_has_a_meaning_on_its_page() -> None:
    text, made = STORE_PAGE.read_text(), columns.PARTS
    assert [name for name in made if f"<!-- generated: {name} -->" not in text] == []
    for table, schema in TABLES.items():
        assert [name for name in schema if f"| `{name}` | " not in made[f"columns of {table}"]()] == []
    assert made["columns of the graph"]().count("\n| `") == sum(len(table.schema) for table in (*NODE_TABLES, EDGE))
    assert "| `fields` | List(Struct) | values as stated |" in made["columns of evidence"]()


def test_every_table_of_the_graph_is_named() -> None:
    text = STORE_PAGE.read_text()
    assert [table.name for table in NODE_TABLES if f"`{table.name}`" not in text] == []


def test_every_place_of_a_store_is_named(tmp_path: Path) -> None:
    home, text = Home(tmp_path), STORE_PAGE.read_text()
    places = [getattr(home, name) for name, part in vars(Home).items() if isinstance(part, property)]
    assert len(places) >= 12
    assert [str(place) for place in places if place != tmp_path and place.name not in text] == []


def test_the_file_of_defaults_changes_nothing(tmp_path: Path) -> None:
    content = default_file().split("\n", 1)[1].removesuffix("\n```")
    (tmp_path / "memstate.toml").write_text(content)
    assert load_settings(tmp_path, {}) == Settings()
    assert tomllib.loads(content).keys() == Settings.model_fields.keys()
