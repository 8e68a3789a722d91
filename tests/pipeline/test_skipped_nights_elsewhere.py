"""Nights that are skipped where other machines are concerned: a store at a URL, and replicas with their writes."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from memstate_core.night.publication.note import last_publication
from memstate_core.run.store import open_store
from memstate_core.state.current import current_snapshot
from memstate_pipeline.definitions import build_defs
from memstate_pipeline.instance import dagster_instance
from memstate_pipeline.nights import CHOOSE
from memstate_pipeline.resources import NOW_TAG
from tests.core.night.publication.conftest import there
from tests.pipeline.conftest import run_memstate, shared
from tests.pipeline.sharded_homes import SCOPES, begun, done, imported
from tests.pipeline.test_replica_writes import leave, names
from tests.pipeline.test_skipped_nights import SKIPPING, dropped, when

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_settings")]
BUSY = SCOPES[0]


@pytest.fixture(scope="session")
def first_night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of two shards after a night."""

    def make(home: Path) -> None:
        begun(home, 2)
        imported(home, 0)
        done(home, "maintain", "--now", when(0))

    return shared(tmp_path_factory, "first-night", make)


@pytest.fixture
def home(first_night: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(first_night, tmp_path / "home"))


def maintain(home: Path, night: int, **environment: str) -> dict[str, Any]:
    return done(home, "maintain", "--now", when(night), **environment)


def shards_of(home: Path) -> tuple[str, str]:
    """The shard of the scope that changes, and the other one."""
    layout = open_store(home, {}).layout
    return layout.of(BUSY), next(shard for shard in layout.names if shard != layout.of(BUSY))


def test_machines_skip_nights_of_a_store_at_a_url_as_one_machine_would(home: Path, tmp_path: Path) -> None:
    """Machines take turns; what one imports, skips or publishes decides what the other one does."""
    url = {"MEMSTATE_STORE_URL": f"file://{tmp_path}/url"}
    ben, alone = tmp_path / "ben", Path(shutil.copytree(home, tmp_path / "alone"))
    maintain(home, 1, **url)
    maintain(alone, 1)
    begun(ben, 2)
    busy, other = shards_of(alone)
    for night, (machine, changes, skipped) in enumerate(
        [(ben, False, [busy, other]), (ben, True, [other]), (home, False, [busy, other]), (home, True, [other])], 2
    ):
        for each in (machine, alone) if changes else ():
            dropped(each, [BUSY], night)
        assert maintain(machine, night, **url, **SKIPPING).get("skipped", []) == skipped
        maintain(alone, night)
    expected = maintain(alone, 6)["state_hash"]
    assert maintain(ben, 6, **url)["state_hash"] == expected
    assert done(home, "pull", **url)["state_hash"] == expected
    assert run_memstate(home, "verify", "--deep", **url).code == 0


@pytest.fixture
def published(home: Path, tmp_path: Path) -> str:
    """The URL at which the store is published, and takes writes of replicas."""
    url = f"file://{tmp_path}/published"
    with (home / "memstate.toml").open("a") as file:
        file.write(f'\n[publish]\nurl = "{url}"\naccept_writes = true\n')
    assert run_memstate(home, "publish").code == 0
    return url


def numbers(url: str, shard: str) -> list[int]:
    return there(url, shard).numbers


def test_what_a_replica_accepted_gives_its_shard_a_night(home: Path, published: str) -> None:
    busy, other = shards_of(home)
    scope = {"type": "user", "id": BUSY.partition(":")[2]}
    leave(published, {"observation_id": "said", "topic_key": "gate", "scope": scope, "text": "The gate is shut."})
    assert maintain(home, 1, **SKIPPING)["skipped"] == [other]
    assert names(published) == []
    assert (numbers(published, busy), numbers(published, other)) == ([2, 1], [1])


@pytest.mark.parametrize("by_schedule", [False, True])
def test_what_was_not_published_for_replicas_is_published_without_a_night(
    home: Path, published: str, tmp_path: Path, by_schedule: bool
) -> None:
    """The URL is out of reach during the nights; the next evening no shard has a night, and replicas get both."""
    busy, other = shards_of(home)
    shutil.move(tmp_path / "published", tmp_path / "away")
    (tmp_path / "published").write_text("a file in the way")
    assert run_memstate(home, "maintain", "--now", when(1)).code == 1
    (tmp_path / "published").unlink()
    shutil.move(tmp_path / "away", tmp_path / "published")
    assert (numbers(published, busy), numbers(published, other)) == ([1], [1])
    if by_schedule:
        with (home / "memstate.toml").open("a") as file:
            file.write("\n[schedule]\nskip_unchanged_days = 30\n")
        with dagster_instance(open_store(home, {}).home) as instance:
            job, tags = build_defs(home).resolve_job_def(CHOOSE), {NOW_TAG: when(2)}
            assert job.execute_in_process(instance=instance, tags=tags).success
    else:
        assert maintain(home, 2, **SKIPPING)["skipped"] == open_store(home, {}).shards
    for shard in (busy, other):
        served = current_snapshot(open_store(home, {}).home, shard)
        assert served is not None
        assert numbers(published, shard) == [served.manifest.number, 1]
    note = last_publication(open_store(home, {}).home)
    assert note is not None
    assert note.problems == {}


@pytest.mark.usefixtures("published")
def test_a_choice_that_cannot_publish_says_so_and_stands(home: Path, tmp_path: Path) -> None:
    maintain(home, 1)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("a file in the way")
    moved = {"MEMSTATE_PUBLISH_URL": f"file://{elsewhere}"}
    answer = run_memstate(home, "maintain", "--now", when(2), **SKIPPING, **moved)
    assert answer.code == 1, "as after a night"
    assert answer.stdout == "nothing published: no shard has a change\n"
    for shard in shards_of(home):
        assert f"{shard} is not published for replicas: " in answer.stderr
    elsewhere.unlink()
    maintain(home, 3, **SKIPPING, **moved)
    assert [numbers(moved["MEMSTATE_PUBLISH_URL"], shard) for shard in shards_of(home)] == [[2], [2]]
