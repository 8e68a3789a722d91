"""L6: a run killed at any of its commit points and repeated gives the state of an undisturbed one."""

import shutil
from pathlib import Path

import pytest

from tests import warm
from tests.pipeline.conftest import NIGHT, clean_environment, run_memstate

pytestmark = pytest.mark.slow

DIE_AT = """
import os, sys
from pathlib import Path
import {module} as module

def die(*arguments, **named):
    os._exit(137)

module.{name} = die
from memstate_core.model.text import parse_moment
from memstate_core.run.store import open_store
from memstate_pipeline.run import maintain
maintain(open_store(Path(sys.argv[1])), parse_moment({night!r}))
"""
STEPS = {
    "ingest": ["place_or_reuse_base"],
    "topics": ["update_topics", "refresh_embeddings"],
    "revise": ["find_duplicates", "merge_duplicates", "queue_reviews"],
    "forget": ["update_salience", "forget"],
    "publish": ["publish"],
}
"""The function of each step, by the module of assets that calls it."""
TURNING_POINTS = {
    f"before the step {name}": (f"memstate_pipeline.assets.{module}", name)
    for module, names in STEPS.items()
    for name in names
} | {
    "before the graph is written": ("memstate_core.run.apply", "apply_state"),
    "with the draft written, before it has its name": ("memstate_core.night.publish", "_problems"),
    "with its name, before the ledger knows": ("memstate_core.night.publish", "_record"),
    "after the ledger knows, before CURRENT moves": ("memstate_core.night.publish", "move_current"),
    "after CURRENT moved, before the report": ("memstate_pipeline.assets.publish", "report_run"),
}
ROW = '{"title": "Yard", "observed_at": "2026-01-0%d", "fields": [{"name": "gate", "value": "%s"}]}\n'


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one published night and evidence that waits for the next; tests copy it."""
    folder = tmp_path_factory.mktemp("crash")
    for number, gate in ((1, "shut"), (2, "open")):
        dump = folder / f"{number}.jsonl"
        dump.write_text(ROW % (number, gate))
        assert run_memstate(folder / "home", "import", str(dump)).code == 0
        if number == 1:
            assert run_memstate(folder / "home", "maintain", "--now", NIGHT).code == 0
    return folder / "home"


@pytest.fixture(scope="module")
def expected(prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The state hash after a second night in which nothing happened."""
    calm = shutil.copytree(prepared, tmp_path_factory.mktemp("calm") / "home")
    return str(run_memstate(calm, "maintain", "--now", NIGHT, "--json").document["state_hash"])


@pytest.mark.parametrize("point", TURNING_POINTS)
def test_the_next_run_recovers_from_a_killed_one(point: str, prepared: Path, expected: str, tmp_path: Path) -> None:
    module, name = TURNING_POINTS[point]
    home = Path(shutil.copytree(prepared, tmp_path / "home"))
    script = DIE_AT.format(module=module, name=name, night=NIGHT)
    killed = warm.run(["-c", script, str(home)], clean_environment())
    assert killed.returncode == 137, killed.stderr
    assert run_memstate(home, "status", "--json").document["snapshot"] in ("s0/1", "s0/2")
    assert run_memstate(home, "export").code == 0

    again = run_memstate(home, "maintain", "--now", NIGHT, "--json")
    assert again.code == 0, again.stderr
    assert again.document["state_hash"] == expected
    assert run_memstate(home, "verify").code == 0
