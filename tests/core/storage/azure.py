"""A real server that speaks the protocol of Azure Blob Storage: Azurite, where it is installed (`.ci/run` says how)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from itertools import count
from pathlib import Path

import pytest

BUILT = Path(__file__).parents[3] / "build/azurite/node_modules/.bin/azurite-blob"
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Account and key that Azurite documents for everybody."""

VERSION = "2021-08-06"
_NUMBERS = count()


@contextmanager
def azure_server(folder: Path) -> Iterator[str]:
    """Azurite, with everything in memory; its address. Skips the test where it is not installed."""
    program = shutil.which("azurite-blob") or (str(BUILT) if BUILT.exists() else None)
    if program is None:
        pytest.skip("azurite-blob is not installed: npm install --prefix build/azurite azurite")
    log = folder / "log.txt"
    options = ("--blobPort", "0", "--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry", "--silent")
    with log.open("w") as output:
        server = subprocess.Popen([program, *options], cwd=folder, stdout=output, stderr=output)
    try:
        while not (found := re.search(r"listens on (\S+)", log.read_text())):
            assert server.poll() is None, log.read_text()
            time.sleep(0.05)
        yield found[1]
    finally:
        server.kill()
        server.wait()


def empty_container(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Makes a container without blobs, which the environment gives access to; its URL."""
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT)
    monkeypatch.setenv("AZURE_STORAGE_USE_EMULATOR", "true")
    monkeypatch.setenv("AZURITE_BLOB_STORAGE_URL", endpoint)
    name = f"container-{next(_NUMBERS)}"
    request = urllib.request.Request(f"{endpoint}/{ACCOUNT}/{name}?restype=container", method="PUT")
    for header, value in _signed(f"/{ACCOUNT}/{ACCOUNT}/{name}\nrestype:container").items():
        request.add_header(header, value)
    urllib.request.urlopen(request).close()
    return f"az://{name}"


def _signed(resource: str) -> dict[str, str]:
    """The headers of a PUT without a body, signed by the account's key (Azure's Shared Key)."""
    date = formatdate(usegmt=True)
    text = f"PUT{chr(10) * 12}x-ms-date:{date}\nx-ms-version:{VERSION}\n{resource}"
    signature = base64.b64encode(hmac.digest(base64.b64decode(KEY), text.encode(), hashlib.sha256)).decode()
    return {"x-ms-date": date, "x-ms-version": VERSION, "Authorization": f"SharedKey {ACCOUNT}:{signature}"}
