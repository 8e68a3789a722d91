"""The screenshots of the documentation, taken by headless Chromium of a demo store.

    python -m docs.make.screenshots

makes the demo in a temporary folder, opens `memstate ui` on it, and writes `docs/pages/images/dagster.png` (the page of
the asset `maintenance_report` after the night) and `report.png` (the page of the run). They are as wide as a page shows
them, since labels of wider ones cannot be read there. Colours are reduced so that each stays small.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image

from tests.browser import chromium

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver
    from selenium.webdriver.remote.webelement import WebElement

FOLDER = Path(__file__).parents[1] / "pages" / "images"
MEMSTATE = [sys.executable, "-m", "memstate_pipeline"]
_COLOURS = 96
_PATIENCE = 180
_SETTLING = 8
"""Seconds in which the UI fills the page."""


def main() -> None:
    """Takes all screenshots."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "demo"
        subprocess.run([*MEMSTATE, "--home", str(home), "demo"], check=True, stdout=subprocess.DEVNULL)
        with chromium(1260, 860, scale=2) as browser:
            _report(browser, next((home / "reports").glob("*-s0.html")))
        with _dagster(home) as url, chromium(1240, 600, scale=2) as browser:
            _asset(browser, f"{url}/assets/maintenance_report")


def _report(browser: WebDriver, page: Path) -> None:
    browser.get(page.as_uri())
    _keep(browser, "report.png")


@contextmanager
def _dagster(home: Path) -> Iterator[str]:
    """The UI of a store, on a free port, ended with all its processes."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [*MEMSTATE, "--home", str(home), "ui", "--port", str(port)]
    quiet = subprocess.DEVNULL
    server = subprocess.Popen(command, stdout=quiet, stderr=quiet, start_new_session=True)
    try:
        yield _when_ready(f"http://127.0.0.1:{port}")
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(60)


def _when_ready(url: str) -> str:
    for _ in range(_PATIENCE):
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"{url}/server_info", timeout=2).close()
            return url
        time.sleep(1)
    raise TimeoutError(f"{url} did not answer within {_PATIENCE} s")


def _asset(browser: WebDriver, page: str) -> None:
    """What a night left with an asset, from its plots on, beside the asset's definition."""
    browser.get(page)
    _when_shown(browser, "//button[.='Hide navigation']").click()
    browser.get(page)
    row = _when_shown(browser, "//tr[td[1][.='growth']]")
    time.sleep(_SETTLING)
    browser.execute_script("arguments[0].scrollIntoView()", row)
    time.sleep(1)
    _keep(browser, "dagster.png")


def _when_shown(browser: WebDriver, xpath: str) -> WebElement:
    for _ in range(_PATIENCE):
        for element in browser.find_elements("xpath", xpath):
            if element.is_displayed():
                return element
        time.sleep(1)
    raise TimeoutError(f"{browser.current_url} shows no {xpath} within {_PATIENCE} s")


def _keep(browser: WebDriver, name: str) -> None:
    picture = Image.open(BytesIO(browser.get_screenshot_as_png())).convert("RGB")
    picture.quantize(_COLOURS).save(FOLDER / name, optimize=True)


if __name__ == "__main__":
    main()
