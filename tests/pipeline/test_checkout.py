"""Nights and other commands of several machines on one store at a URL: the same as one machine that does it all."""

from __future__ import annotations

import json
import shutil
import signal
import time
from pathlib import Path

import dagster as dg
import pytest

from memstate_core.ingest.accesses.record import AccessRecord, heading, written
from memstate_core.night.checkout.note import read_checkout
from memstate_core.run.store import open_store
from memstate_core.storage.head import read_head
from memstate_core.storage.purpose import STORE
from memstate_core.storage.storage import storage
from memstate_pipeline.definitions import build_defs
from memstate_pipeline.doctor.checkout import remote_store
from memstate_pipeline.nights import IMPORT_INBOX
from tests import warm
from tests.core.night.publication.conftest import there
from tests.pipeline.conftest import Answer, clean_environment, run_memstate
from tests.pipeline.test_publication import holds
from tests.pipeline.test_replica_writes import leave, names
from tests.storages import copied, empty_place, fetched

pytestmark = pytest.mark.slow
NIGHTS = [f"2026-04-{day:02}T02:00:00Z" for day in range(6, 16)]
GATES = ("shut", "open", "ajar", "gone", "painted")

KILL_AT = """
import os, signal, sys
from operator import attrgetter
import {module} as module

*outer, name = {name!r}.split(".")
owner = attrgetter(".".join(outer))(module) if outer else module
real, calls = getattr(owner, name), []

def die(*arguments, **named):
    calls.append(1)
    if len(calls) < {call}:
        return real(*arguments, **named)
    if {after}:
        real(*arguments, **named)
    os.kill(os.getpid(), signal.SIGKILL)

setattr(owner, name, die)
sys.argv[0] = "memstate"
from memstate_pipeline.cli.main import main
main()
"""
SESSION, HEAD, LEASE = (
    "memstate_core.night.checkout.session",
    "memstate_core.storage.head",
    "memstate_core.storage.lease",
)
BRING = "memstate_core.night.checkout.bring"
POINTS = {
    "before the lease": (SESSION, "take_lease", 1, False),
    "with the lease": (SESSION, "take_lease", 1, True),
    "with what is to be fetched": (BRING, "_Bringing._stage", 1, True),
    "while the home is cleared": (BRING, "_Bringing._clear", 5, True),
    "while files get their places": (BRING, "sync_path", 3, True),
    "with all files in their places": (BRING, "_Bringing._put", 1, True),
    "before its input is sent": (HEAD, "Contents.send", 1, False),
    "with its input sent, before the state has it": (LEASE, "Lease.commit", 1, False),
    "when the state has its input": (LEASE, "Lease.commit", 1, True),
    "after the import": ("memstate_pipeline.inputs", "import_inbox", 1, True),
    "when the night has published here": ("memstate_pipeline.assets.publish", "publish", 1, True),
    "while the night is sent": (HEAD, "Contents.send", 9, True),
    "before its list is sent": (HEAD, "Contents.send_list", 2, False),
    "before the state moves": (LEASE, "Lease.commit", 2, False),
    "when the state has moved": (LEASE, "Lease.commit", 2, True),
    "before what is old is removed": (HEAD, "Contents.remove", 2, False),
    "before the page is sent": (LEASE, "Lease.commit", 3, False),
    "before the garbage is removed": (HEAD, "Contents.remove_unnamed", 1, False),
    "before the lease is released": (LEASE, "Lease.release", 1, False),
}


def drop(home: Path, number: int) -> None:
    (home / "inbox").mkdir(parents=True, exist_ok=True)
    (home / "memstate.toml").write_text("[store]\nniceness = 0\n")
    row = {
        "observation_id": f"said-{number}",
        "topic_key": "yard",
        "title": "Yard",
        "observed_at": f"2026-01-0{number}",
    }
    row |= {"fields": [{"name": "gate", "value": GATES[number - 1]}], "text": f"The gate is {GATES[number - 1]}."}
    (home / "inbox" / f"{number}.jsonl").write_text(json.dumps(row) + "\n")


def record(home: Path, number: int) -> None:
    """A complete segment of the access journal."""
    (home / "accesses").mkdir(parents=True, exist_ok=True)
    access = AccessRecord(topic_id="yard", at=f"2026-01-0{number}T00:00:00Z", source="server", scope="global")
    (home / "accesses" / f"{number}.jsonl").write_bytes(written(heading("a")) + written(access))


def settings(url: str) -> dict[str, str]:
    return {"MEMSTATE_STORE_URL": url, "MEMSTATE_STORE_LEASE_SECONDS": "1"}


def machine(home: Path, url: str, *arguments: str, **environment: str) -> Answer:
    """A command on a checkout; it waits for the lease of a dead machine."""
    given = settings(url) | environment
    for _ in range(100):
        answer = run_memstate(home, *arguments, **given)
        if answer.code != 3:
            break
        time.sleep(0.1)
    return answer


def night(home: Path, url: str, number: int, **environment: str) -> str:
    answer = machine(home, url, "maintain", "--now", NIGHTS[number], "--json", **environment)
    assert answer.code == 0, answer.stderr
    return str(answer.document["state_hash"])


def observations(home: Path) -> list[str]:
    return sorted(open_store(home, {}).ledger.scan("evidence").select("observation_id").collect().to_series())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two machines that have made a night each, and a dump that waits on each; tests copy the folder."""
    folder = tmp_path_factory.mktemp("machines")
    url = f"file://{folder}/url"
    for number, name in enumerate(("aya", "ben")):
        drop(folder / name, number + 1)
        night(folder / name, url, number)
        drop(folder / name, number + 3)
        record(folder / name, number + 3)
    return folder


@pytest.fixture
def machines(
    made: Path, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> tuple[Path, Path, str]:
    """The homes of two machines, and the URL of their store, in a folder or the kind of storage that is asked for."""
    copy = Path(shutil.copytree(made, tmp_path / "machines"))
    kind = getattr(request, "param", "file")
    url = f"file://{copy}/url" if kind == "file" else empty_place(kind, request, tmp_path, monkeypatch)
    if kind != "file":
        copied(f"file://{copy}/url", url)
    return copy / "aya", copy / "ben", url


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A home of its own that has made four nights, and the state hash after each."""
    home = tmp_path_factory.mktemp("alone")
    hashes = []
    for number in range(4):
        drop(home, number + 1)
        hashes.append(run_memstate(home, "maintain", "--now", NIGHTS[number], "--json").document["state_hash"])
    return home, hashes


def test_machines_that_take_turns_make_the_nights_of_one(
    url: str, alone: tuple[Path, list[str]], tmp_path: Path
) -> None:
    homes = [tmp_path / "aya", tmp_path / "ben"]
    for number, expected in enumerate(alone[1]):
        home = homes[number % 2]
        drop(home, number + 1)
        assert night(home, url, number) == expected
    assert machine(homes[0], url, "pull", "--json").document["state_hash"] == expected
    for home in homes:
        assert machine(home, url, "verify", "--deep").code == 0
        assert observations(home) == observations(alone[0])
        assert [path.name for path in (home / "inbox").glob("*.jsonl")] == []
    reports = [sorted(path.suffix for path in (home / "reports").glob("*-s0.*")) for home in (*homes, alone[0])]
    assert reports[0] == reports[1] == reports[2]


ELSEWHERE = [("s3", "az")[number % 2] for number in range(len(POINTS))]
everywhere = pytest.mark.parametrize("machines", ["file", "s3", "az"], indirect=True)


@pytest.mark.parametrize(
    ("machines", "point"),
    [*(("file", point) for point in POINTS), *zip(ELSEWHERE, POINTS, strict=True)],
    indirect=["machines"],
)
def test_another_machine_goes_on_after_a_kill(machines: tuple[Path, Path, str], point: str) -> None:
    """A SIGKILL at each step of a night: nothing is lost and nothing is there twice, wherever the next one runs.

    Each in a folder, and by one of the protocols, by turns.
    """
    aya, ben, url = machines
    module, name, call, after = POINTS[point]
    script = KILL_AT.format(module=module, name=name, call=call, after=after)
    given = clean_environment(**settings(url))
    killed = warm.run(["-c", script, "--home", str(aya), "maintain", "--now", NIGHTS[2]], given)
    assert killed.returncode == -signal.SIGKILL, killed.stdout + killed.stderr
    night(ben, url, 3)
    assert {"said-1", "said-2", "said-4"} <= set(observations(ben))
    last = night(aya, url, 4)
    assert machine(ben, url, "pull", "--json").document["state_hash"] == last
    for home in (aya, ben):
        assert observations(home) == ["said-1", "said-2", "said-3", "said-4"]
        assert open_store(home, {}).ledger.count("accesses") == 2
    assert machine(ben, url, "verify", "--deep").code == 0
    note = read_checkout(open_store(aya, {}).home)
    assert note is not None
    assert note.state is not None
    there_now = set(storage(url, STORE).sizes("data"))
    assert there_now == {note.state.list_name, *(file.name for file in note.files)}


def test_a_night_whose_lease_is_lost_is_an_error_and_made_again(
    machines: tuple[Path, Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine is suspended before it publishes; another one makes its night meanwhile."""
    from memstate_core.storage.lease import Lease
    from memstate_pipeline.assets import publish as step

    aya, ben, url = machines
    real, renew = step.publish, Lease._renew
    monkeypatch.setattr(Lease, "_renew", lambda _: None)

    def suspended(*given: object) -> object:
        monkeypatch.setattr(step, "publish", real)
        night(ben, url, 3)
        return real(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(step, "publish", suspended)
    refused = run_memstate(aya, "maintain", "--now", NIGHTS[2], "--json", **settings(url))
    assert refused.code == 3
    assert refused.document["error"]["type"] == "LeaseLost"
    monkeypatch.setattr(Lease, "_renew", renew)
    assert observations(ben) == ["said-1", "said-2", "said-3", "said-4"]  # aya had sent its input before it began
    last = night(aya, url, 4)
    assert machine(ben, url, "pull", "--json").document["state_hash"] == last
    assert observations(aya) == ["said-1", "said-2", "said-3", "said-4"]
    assert machine(aya, url, "verify", "--deep").code == 0
    assert (aya / "discarded").is_dir()


@everywhere
def test_every_command_that_writes_begins_with_the_state_at_the_url(machines: tuple[Path, Path, str]) -> None:
    aya, ben, url = machines
    night(ben, url, 2)
    topic = machine(ben, url, "query", "yard", "--json").document["candidates"][0]["topic_id"]
    for command in (["pin", topic], ["compact"], ["rebuild"], ["retention"]):
        done = machine(aya, url, *command, "--json")
        assert done.code == 0, done.stderr
    assert observations(aya) == ["said-1", "said-2", "said-4"]  # its own input waits for a night, or an import
    numbers = [state_number(url)]
    assert machine(ben, url, "rollback", "--json").code == 0
    numbers.append(state_number(url))
    drop(aya.parent, 5)
    assert machine(aya, url, "import", str(aya.parent / "inbox" / "5.jsonl")).code == 0
    numbers.append(state_number(url))
    assert numbers == sorted(set(numbers))
    night(ben, url, 3)
    assert observations(ben) == ["said-1", "said-2", "said-3", "said-4", "said-5"]


def state_number(url: str) -> int:
    found = read_head(storage(url, STORE))
    assert found is not None
    assert found[0].state is not None
    assert found[0].holder == ""
    return found[0].state.number


@everywhere
def test_a_plan_is_made_of_the_state_at_the_url(machines: tuple[Path, Path, str], tmp_path: Path) -> None:
    aya, ben, url = machines
    night(ben, url, 2)
    plan = tmp_path / "plan.json"
    assert machine(aya, url, "plan", "--now", NIGHTS[3], "--output", str(plan), "--json").code == 0
    before = state_number(url)
    applied = machine(aya, url, "apply", str(plan), "--json")
    assert applied.code == 0, applied.stderr
    assert state_number(url) > before
    stale = machine(ben, url, "apply", str(plan), "--json")
    assert stale.document["error"]["type"] == "PlanStale"


@everywhere
def test_an_erasure_reaches_the_url_and_the_other_machines(machines: tuple[Path, Path, str], tmp_path: Path) -> None:
    aya, ben, url = machines
    night(ben, url, 2)
    assert machine(aya, url, "pull").code == 0
    for place in (aya, ben, fetched(url, tmp_path / "before")):
        assert holds(place, b"The gate is open.")
    for kept in ("discarded/1/ledger/rows", "recall/2026-01-01.jsonl", "cache/answers.sqlite"):
        (ben / kept).parent.mkdir(parents=True, exist_ok=True)
        (ben / kept).write_text("The gate is open.")
    erased = machine(aya, url, "erase", "--observation", "said-2", "--yes", "--json")
    assert erased.code == 0, erased.stderr
    assert not holds(fetched(url, tmp_path / "after"), b"The gate is open.")
    assert machine(ben, url, "pull").code == 0
    for place in (aya, ben):
        assert not holds(place, b"The gate is open.")
    assert machine(ben, url, "verify", "--deep").code == 0
    assert "said-2" not in observations(ben)


def test_an_erasure_names_dumps_at_the_url_that_it_could_not_take(machines: tuple[Path, Path, str]) -> None:
    aya, _, url = machines
    storage(url, STORE).write("inbox/late.jsonl", b"{}")  # which has not settled yet
    erased = machine(aya, url, "erase", "--observation", "said-1", "--yes", "--json")
    assert erased.code == 0, erased.stderr
    assert f"{url}/inbox/late.jsonl, which was not taken yet: a later command imports it" in str(erased.document)


def test_replicas_see_what_the_store_has(machines: tuple[Path, Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that lost its lease publishes nothing for replicas either."""
    from memstate_core.storage.lease import Lease
    from memstate_pipeline.assets import publish as step

    aya, ben, url = machines
    replicas = {"MEMSTATE_PUBLISH_URL": f"file://{aya.parent}/replicas"}
    assert machine(ben, url, "publish", **replicas).code == 0
    assert there(replicas["MEMSTATE_PUBLISH_URL"]).numbers == [2]
    real = step.publish
    monkeypatch.setattr(Lease, "_renew", lambda _: None)

    def suspended(*given: object) -> object:
        monkeypatch.setattr(step, "publish", real)
        done = real(*given)  # type: ignore[arg-type]
        night(ben, url, 3)
        return done

    monkeypatch.setattr(step, "publish", suspended)
    assert run_memstate(aya, "maintain", "--now", NIGHTS[2], **settings(url), **replicas).code == 3
    assert there(replicas["MEMSTATE_PUBLISH_URL"]).numbers == [2]
    assert machine(aya, url, "maintain", "--now", NIGHTS[4], **replicas).code == 0
    assert there(replicas["MEMSTATE_PUBLISH_URL"]).numbers == [4, 2]


@pytest.mark.parametrize("after", [False, True])
def test_what_replicas_accepted_is_at_the_url_before_it_is_removed_there(
    machines: tuple[Path, Path, str], after: bool
) -> None:
    aya, ben, url = machines
    replicas = f"file://{aya.parent}/replicas"
    given = {"MEMSTATE_PUBLISH_URL": replicas, "MEMSTATE_PUBLISH_ACCEPT_WRITES": "true"}
    assert machine(ben, url, "publish", **given).code == 0
    leave(replicas, {"observation_id": "said-5", "topic_key": "yard", "observed_at": "2026-01-05", "text": "Shut."})
    script = KILL_AT.format(module="memstate_core.night.publication.fetch", name="_Look.remove", call=2, after=after)
    killed = warm.run(
        ["-c", script, "--home", str(aya), "maintain", "--now", NIGHTS[2]], clean_environment(**settings(url), **given)
    )
    assert killed.returncode == -signal.SIGKILL, killed.stdout + killed.stderr
    shutil.rmtree(aya)
    assert machine(ben, url, "maintain", "--now", NIGHTS[3], **given).code == 0
    assert observations(ben) == ["said-1", "said-2", "said-3", "said-4", "said-5"]
    assert names(replicas) == []


def test_dagster_holds_the_lease_too(machines: tuple[Path, Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    aya, ben, url = machines
    monkeypatch.setenv("MEMSTATE_STORE_URL", url)
    with dg.DagsterInstance.ephemeral() as instance:
        job = build_defs(aya).resolve_job_def(IMPORT_INBOX)
        assert job.execute_in_process(instance=instance).success
    assert state_number(url) > 0
    assert machine(ben, url, "pull").code == 0
    assert observations(ben) == ["said-1", "said-2", "said-3"]


def test_status_says_which_state_is_here(machines: tuple[Path, Path, str]) -> None:
    aya, ben, url = machines
    assert run_memstate(aya, "status", "--json").document["checkout"] is None
    number = state_number(url)
    status = machine(ben, url, "status", "--json").document["checkout"]
    assert (status["url"], status["state"], status["unsent"]) == (url, number, False)
    behind = machine(aya, url, "status")
    assert f"checkout: state {number - 3} of {url}\n" in behind.stdout
    script = KILL_AT.format(module=LEASE, name="Lease.commit", call=2, after=False)
    given = clean_environment(**settings(url))
    warm.run(["-c", script, "--home", str(aya), "maintain", "--now", NIGHTS[2]], given)
    killed = machine(aya, url, "status")
    assert f"of {url}, with changes here that were not sent\n" in killed.stdout


def test_doctor_says_where_a_checkout_is(machines: tuple[Path, Path, str]) -> None:
    aya, _, url = machines
    assert remote_store(open_store(aya, {})).detail.startswith("the store is this home")
    behind = remote_store(open_store(aya, {"MEMSTATE_STORE_URL": url}))
    number = state_number(url)
    assert f"has state {number}, this home state {number - 3}; nobody writes" in behind.detail
    assert behind.ok
    storage(url, STORE).write("inbox/dump.jsonl", b"")
    waiting = remote_store(open_store(aya, {"MEMSTATE_STORE_URL": url}))
    assert waiting.detail == f"{behind.detail}; dumps that wait below inbox/ for the next command that writes: 1"
    other = remote_store(open_store(aya, {"MEMSTATE_STORE_URL": url, "MEMSTATE_STORE_SHARDS": "2"}))
    assert (other.ok, "it has 1 shard, the settings of this home 2" in other.detail) == (False, True)
