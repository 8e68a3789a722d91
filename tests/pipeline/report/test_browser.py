"""The page of a run in a browser: everything is visible, nothing overflows, the console is empty."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from memstate_pipeline.report import write_report
from tests.browser import chromium, console_errors, overflow, requires_chromium, view_as
from tests.pipeline.report.nights import busy_night, quiet_night

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

pytestmark = [pytest.mark.slow, requires_chromium]

HEADINGS = (
    "What this run did", "Checks", "Timings", "Merged", "Archived", "Restored", "Quarantine",
    "Problems and warnings", "State of the shard",
)  # fmt: skip
LONG_TITLE = "Supercalifragilistic" * 12


@pytest.fixture(scope="module")
def browser() -> Iterator[WebDriver]:
    with chromium() as opened:
        yield opened


@pytest.fixture
def page(browser: WebDriver, tmp_path: Path) -> WebDriver:
    """The page of a busy night, open at desktop width."""
    view_as(browser, 1280, 900)
    browser.get(write_report(tmp_path, busy_night())[0].as_uri())
    return browser


def test_every_heading_is_displayed(page: WebDriver) -> None:
    headings = page.find_elements("css selector", "h2")
    assert tuple(heading.text.rstrip(" 0123456789,") for heading in headings) == HEADINGS
    assert all(heading.is_displayed() for heading in headings)
    assert page.find_element("tag name", "h1").text == "Published snapshot 12, with 1 warning"


def test_every_table_has_rows(page: WebDriver) -> None:
    tables = page.find_elements("css selector", "table")
    assert len(tables) == 6
    assert all(table.find_elements("css selector", "tbody tr td") for table in tables)


def test_bars_and_plots_take_up_room(page: WebDriver) -> None:
    bars = [bar.size["width"] for bar in page.find_elements("css selector", ".bar")]
    assert bars[1] == max(bars) > 300
    assert min(bars) > 0
    assert [plot.size["width"] > 400 for plot in page.find_elements("css selector", "svg")] == [True, True]


def test_the_console_stays_silent(page: WebDriver) -> None:
    assert console_errors(page) == []


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_nothing_overflows_sideways(browser: WebDriver, tmp_path: Path, width: int) -> None:
    view_as(browser, width, 844)
    browser.get(write_report(tmp_path, busy_night(title=LONG_TITLE))[0].as_uri())
    assert browser.execute_script("return window.innerWidth") == width
    assert overflow(browser) == 0


def test_a_night_without_changes_is_shown_without_errors(browser: WebDriver, tmp_path: Path) -> None:
    view_as(browser, 390, 844)
    browser.get(write_report(tmp_path, quiet_night())[0].as_uri())
    assert browser.find_element("tag name", "h1").text == "Published snapshot 12"
    assert overflow(browser) == 0
    assert console_errors(browser) == []


def test_a_script_in_a_title_is_shown_and_not_run(browser: WebDriver, tmp_path: Path) -> None:
    hostile = "<script>document.title = 'taken over'</script>"
    browser.get(write_report(tmp_path, busy_night(title=hostile))[0].as_uri())
    assert browser.title.startswith("Published snapshot 12")
    assert hostile in [title.text for title in browser.find_elements("css selector", ".title")]


@pytest.mark.parametrize("dark", [False, True])
def test_text_stands_out_from_the_paper(browser: WebDriver, tmp_path: Path, dark: bool) -> None:
    view_as(browser, 1280, 900, dark=dark)
    browser.get(write_report(tmp_path, busy_night())[0].as_uri())
    paper = luminance(browser, "body", "backgroundColor")
    for selector in ("body", "h2", "td.why", "svg text", ".tiles span", ".mark"):
        colour = luminance(browser, selector, "fill" if selector.startswith("svg") else "color")
        assert contrast(paper, colour) >= 4.5, selector


def luminance(browser: WebDriver, selector: str, style: str) -> float:
    """Relative luminance as WCAG 2.2 defines it."""
    script = "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]].match(/[\\d.]+/g)"
    channels = [float(value) / 255 for value in browser.execute_script(script, selector, style)[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: float, other: float) -> float:
    return (max(one, other) + 0.05) / (min(one, other) + 0.05)
