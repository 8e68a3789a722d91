"""Nights, erasures and rollbacks publish to the URL of the settings; what fails there is never silent."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from memstate_core.run.store import open_store
from memstate_core.state.current import current_number
from memstate_pipeline.doctor.data import publication
from tests.core.night.backup.test_restore import killed
from tests.core.night.publication.conftest import There, there
from tests.core.serve.conftest import ROWS, one_night
from tests.pipeline.conftest import run_memstate, shared

pytestmark = pytest.mark.slow
NIGHT = "2026-04-07T02:00:00Z"


@pytest.fixture(scope="session")
def first_night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shared(tmp_path_factory, "night", one_night)


@pytest.fixture
def home(first_night: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(first_night, tmp_path / "home"))


def url_in(home: Path, folder: Path) -> str:
    """Has the settings of a home name a folder by its URL."""
    url = f"file://{folder}"
    with (home / "memstate.toml").open("a") as file:
        file.write(f'\n[publish]\nurl = "{url}"\n')
    return url


def test_a_night_publishes_and_says_what_failed(home: Path, tmp_path: Path) -> None:
    url = url_in(home, tmp_path / "published")
    (tmp_path / "published").write_text("a file in the way")
    said = ROWS[0] | {"scope": {"type": "user", "id": "ines"}, "observed_at": "2026-04-06", "topic_key": "gate"}
    (tmp_path / "more.jsonl").write_text(json.dumps(said) + "\n")
    assert run_memstate(home, "import", str(tmp_path / "more.jsonl"), "--now", NIGHT).code == 0
    night = run_memstate(home, "maintain", "--now", NIGHT, "--json")
    assert night.code == 1
    assert "s0 is published here, but not for replicas" in night.stderr
    assert current_number(open_store(home, {}).home, "s0") == 2
    (page,) = (home / "reports").glob(f"{night.document['run_id']}-s0.json")
    assert any("not for replicas" in warning for warning in json.loads(page.read_text())["warnings"])
    assert not publication(open_store(home, {})).ok

    (tmp_path / "published").unlink()
    assert run_memstate(home, "publish").code == 0
    assert there(url).numbers == [2]
    assert publication(open_store(home, {})).ok
    assert run_memstate(home, "rollback", "1").code == 0
    assert there(url).numbers == [3, 2]


def test_an_erasure_reaches_the_url(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "published"
    assert run_memstate(home, "publish", f"file://{folder}").code == 0
    assert holds(folder, b"bench of larch")
    erased = run_memstate(home, "erase", "--topic", bench(home), "--yes", "--json")
    assert erased.code == 0, erased.stderr
    assert not holds(folder, b"bench of larch")
    assert there(f"file://{folder}").unnamed == set()
    assert any("caches of replicas" in place for place in erased.document["out_of_reach"])


def test_a_publisher_that_is_killed_leaves_what_was_there(home: Path, tmp_path: Path) -> None:
    url = f"file://{tmp_path}/published"
    killed(("memstate_core.storage.folder", "copied", 5, True), home, "publish", url)
    assert there(url).numbers == []
    assert run_memstate(home, "publish", url).code == 0
    assert there(url) == There([1], there(url).graphs, set())


def bench(home: Path) -> str:
    answer = run_memstate(home, "query", "long bench", "--json")
    return str(next(each["topic_id"] for each in answer.document["candidates"] if "bench" in each["title"]))


def holds(folder: Path, text: bytes) -> bool:
    """Whether a file of a folder has a text; parquet files may compress it."""
    import polars as pl

    for path in folder.rglob("*"):
        if path.is_file() and text in path.read_bytes():
            return True
        if path.is_file() and path.read_bytes().startswith(b"PAR1"):
            cells = [repr(column.to_list()) for column in pl.read_parquet(path)]
            if any(text.decode() in each for each in cells):
                return True
    return False
