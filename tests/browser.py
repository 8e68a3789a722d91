"""A real headless Chromium for tests of what users see.

from tests.browser import chromium, requires_chromium

@requires_chromium
def test_page() -> None:
    with chromium(width=390) as browser:
        browser.get(url)
        assert console_errors(browser) == []
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
FLAGS = (
    "--headless=new",
    "--no-sandbox",  # Chromium refuses to run as root with it, as in most containers
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

_missing = [name for name, found in {"chromium": CHROMIUM, "chromedriver": DRIVER}.items() if not found]
_missing += [] if find_spec("selenium") else ["the Python package selenium"]
requires_chromium = pytest.mark.skipif(
    bool(_missing),
    reason=f"not found: {', '.join(_missing)} (Debian: apt-get install chromium chromium-driver)",
)
"""Skips a test without a browser, and names what to install."""


@contextmanager
def chromium(width: int = 1280, height: int = 900, *, dark: bool = False, scale: float = 1) -> Iterator[WebDriver]:
    """A browser with an empty profile, closed at the end of the block.

    Args:
        width: of the viewport, in CSS pixels.
        height: of the viewport, in CSS pixels.
        dark: whether the browser prefers dark colours.
        scale: device pixels per CSS pixel, for sharp screenshots.
    """
    from selenium.webdriver import Chrome, ChromeOptions, ChromeService

    with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as profile:
        options = ChromeOptions()
        options.binary_location = CHROMIUM or ""
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        browser = Chrome(options=options, service=ChromeService(DRIVER))
        try:
            view_as(browser, width, height, dark=dark, scale=scale)
            yield browser
        finally:
            browser.quit()


def view_as(browser: WebDriver, width: int, height: int, *, dark: bool = False, scale: float = 1) -> None:
    """Gives the page another viewport and colour preference.

    A window cannot be made as narrow as a phone, an emulated screen can.
    """
    screen = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": False}
    scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})


def keep_screenshot(browser: WebDriver, name: str) -> None:
    """Writes what is shown to the folder in $SCREENSHOTS, as an artefact of a run of the tests; nothing without one."""
    if folder := os.environ.get("SCREENSHOTS"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        browser.save_screenshot(str(Path(folder) / f"{name}.png"))


def console_errors(browser: WebDriver) -> list[Any]:
    """The console messages of the page since the last call."""
    log: Any = browser  # selenium leaves get_log without types
    return [entry for entry in log.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]


def overflow(browser: WebDriver) -> int:
    """By how many CSS pixels the page is wider than the viewport."""
    return int(
        browser.execute_script("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
    )
