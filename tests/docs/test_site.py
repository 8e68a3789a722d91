"""The built site: no dead link, nothing from the network, and a complete reference."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from typer.testing import CliRunner

from docs.make.commands import named_commands
from docs.make.routes import openapi
from memstate_core.ingest.validation.limits import LIMITS
from memstate_core.policy.rules import Rule
from memstate_core.policy.settings import LEGACY_VARIABLES, Override
from memstate_core.policy.template import sections
from memstate_pipeline.cli.main import COMMANDS, app
from tests.docs.html import Page

pytestmark = pytest.mark.slow
IN_GROUPS = (
    *("keys add", "keys list", "keys revoke"),
    *("memory remember", "memory upsert-session-state", "memory upsert-resource", "memory browse-resources"),
    *("memory add-relation", "memory probe-relations", "memory verify", "memory search", "memory context-pack"),
    *("quarantine list", "quarantine show", "quarantine replay", "quarantine dismiss"),
)


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in site.rglob("*.html")}


def test_no_link_is_dead(site: Path, pages: dict[Path, Page]) -> None:
    dead = [
        f"{page.path.relative_to(site)}: {link}"
        for page in pages.values()
        if page.path.name != "404.html"
        for link in page.links
        if not _answers(page, link, pages)
    ]
    assert dead == []


def test_nothing_is_loaded_from_the_network(pages: dict[Path, Page]) -> None:
    assert {loaded for page in pages.values() for loaded in page.loaded if urlsplit(loaded).netloc} == set()


@pytest.mark.parametrize("command", [*(name for name in COMMANDS), *IN_GROUPS])
def test_every_option_of_a_command_is_in_the_reference(site: Path, command: str) -> None:
    section = Page(site / "reference/cli/index.html").sections["memstate-" + command.replace(" ", "-")]
    shown = CliRunner().invoke(app, [*command.split(), "--help"], env={"TERMINAL_WIDTH": "200"}).stdout
    options = set(re.findall(r"--[a-z][a-z-]*", shown)) - {"--help"}
    assert "--json" in options
    assert {option for option in options if option not in section} == set()


def test_every_command_is_in_the_overview(site: Path) -> None:
    overview = Page(site / "reference/cli/index.html").sections["commands"]
    assert [name for name, _ in named_commands() if f"memstate {name}" not in overview] == []
    assert {name for name, _ in named_commands()} == {*COMMANDS, *IN_GROUPS}


def test_every_setting_is_in_the_reference_with_its_meaning(site: Path) -> None:
    text = Page(site / "reference/settings/index.html").sections
    models: list[tuple[str, Any]] = [*sections(), ("override", Override), ("rule", Rule)]
    fields = [(section, key, field) for section, model in models for key, field in model.model_fields.items()]
    assert [f"{section}.{key}" for section, key, field in fields if not field.description] == []
    assert [f"{section}.{key}" for section, key, _ in fields if key not in text[section]] == []
    assert [name for name in LEGACY_VARIABLES if name not in text["further-variables"]] == []


def test_every_route_and_every_key_is_in_the_reference(site: Path) -> None:
    page = Page(site / "reference/http/index.html")
    missing = [path for path in openapi()["paths"] if path not in page.sections["routes"]]
    for name, schema in openapi()["components"]["schemas"].items():
        section = page.sections[name.lower()]
        missing += [f"{name}.{key}" for key in schema.get("properties", ()) if key not in section]
    assert missing == []


def _answers(page: Page, link: str, pages: dict[Path, Page]) -> bool:
    """Whether a link leads to a file of the site and an anchor in it; links out of the site are not followed."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return True
    target = (page.path.parent / unquote(parts.path)).resolve() if parts.path else page.path
    target = target / "index.html" if target.is_dir() else target
    if target not in pages:
        return target.exists()
    return not parts.fragment or unquote(parts.fragment) in pages[target].anchors


def test_every_limit_of_an_observation_is_in_the_reference(site: Path) -> None:
    section = Page(site / "reference/formats/index.html").sections["limits"]
    assert [path for path, limit in LIMITS.items() if path not in section or f"{limit:,}" not in section] == []
