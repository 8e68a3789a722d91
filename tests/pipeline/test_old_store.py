"""A store made by version 0.1.0 opens as it is: it answers, verifies, lives through a night and folds again.

The fixture is the store of the demo after its night: settings by default, ledger and snapshot, no caches.
"""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
import zstandard

from tests.pipeline.conftest import NIGHT, Answer, run_memstate

pytestmark = pytest.mark.slow

FIXTURE = Path(__file__).parents[1] / "fixtures" / "store-0.1.0.tar.zst"
STATE = "9e01eecf307b65b4c422a9a56728eae80d5a99c301f35d1a067fe73ab670d852"
CONDITIONS = [f"C{number}" for number in range(1, 7)]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("old") / "home"
    packed = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(FIXTURE.read_bytes())).read()
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(root, filter="data")
    return root


def answer(home: Path, *arguments: str) -> Answer:
    found = run_memstate(home, *arguments)
    assert found.code == 0, found.stderr
    return found


def test_it_opens_and_says_what_it_serves(home: Path) -> None:
    status = answer(home, "status", "--json").document
    assert (status["snapshot"], status["state_hash"]) == ("s0/1", STATE)
    assert status["topics"] == {"active": 51, "detached": 0, "archived": 0, "merged": 3}
    assert status["evidence"] == 195


def test_it_answers_a_query(home: Path) -> None:
    found = answer(home, "query", "who owns the Acme renewal?", "--json").document
    assert found["snapshot"] == "s0/1"
    assert found["candidates"]
    assert found["evidence"]


def test_its_merges_are_listed_with_their_features(home: Path) -> None:
    """That version recorded no readings."""
    merges = answer(home, "merges", "--json").document["merges"]
    assert [(row["reading"], row["comparison"], row["partner"]) for row in merges] == [(None, None, None)] * 3
    names = [feature["name"] for feature in merges[0]["features"][:3]]
    lines = answer(home, "merges").stdout.splitlines()
    assert [part.split()[0] for part in lines[2].split(", ")] == names


def test_it_verifies(home: Path) -> None:
    found = answer(home, "verify", "--json").document
    assert found["passed"]
    assert [verdict["name"][:2] for verdict in found["verdicts"] if verdict["name"][:2] in CONDITIONS] == CONDITIONS


def test_a_night_without_news_and_a_rebuild_keep_its_state(home: Path) -> None:
    night = answer(home, "maintain", "--now", NIGHT, "--json").document
    assert (night["snapshot"], night["state_hash"]) == ("s0/2", STATE)
    assert all(check["passed"] for check in night["checks"])
    answer(home, "rebuild", "--json")
    status = answer(home, "status", "--json").document
    assert (status["snapshot"], status["state_hash"]) == ("s0/3", STATE)
    assert answer(home, "verify", "--json").document["passed"]
