"""README, CONTRIBUTING and CHANGELOG: links that lead somewhere, pictures that are current, paths that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.make import floors, memory, night
from docs.make.markdown import slug
from memstate_core.night.gates.verdict import GATES
from tests.docs.conftest import PAGES, ROOT

LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
PATH = re.compile(r"`((?:memstate_core|memstate_pipeline|tests|docs|\.ci)/[\w/.-]+)`")
BEHAVIOUR = re.compile(r"^\| (.+?) \| `(memstate_[^`]+)` \|$", re.MULTILINE)


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "tests/benchmarks/README.md"])
def test_links_lead_to_files_and_headings(name: str) -> None:
    page = ROOT / name
    links = [link for link in LINK.findall(page.read_text()) if "://" not in link]
    assert [link for link in links if not _answers(page, link)] == []


def test_the_readme_has_the_two_commands_first() -> None:
    blocks = re.findall(r"^```bash\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    assert "memstate demo" in blocks[0]
    assert "pytest" in blocks[1]
    assert "-n auto --dist loadfile" in blocks[1]


def test_the_readme_is_read_in_three_minutes() -> None:
    words = (ROOT / "README.md").read_text().split()
    assert len(words) < 3 * 230, "a page one reads in three minutes, at 230 words a minute"


def test_every_behaviour_that_contributing_names_has_its_file() -> None:
    behaviours = BEHAVIOUR.findall((ROOT / "CONTRIBUTING.md").read_text())
    assert len(behaviours) >= 20
    assert [path for _, path in behaviours if not (ROOT / path).exists()] == []


def test_every_path_that_a_page_names_exists() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES.rglob("*.md")]
    named = [(page.name, path) for page in pages for path in PATH.findall(page.read_text())]
    assert len(named) > 30
    assert [(page, path) for page, path in named if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("picture", [night, floors, memory])
def test_pictures_are_current(picture: object) -> None:
    assert picture.FILE.read_text() == picture.picture(), "run `python -m docs.make`"  # type: ignore[attr-defined]


def test_the_picture_of_the_night_has_every_asset() -> None:
    names = [name for group in night.groups().values() for name in group]
    assert sorted(names) == sorted(night.DOES)


def test_architecture_describes_every_package_and_counts_the_gates() -> None:
    page = (PAGES / "explanation" / "architecture.md").read_text()
    described = re.findall(r"^\| `(\w+)` \|", page.partition("## Layers")[2].partition("\n## ")[0], re.MULTILINE)
    assert sorted(described) == sorted(name for floor in floors.layers() for name in floor)
    numbers = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    assert f"\n{numbers[len(GATES)]} gates compare it" in page


@pytest.mark.parametrize("name", ["dagster.png", "report.png"])
def test_screenshots_are_small(name: str) -> None:
    content = (PAGES / "images" / name).read_bytes()
    assert content.startswith(b"\x89PNG")
    assert len(content) < 200_000


def _answers(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = page.parent / path if path else page
    if not anchor or not target.exists():
        return target.exists()
    return anchor in {slug(heading) for heading in HEADING.findall(target.read_text())}
