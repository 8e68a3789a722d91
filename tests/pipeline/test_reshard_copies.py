"""Copies of a store whose number of shards changes: backups, plans, replicas, checkouts; and erasures in it."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest

from memstate_core.model.errors import PublicationConflict
from memstate_core.model.scope import Layout
from memstate_core.night.publication import upload as publishing
from memstate_core.night.publication.upload import publish_to
from memstate_core.run.store import Store, open_store
from memstate_core.serve.replica.follower import Follower
from memstate_core.serve.replica.mirror import Mirror
from memstate_core.serve.snapshots.swap import Serving
from memstate_core.storage.head import read_head
from memstate_core.storage.published import read_note
from memstate_core.storage.purpose import PUBLICATION, SOURCE, STORE
from memstate_core.storage.storage import storage
from tests import warm
from tests.pipeline.cli.test_reshard import LATER, SWITCH, lived_one, one
from tests.pipeline.conftest import clean_environment, fork_memstate, run_memstate
from tests.pipeline.sharded_homes import SCOPES, begun, done, imported, scope_states, verified
from tests.pipeline.test_checkout import KILL_AT, LEASE, machine
from tests.storages import empty_place

__all__ = ["lived_one", "one"]
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_settings")]
NEW = "r1s0of2/1,r1s1of2/1"


def killed_at(home: Path, module: str, name: str, call: int, *, after: bool, **given: str) -> None:
    script = KILL_AT.format(module=module, name=name, call=call, after=after)
    killed = warm.run(["-c", script, "--home", str(home), "reshard", "2"], clean_environment(**given))
    assert killed.returncode == -signal.SIGKILL, killed.stdout + killed.stderr


def test_backups_from_before_and_after_are_restored(one: Path, tmp_path: Path) -> None:
    before, folder = scope_states(one), str(tmp_path / "backups")
    done(one, "backup", folder)
    killed_at(one, SWITCH, "_complete", 1, after=False)
    done(one, "backup", folder)
    assert (done(one, "status")["snapshot"], "shards = 2" in (one / "memstate.toml").read_text()) == (NEW, True)
    for number, shards in ((1, ["s0"]), (2, ["r1s0of2", "r1s1of2"])):
        home = tmp_path / f"restored-{number}"
        done(home, "restore-backup", folder, "--backup", str(number))
        assert (open_store(home, {}).shards, scope_states(home)) == (shards, before)
        done(home, "maintain", "--now", LATER[1])
        verified(home)
    assert scope_states(tmp_path / "restored-1") == scope_states(tmp_path / "restored-2")


def test_a_plan_from_before_is_stale(one: Path, tmp_path: Path) -> None:
    plan = str(tmp_path / "plan.json")
    done(one, "plan", "--now", LATER[1], "--output", plan)
    done(one, "reshard", "2")
    assert run_memstate(one, "apply", plan, "--json").document["error"]["type"] == "PlanStale"
    done(one, "plan", "--now", LATER[1], "--output", plan)
    done(one, "apply", plan)
    verified(one)


def test_an_erasure_leaves_nothing_of_either_shards(one: Path) -> None:
    done(one, "reshard", "2")
    assert (one / "snapshots" / "s0").exists()
    mark = SCOPES[0].partition(":")[2]
    erased = fork_memstate(one, "erase", "--scope", SCOPES[0], "--json")
    assert erased.code == 0, erased.stderr
    assert sorted(path.name for path in (one / "snapshots").iterdir()) == ["layout.json", "r1s0of2", "r1s1of2"]
    assert SCOPES[0] not in scope_states(one)
    kept = [path for folder in ("snapshots", "ledger") for path in (one / folder).rglob("*") if path.is_file()]
    assert not [path for path in kept if f"yard-{mark}".encode() in path.read_bytes()]
    verified(one)


def test_what_a_killed_change_built_is_erased_as_well(one: Path) -> None:
    killed_at(one, "memstate_core.night.resharding.reshard", "switch", 1, after=False)
    assert (one / "snapshots" / "r1s0of2" / "1").exists()
    assert fork_memstate(one, "erase", "--scope", SCOPES[0], "--json").code == 0
    assert sorted(path.name for path in (one / "snapshots").iterdir()) == ["s0"]
    done(one, "reshard", "2")
    verified(one)


def replica_of(folder: Path, url: str) -> tuple[Mirror, Follower, Serving]:
    mirror = Mirror(folder, url, 1 << 30)
    count = mirror.open()
    follower = Follower(mirror, 60)
    follower.follow()
    settings = open_store(folder, {}).settings
    sharded = settings.store.model_copy(update={"shards": count})
    return mirror, follower, Serving(Store(mirror.home, settings.model_copy(update={"store": sharded})))


def test_replicas_switch_when_all_shards_are_published(
    one: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"file://{tmp_path / 'published'}"
    with (one / "memstate.toml").open("a") as file:
        file.write(f'\n[publish]\nurl = "{url}"\n')
    done(one, "publish")
    copy = Path(shutil.copytree(one, tmp_path / "copy"))
    mirror, follower, serving = replica_of(tmp_path / "replica", url)
    serving.refresh()
    assert serving.current is not None
    (old,) = serving.current.names
    monkeypatch.setattr(publishing, "write_note", fails)
    failed = run_memstate(one, "reshard", "2", "--json")
    assert (failed.code, failed.document["snapshot"]) == (1, NEW)
    assert "the network is gone" in failed.document["not_published"]
    monkeypatch.undo()
    follower.follow()
    assert (serving.refresh(), serving.current.names, mirror.layout) == (False, [old], Layout(1))
    done(one, "maintain", "--now", LATER[1])  # its first shard publishes all that are missing
    note = read_note(storage(url, PUBLICATION), SOURCE)
    assert note is not None
    assert (note[0].shards, note[0].layout, note[0].format) == (2, 1, 2)
    assert {name.split("/")[1] for name in storage(url, PUBLICATION).sizes("shards")} == {"r1s0of2", "r1s1of2"}
    assert follower.problems == {}
    follower.follow()
    assert serving.refresh()
    assert serving.current.snapshot == done(one, "status")["snapshot"]
    assert sorted(path.name for path in mirror.home.layout.parent.iterdir()) == ["layout.json", "r1s0of2", "r1s1of2"]
    assert mirror.open() == 2
    serving.close()
    with pytest.raises(PublicationConflict, match="another copy of the store changed its number of shards"):
        publish_to(open_store(copy, {}), url)
    publish_to(open_store(copy, {}), url, take_over=True)
    follower.follow()
    assert mirror.layout == Layout(1)


def fails(*_given: object, **_named: object) -> None:
    raise OSError("the network is gone")


@pytest.fixture
def machines(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> tuple[Path, Path, dict[str, str]]:
    """Two checkouts of a store of one shard, each with its only night, and the variables that name it."""
    url = empty_place(request.param, request, tmp_path, monkeypatch)
    given = {"MEMSTATE_STORE_URL": url, "MEMSTATE_STORE_LEASE_SECONDS": "1"}
    aya, ben = begun(tmp_path / "aya", 1), begun(tmp_path / "ben", 1)
    imported(aya, 0)
    done(aya, "maintain", "--now", LATER[0], **given)
    done(ben, "pull", **given)
    return aya, ben, given


def shards_at(given: dict[str, str]) -> tuple[int, int]:
    """How many shards the store at the URL has, and how often that was changed."""
    head = read_head(storage(given["MEMSTATE_STORE_URL"], STORE))
    assert head is not None
    return head[0].shards, head[0].layout


everywhere = pytest.mark.parametrize("machines", ["file", "s3", "az"], indirect=True)


@everywhere
def test_a_store_at_a_url_is_changed_by_one_machine_for_all(machines: tuple[Path, Path, dict[str, str]]) -> None:
    aya, ben, url = machines
    before = scope_states(ben)
    done(aya, "reshard", "2", **url)
    assert shards_at(url) == (2, 1)
    done(ben, "pull", **url)
    assert (done(ben, "status")["snapshot"], scope_states(ben)) == (NEW, before)
    refused = run_memstate(ben, "maintain", "--now", LATER[1], **url)
    assert "store.shards = 1 is not allowed: the store has 2 shards" in refused.stderr
    (ben / "memstate.toml").write_text((aya / "memstate.toml").read_text())
    imported(ben, 1)
    done(ben, "maintain", "--now", LATER[1], **url)
    done(aya, "pull", **url)
    assert scope_states(aya) == scope_states(ben)
    assert run_memstate(aya, "verify", "--deep", **url).code == 0


@pytest.mark.parametrize("after", [False, True], ids=["before the commit", "after the commit"])
@everywhere
def test_a_change_at_a_url_that_was_killed_goes_on(machines: tuple[Path, Path, dict[str, str]], after: bool) -> None:
    """Until its commit all machines have the old shards, from then on the new ones; the same command goes on."""
    aya, ben, url = machines
    before = scope_states(ben)
    killed_at(aya, LEASE, "Lease.commit", 1, after=after, **url)
    assert shards_at(url) == ((2, 1) if after else (1, 0))
    done(ben, "pull", **url)
    assert (done(ben, "status")["snapshot"], scope_states(ben)) == (NEW if after else "s0/1", before)
    again = machine(aya, url["MEMSTATE_STORE_URL"], "reshard", "2", "--json")
    if after:
        assert "was not changed: it has 2 already" in again.document["error"]["message"]
    else:
        assert (again.code, again.document["before"], again.document["snapshot"]) == (0, 1, NEW), again.stderr
    assert shards_at(url) == (2, 1)
    done(ben, "pull", **url)
    for home in (aya, ben):
        assert (done(home, "status")["snapshot"], scope_states(home)) == (NEW, before)
    assert "shards = 2" in (aya / "memstate.toml").read_text()
    imported(aya, 1)
    done(aya, "maintain", "--now", LATER[1], **url)
    done(ben, "pull", **url)
    assert scope_states(aya) == scope_states(ben) != before
    assert run_memstate(ben, "verify", "--deep", **url).code == 0
