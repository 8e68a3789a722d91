"""A file of the inbox or a segment that kills the process: the nights go on, and the report names it."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path

import pytest

from memstate_core.ingest.api_files import file_name, make_key, signed
from memstate_core.run.store import open_store
from tests import warm
from tests.pipeline.conftest import NIGHT, clean_environment, run_memstate

pytestmark = pytest.mark.slow

KILLED_BY = """
import os, signal, sys
from pathlib import Path
from memstate_core.ingest import importer
from memstate_core.ingest.accesses import collect

def killing(module, name):
    sound = getattr(module, name)
    def kill(path, *given, **named):
        if path.name == sys.argv[3]:
            os.kill(os.getpid(), signal.SIGKILL)
        return sound(path, *given, **named)
    setattr(module, name, kill)

killing(importer, "open_dump")
killing(collect, "_open")
from memstate_core.model.text import parse_moment
from memstate_core.run.store import open_store
from memstate_pipeline.run import maintain
maintain(open_store(Path(sys.argv[1])), parse_moment(sys.argv[2]))
"""
API = file_name(1_770_000_000_000_000_000, "token")


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a dump, a file of the API and two segments of the journal, before its first night."""
    home = open_store(tmp_path_factory.mktemp("fatal") / "home").home
    home.inbox.mkdir(parents=True)
    home.accesses.mkdir()
    (home.inbox / "yard.jsonl").write_text('{"title": "Yard", "observed_at": "2026-01-01"}\n')
    rows = b'{"title": "Gate", "observed_at": "2026-01-01"}\n'
    (home.inbox / API).write_bytes(signed(rows, make_key(home.inbox_key)))
    for name in ("a.jsonl", "b.jsonl"):
        access = {"topic_id": name, "at": "2026-01-02T00:00:00Z", "source": "cli"}
        (home.accesses / name).write_text(json.dumps(access) + "\n")
    return home.root


def night(home: Path, fatal: str) -> int:
    """The exit status of the process of a night."""
    done = warm.run(["-c", KILLED_BY, str(home), NIGHT, fatal], clean_environment())
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode


@pytest.mark.usefixtures("no_settings")
@pytest.mark.parametrize(
    ("fatal", "folder", "created"), [(API, "inbox", 1), ("a.jsonl", "accesses", 2)], ids=["file of the API", "segment"]
)
def test_the_third_night_publishes_without_the_file_that_killed_two(
    filled: Path, tmp_path: Path, fatal: str, folder: str, created: int
) -> None:
    home = Path(shutil.copytree(filled, tmp_path / "home"))
    assert [night(home, fatal) for _ in range(3)] == [-signal.SIGKILL, -signal.SIGKILL, 0]
    pages = [json.loads(page.read_text()) for page in (home / "reports").glob("*.json")]
    (report,) = [page for page in pages if page["snapshot"] is not None]
    assert [page["error"]["type"] for page in pages if page["snapshot"] is None] == ["ProcessDied", "ProcessDied"]
    assert report["counts"]["topics_created"] == created
    (error,) = report["ingest"]["errors"]
    assert f"{folder}/{fatal}: cannot be read: 2 processes died, one after another, while it was being read" in error
    assert [path.name for path in (home / folder / "failed").iterdir()] == [fatal]
    assert not [*(home / "imports").glob("*.json")]

    (home / folder / "failed" / fatal).rename(home / folder / fatal)
    again = run_memstate(home, "maintain", "--now", NIGHT, "--json")
    assert (again.code, again.document["ingest"]["errors"]) == (0, [])
    exported = run_memstate(home, "export", "--json").document["topics"]
    assert sorted(topic["title"] for topic in exported) == ["Gate", "Yard"]
    assert open_store(home).ledger.count("accesses") == 2
