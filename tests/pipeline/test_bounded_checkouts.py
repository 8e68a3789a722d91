"""Nights of shards on machines that keep the snapshots of some shards alone (`store.checkout_mib`)."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from memstate_core.model.errors import RemoteStoreDamaged, ShardRetired, SnapshotAbsent
from memstate_core.night.backup.capture import captured
from memstate_core.night.checkout.note import Note, read_checkout
from memstate_core.night.checkout.shards_here import shard_of
from memstate_core.night.clone import cloned
from memstate_core.night.publication.upload import publish_to
from memstate_core.night.verify import verify_store
from memstate_core.run.served_state import read_served
from memstate_core.run.store import open_store
from memstate_core.serve.snapshots.swap import Serving
from memstate_core.storage.head import read_head
from memstate_core.storage.objects import Objects
from memstate_core.storage.purpose import STORE
from memstate_core.storage.storage import storage
from tests import warm
from tests.pipeline.conftest import clean_environment, run_memstate
from tests.pipeline.shard_nights import SHARDS, during, night, served
from tests.pipeline.sharded_homes import NIGHTS, begun, done, imported, scope_states
from tests.pipeline.test_checkout import BRING, HEAD, KILL_AT, LEASE
from tests.pipeline.test_nights_on_machines import NIGHT_OF, Machines, at_last, finding
from tests.pipeline.test_publication import holds
from tests.storages import empty_place

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_settings", "nights_at_once")]
BOUND = "MEMSTATE_STORE_CHECKOUT_MIB"
SMALL = 64 << 10
"""More than CURRENT and the manifests of a shard, much less than its snapshots."""


def bounded(machines: Machines, patch: pytest.MonkeyPatch, mib: int = 1) -> Machines:
    """Machines of which each keeps the snapshots of one shard: two are more than a mebibyte."""
    machines.given[BOUND] = str(mib)
    patch.setenv(BOUND, str(mib))
    return machines


@pytest.fixture
def begun_machines(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Machines:
    """In the kind of storage that is asked for; Aya has the whole store."""
    return bounded(
        Machines(tmp_path, empty_place(request.param, request, tmp_path, monkeypatch), monkeypatch), monkeypatch
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, str]]]:
    """A folder with machines: Aya has the whole store, and Ben s0, of which he made the last night."""
    folder = tmp_path_factory.mktemp("bounded")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEMSTATE_STORE_NIGHTS_AT_ONCE", "2")
        machines = bounded(Machines(folder, f"file://{folder}/url", patch), patch)
        machines.done(machines.aya, "import", str(folder / "aya-1.jsonl"))
        night(machines.ben, "s0", 1)
        assert here(machines.ben) == ["s0"]
        yield folder, machines.given


@pytest.fixture
def machines(made: tuple[Path, dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machines:
    """A copy of them."""
    copy = Path(shutil.copytree(made[0], tmp_path / "machines"))
    found = Machines.__new__(Machines)
    found.aya, found.ben, found.carl = (copy / name for name in ("aya", "ben", "carl"))
    found.given = made[1] | {"MEMSTATE_STORE_URL": f"file://{copy}/url"}
    for name, value in found.given.items():
        monkeypatch.setenv(name, value)
    return found


def here(home: Path) -> list[str]:
    """The shards with more than CURRENT and manifests on disk."""
    sizes = {
        folder.name: sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        for folder in (home / "snapshots").iterdir()
        if folder.is_dir()
    }
    return sorted(shard for shard, size in sizes.items() if size > SMALL)


def note_of(home: Path) -> Note:
    note = read_checkout(open_store(home).home)
    assert note is not None
    return note


def state_hash(machines: Machines) -> str | None:
    found = read_head(storage(machines.given["MEMSTATE_STORE_URL"], STORE))
    assert found is not None
    assert found[0].state is not None
    return found[0].state.state_hash


def graph_at_url(machines: Machines, shard: str) -> Path:
    """The content of the served graph of a shard, at a URL that is a folder."""
    [*_, file] = sorted(each for each in graphs(machines, shard))
    return Path(machines.given["MEMSTATE_STORE_URL"].removeprefix("file://")) / file


def graphs(machines: Machines, shard: str) -> Iterator[str]:
    files = sorted((each for each in note_of(machines.ben).files if shard_of(each.path) == shard), key=lambda f: f.path)
    return (file.name for file in files if file.path.endswith("graph.kuzu"))


@pytest.mark.parametrize("begun_machines", ["file", "s3", "az"], indirect=True)
def test_nights_by_turns_have_the_states_of_whole_checkouts(
    begun_machines: Machines, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    machines, fetched, fetch = begun_machines, list[int](), Objects.fetch
    aya, ben = machines.aya, machines.ben

    def fetching(self: Objects, sha256: str, target: Path) -> str | None:
        problem = fetch(self, sha256, target)
        fetched.append(target.stat().st_size)
        return problem

    night(aya, "s0", 1)
    assert here(aya) == ["s0"], "the other was here and does not fit"
    assert not (aya / "discarded").exists(), "what was recorded here alone is sent, as by a whole checkout"
    monkeypatch.setattr(Objects, "fetch", fetching)
    night(ben, "s1", 1)
    assert here(ben) == ["s1"]
    whole = sum(file.size for file in note_of(ben).files if file.path.startswith("snapshots/"))
    assert sum(fetched) < whole / 2
    monkeypatch.setattr(Objects, "fetch", fetch)
    night(ben, "s0", 2)
    night(aya, "s1", 2)
    assert (here(aya), here(ben), note_of(aya).absent) == (["s1"], ["s0"], ["s0"])
    alone = begun(tmp_path / "alone", len(SHARDS))
    for number in range(3):
        if number < 2:
            imported(alone, number)
        done(alone, "maintain", "--now", NIGHTS[number])
    carl = machines.pulled()
    assert scope_states(carl) == scope_states(alone)
    assert state_hash(machines) == machines.done(carl, "status")["state_hash"] == done(alone, "status")["state_hash"]
    assert served(carl) == dict.fromkeys(SHARDS, "3")
    machines.done(carl, "verify", "--deep")


def test_reads_say_that_a_shard_is_not_on_this_machine(machines: Machines) -> None:
    ben = machines.ben
    one = run_memstate(ben, "query", "yard", "--scope", "user:u2", "--json", **machines.given)
    assert (one.code, one.document["error"]["type"]) == (1, "SnapshotAbsent")
    assert "memstate pull" in one.document["error"]["message"]
    [missing] = machines.done(ben, "query", "yard")["missing_shards"]
    assert missing["shard"] == "s1"
    assert "is not on this machine" in missing["message"]
    assert "is damaged" not in missing["message"]
    status = machines.done(ben, "status")
    assert (status["checkout"]["absent"], status["state_hash"]) == (["s1"], state_hash(machines))
    assert "snapshots of s1" in run_memstate(ben, "status", **machines.given).stdout
    assert "the snapshots of s1 are there alone" in finding(ben)
    examined = run_memstate(ben, "doctor", "--json", **machines.given).document
    assert all(each["ok"] for each in examined if each["name"] in ("snapshot", "store", "ledger"))
    serving = Serving(open_store(ben))
    with pytest.raises(SnapshotAbsent):
        serving.refresh()
    assert [serving.states()[shard].is_ready for shard in SHARDS] == [True, False]
    machines.done(ben, "pull")
    assert serving.refresh()
    assert serving.current is not None
    assert serving.current.names == ["s0/2", "s1/1"]
    night(ben, "s0", 2)
    with pytest.raises(SnapshotAbsent):
        serving.refresh()
    assert [each["shard"] for each in serving.current.damaged.note(None)["missing_shards"]] == ["s1"]
    serving.close()


def test_what_reads_every_shard_names_the_absent_one(machines: Machines) -> None:
    store, target = open_store(machines.ben), str(machines.ben.parent / "target")

    def clone() -> None:
        with cloned(store):
            pass

    def capture() -> None:
        with captured(store):
            pass

    reads = (lambda: verify_store(store), clone, capture, lambda: read_served(store), lambda: publish_to(store, target))
    for read in reads:
        with pytest.raises(SnapshotAbsent, match="snapshot s1"):
            read()


def test_nothing_older_is_served_in_the_place_of_an_absent_shard(machines: Machines) -> None:
    """A snapshot that a killed command had not removed yet is whole, and CURRENT names none."""
    left = machines.ben / "snapshots" / "s1"
    shutil.copytree(machines.aya / "snapshots" / "s1" / "1", left / "1", dirs_exist_ok=True)
    (left / "CURRENT").write_text("9\n")
    answer = run_memstate(machines.ben, "query", "yard", "--scope", "user:u2", "--json", **machines.given)
    assert answer.document["error"]["type"] == "SnapshotAbsent"
    machines.done(machines.ben, "pull")
    machines.done(machines.ben, "query", "yard", "--scope", "user:u2")


@pytest.mark.parametrize("command", ["verify", "backup", "rebuild", "plan", "publish"])
def test_a_command_that_needs_the_whole_store_fetches_the_rest(machines: Machines, command: str) -> None:
    target = machines.ben.parent / "target"
    options = {"verify": ["--deep"], "backup": [str(target)], "publish": [str(target)], "plan": ["-o", str(target)]}
    given = options.get(command, [])
    machines.done(machines.ben, command, *given)
    assert (here(machines.ben), note_of(machines.ben).absent) == ([*SHARDS], [])
    if command == "backup":
        machines.done(machines.ben, "verify", "--backup", str(target), "--deep")


def test_a_brief_command_fetches_no_snapshots(machines: Machines) -> None:
    imported(machines.aya, 2)
    machines.done(machines.carl, "import", str(machines.aya.parent / "aya-2.jsonl"))
    machines.done(machines.ben, "import", str(machines.aya.parent / "aya-2.jsonl"))
    assert (here(machines.carl), here(machines.ben)) == ([], ["s0"])
    serving = Serving(open_store(machines.carl))
    for read in (serving.refresh, lambda: serving.read(lambda generation: generation)):
        with pytest.raises(SnapshotAbsent):
            read()
    machines.done(machines.carl, "verify", "--deep")


def test_other_shards_stay_that_fit_and_are_current(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    bounded(machines, monkeypatch, 64)
    aya, ben = machines.aya, machines.ben
    night(ben, "s1", 1)
    assert (here(ben), note_of(ben).used, note_of(ben).absent) == ([*SHARDS], ["s0", "s1"], [])
    night(aya, "s0", 2)
    night(ben, "s1", 2)
    assert (here(ben), note_of(ben).absent) == (["s1"], ["s0"]), "another machine published s0"
    machines.done(machines.pulled(), "verify", "--deep")


def test_damage_at_the_url_of_an_absent_shard_is_found_by_verify(machines: Machines) -> None:
    ben, damaged = machines.ben, graph_at_url(machines, "s1")
    damaged.write_bytes(b"x" * damaged.stat().st_size)
    night(ben, "s0", 2)
    assert damaged.name in {Path(name).name for name in graphs(machines, "s1")}
    answer = run_memstate(ben, "verify", "--json", **machines.given)
    assert (answer.code, answer.document["error"]["type"]) == (RemoteStoreDamaged.exit_code, "RemoteStoreDamaged")
    assert f"{damaged.parent.name}/{damaged.name}" in answer.document["error"]["message"]


def test_what_the_url_lacks_stays_here(machines: Machines) -> None:
    aya = machines.aya
    graph_at_url(machines, "s1").unlink()
    night(aya, "s0", 2)
    assert (here(aya), note_of(aya).absent) == ([*SHARDS], [])


def test_what_the_url_never_got_is_sent_before_it_goes(machines: Machines) -> None:
    """A night that was made while the settings named no URL, so that nothing at the URL has its snapshot."""
    aya = machines.aya
    machines.done(aya, "pull")
    done(aya, "maintain", "--now", NIGHTS[1])
    night(aya, "s0", 2)
    assert (here(aya), note_of(aya).absent) == (["s0"], ["s1"])
    assert served(machines.pulled()) == {"s0": "4", "s1": "2"}
    machines.done(machines.carl, "verify", "--deep")


def test_a_shard_stays_while_its_night_is_in_progress_here(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []

    def act() -> None:
        night(machines.ben, "s1", 1)
        found.append(here(machines.ben))

    with during("s0", monkeypatch, act):
        night(machines.ben, "s0", 2)
    assert found == [[*SHARDS]]
    assert here(machines.ben) == ["s0"], "its own is there no longer when it has ended"
    carl = machines.pulled()
    machines.done(carl, "verify", "--deep")
    assert served(carl) == {"s0": "3", "s1": "2"}


def test_the_recall_of_a_night_is_that_of_its_shard(machines: Machines) -> None:
    """A question to all scopes, while the other shard is not on the machine."""
    ben = machines.ben
    topics = machines.done(machines.aya, "export")["topics"]
    yard = next(each["id"] for each in topics if open_store(ben).layout.of(each["scope"]) == "s0")
    (ben / "questions.jsonl").write_text(json.dumps({"q": "Which gate is open?", "topics": [yard]}) + "\n")
    with (ben / "memstate.toml").open("a") as settings:
        settings.write('[recall]\nquestions = "questions.jsonl"\n')
    run = night(ben, "s0", 2)
    assert here(ben) == ["s0"]
    (page,) = (ben / "reports").glob(f"{run}*.json")
    assert "recall of 1 question" in page.read_text()


@pytest.mark.parametrize("command", ["erase", "rollback"])
def test_what_another_machine_did_to_an_absent_shard(machines: Machines, command: str) -> None:
    aya, ben = machines.aya, machines.ben
    machines.done(aya, "pull")
    given = {"erase": ["--observation", "u2-b", "--yes"], "rollback": ["--shard", "s0"]}[command]
    machines.done(aya, command, *given)
    night(ben, "s1", 2)
    assert (here(ben), state_hash(machines)) == (["s1"], machines.done(machines.pulled(), "status")["state_hash"])
    if command == "erase":
        assert not holds(ben, b"Spring budget u2")
        assert holds(ben, b"Spring budget u3")
    machines.done(machines.carl, "verify", "--deep")


def test_another_machine_changed_the_number_of_shards(machines: Machines) -> None:
    aya, ben = machines.aya, machines.ben
    machines.done(aya, "reshard", "3")
    for home in (aya, ben, machines.carl):
        text = (home / "memstate.toml").read_text()
        (home / "memstate.toml").write_text(text.replace("shards = 2 ", "shards = 3 "))
    with pytest.raises(ShardRetired):
        night(ben, "s1", 2)
    names = open_store(ben).shards
    assert (here(ben), len(names)) == ([], 3)
    night(ben, names[1], 2)
    assert here(ben) == [names[1]]
    machines.done(machines.pulled(), "verify", "--deep")
    assert set(served(machines.carl)) == {*names}


POINTS = {
    "with what is to be fetched": (BRING, "_Bringing._stage", 1, True),
    "while files get their places": (BRING, "sync_path", 3, True),
    "in the middle of a copy": (BRING, "sync_path", 1, False),
    "with all files in their places": (BRING, "_Bringing._put", 1, True),
    "while a shard is removed": (BRING, "_remove_empty", 3, True),
    "before the note says what is here": ("memstate_core.night.checkout.session", "write_checkout", 1, False),
    "when the night has begun": (LEASE, "Lease.release", 1, True),
    "when it has published here": ("memstate_pipeline.assets.publish", "publish", 1, True),
    "while it is sent": (HEAD, "Contents.send", 9, True),
    "before the state moves": (LEASE, "Lease.commit", 1, False),
    "when the state has moved": (LEASE, "Lease.commit", 1, True),
    "before the garbage is removed": (HEAD, "Contents.remove_unnamed", 1, False),
}


@pytest.mark.parametrize("point", POINTS)
def test_a_night_that_is_killed_is_made_up_for(machines: Machines, point: str) -> None:
    """Ben's home has s0 and gets s1; the same home, and another one, go on."""
    aya, ben, carl = machines.aya, machines.ben, machines.carl
    module, name, call, after = POINTS[point]
    script = KILL_AT.format(module=module, name=name, call=call, after=after)
    script = script.replace("from memstate_pipeline.cli.main import main\n", NIGHT_OF)
    output = ben.parent / "killed"
    with output.open("wb") as file:
        given = clean_environment(**machines.given)
        code = warm.Process(["-c", script, str(ben), "s1", NIGHTS[1]], given, file, file).wait()
    assert code == -signal.SIGKILL, output.read_text()
    for scope in ("user:u0", "user:u2"):
        answer = run_memstate(ben, "query", "yard", "--scope", scope, "--json", **machines.given)
        assert answer.code == 0 or answer.document["error"]["type"] == "SnapshotAbsent", answer.document
    at_last(ben, "s0", 2)
    assert (here(ben), note_of(ben).absent) == (["s0"], ["s1"])
    assert not [*(ben / "snapshots").rglob(".*.part")]
    at_last(aya, "s1", 3)
    assert here(aya) == ["s1"]
    machines.done(carl, "pull")
    assert state_hash(machines) == machines.done(carl, "status")["state_hash"]
    machines.done(carl, "verify", "--deep")
    machines.done(ben, "verify", "--deep")
