"""The server does what its OpenAPI document says: schemathesis makes up requests, good and bad, and checks answers.

All its checks are on, over every route. The check that valid requests are not refused makes exceptions for rules that
no JSON Schema can express: those between the parts of an observation, and which cursors exist. A URL that is too long
for the head of a request is refused with 431 before anything is looked at.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memstate_core.serve.auth import key_file
from memstate_core.serve.options import Options
from tests.core.serve.conftest import Client, Publish, harbour, served

pytestmark = pytest.mark.slow

MADE = key_file.make(
    "all",
    scopes=None,
    role="admin",
    entropy=bytes(key_file.ID_BYTES + key_file.SECRET_BYTES),
    now=datetime(2026, 1, 1, tzinfo=UTC),
)
BEYOND_A_SCHEMA = """
[[operations]]
include-path = ["/v1/ingest", "/v1/query"]
checks.positive_data_acceptance.expected-statuses = ["2xx", "401", "403", "404", "409", "422", "429", "503"]

[[operations]]
include-path = ["/v1/topics", "/v1/facts", "/v1/resources"]
checks.positive_data_acceptance.expected-statuses = ["2xx", "401", "403", "404", "409", "422", "429", "431", "503"]

[[operations]]
include-method = "GET"
checks.negative_data_rejection.expected-statuses = [
    "400", "401", "403", "404", "405", "406", "409", "415", "422", "428", "429", "431", "5xx",
]
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, publish: Publish) -> Iterator[Client]:
    """A server that asks for a key."""
    store = publish(tmp_path_factory.mktemp("described") / "home", harbour)
    key_file.add(store.home.keys, MADE.key)
    with served(store, Options(rate_limit=0)) as client:
        yield client.until_ready()


def test_schemathesis_finds_no_fault(server: Client, tmp_path: Path) -> None:
    (tmp_path / "schemathesis.toml").write_text(BEYOND_A_SCHEMA)
    command = [str(Path(sys.executable).with_name("schemathesis")), "--config-file", "schemathesis.toml", "run"]
    how = ["--checks", "all", "--phases", "coverage,fuzzing,stateful", "--max-examples", "4", "--no-color"]
    steady = ["--seed", "1", "--generation-deterministic", "--output-sanitize", "false"]
    target = [f"{server.url}/openapi.json", "--header", f"X-API-Key: {MADE.token}"]
    done = subprocess.run(
        [*command, *target, *how, *steady], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    tested = re.search(r"Tested: (\d+)", done.stdout)
    passed = re.search(r"(\d+) generated, \1 passed", done.stdout)
    assert tested, done.stdout
    assert passed, done.stdout
    assert int(tested[1]) == len(operations(server))
    assert int(passed[1]) > 500


def operations(server: Client) -> list[str]:
    paths = server.get("/openapi.json", X_API_Key=MADE.token).document["paths"]
    return [f"{method} {path}" for path, each in paths.items() for method in each]
