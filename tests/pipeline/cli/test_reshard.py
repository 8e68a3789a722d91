"""`memstate reshard`: up and down, served throughout, killed at each step, and refused."""

from __future__ import annotations

import shutil
import signal
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
import pytest

from memstate_core.model.errors import ReshardMismatch, ShardRetired
from memstate_core.model.scope import Layout
from memstate_core.night.resharding import compare
from memstate_core.run.store import open_store
from memstate_core.state.files import replace_file
from memstate_core.state.fold.decisions import MATCH_MODEL, PUBLISHED, READMITTED, RESHARDED, SET_ASIDE
from memstate_pipeline.definitions import build_defs
from memstate_pipeline.instance import dagster_instance
from memstate_pipeline.nights import NIGHTLY
from memstate_pipeline.resources import NOW_TAG
from memstate_pipeline.schedules import nightly_schedule
from tests import warm
from tests.core.serve.conftest import Client, serving_process
from tests.pipeline.conftest import clean_environment, run_memstate, shared
from tests.pipeline.sharded_homes import (
    NIGHTS,
    SCOPES,
    SETTINGS,
    begun,
    decisions,
    done,
    imported,
    lived,
    scope_states,
    snapshots,
    topics,
    verified,
)
from tests.pipeline.test_checkout import KILL_AT

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_settings")]
LATER = ["2026-04-20T02:00:00Z", "2026-04-21T02:00:00Z", "2026-04-22T02:00:00Z"]
RESHARD, SWITCH = "memstate_core.night.resharding.reshard", "memstate_core.night.resharding.switch"
DRAFTS = "memstate_core.night.resharding.drafts"
OLD, NEW = "s0/7", "r1s0of2/1,r1s1of2/1"
POINTS = {
    "with the marker": (RESHARD, "mark", 1, True, OLD),
    "while a shard is folded": (DRAFTS, "refuse_violations", 2, False, OLD),
    "with one shard built": (RESHARD, "built", 1, True, OLD),
    "with all shards verified": (RESHARD, "switch", 1, False, OLD),
    "with one CURRENT": (SWITCH, "move_current", 1, True, OLD),
    "before the commit": ("memstate_core.state.ledger.ledger", "Ledger.append", 1, False, OLD),
    "with a commit that the chain lacks": ("memstate_core.state.ledger.keeper", "Keeper.record", 1, False, OLD),
    "with the commit": (SWITCH, "_complete", 1, False, OLD),
    "with the layout": (SWITCH, "write_layout", 1, True, NEW),
    "with the settings": (SWITCH, "replace_file", 2, True, NEW),
}


@pytest.fixture(scope="session")
def lived_one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shared(tmp_path_factory, "reshard-one", lambda home: (lived(begun(home, 1)), None)[1])


@pytest.fixture
def one(lived_one: Path, tmp_path: Path) -> Path:
    """A store of one shard."""
    return Path(shutil.copytree(lived_one, tmp_path / "one"))


def answers(home: Path) -> list[Any]:
    """What queries of every scope say, but for the names of snapshots."""
    texts = ("Who owns the quartz lagoon harvest?", "Is the gate of the old ferry yard open?")
    found = [done(home, "query", text, "--scope", scope) for text in texts for scope in SCOPES]
    return [{name: value for name, value in each.items() if name != "snapshot"} for each in found]


def times(home: Path) -> dict[Path, int]:
    """When each file of a store was changed, those of Dagster and locks apart."""
    files = (path for path in home.rglob("*") if path.is_file() and "dagster" not in path.parts)
    return {path: path.stat().st_mtime_ns for path in files if path.suffix != ".lock"}


def night_of(home: Path, shard: str, now: str) -> None:
    """The night of one shard alone."""
    with dagster_instance(open_store(home).home) as instance:
        job = build_defs(home).resolve_job_def(NIGHTLY)
        assert job.execute_in_process(partition_key=shard, instance=instance, tags={NOW_TAG: now}).success


def last_night(home: Path) -> dict[str, str]:
    imported(home, 3)
    done(home, "maintain", "--now", LATER[1])
    verified(home)
    return scope_states(home)


def test_up_and_down_give_what_stores_had_that_began_so(one: Path, tmp_path: Path) -> None:
    four = lived(begun(tmp_path / "four", 4))
    before, said, recorded = scope_states(one), answers(one), decisions(open_store(one, {}))
    assert before == scope_states(four)
    up = done(one, "reshard", "4")
    assert (up["before"], up["shards"], up["scopes"], up["kept"]) == (1, 4, len(SCOPES), 0)
    assert up["snapshot"] == "r1s0of4/1,r1s1of4/1,r1s2of4/1,r1s3of4/1"
    assert (scope_states(one), answers(one)) == (before, said)
    rows = decisions(open_store(one, {}))
    assert rows.head(recorded.height).equals(recorded)
    assert rows.tail(-recorded.height)["kind"].to_list() == [RESHARDED, PUBLISHED] * 4
    assert "shards = 4  # as it began" in (one / "memstate.toml").read_text()
    verified(one)
    assert done(one, "rebuild")["same_state"]

    down = done(four, "reshard", "1")
    (last,) = [each.manifest.state_hash for each in snapshots(four)]
    assert (down["snapshot"], down["state_hash"]) == ("r1s0of1/1", last)
    assert (scope_states(four), answers(four)) == (before, said)
    verified(four)

    assert last_night(one) == last_night(four)
    listed = [
        sorted((merge["scope"], merge["undone"]) for merge in done(home, "merges", "--all")["merges"])
        for home in (one, four)
    ]
    assert listed[0] == listed[1] != []
    for home in (one, four):
        assert sorted(path.name for path in (home / "snapshots").iterdir() if path.is_dir()) == open_store(home).shards
    (merge, *_) = done(one, "merges")["merges"]
    done(one, "undo", merge["id"], "--now", LATER[2])
    again = done(one, "reshard", "2")
    assert again["snapshot"] == "r2s0of2/1,r2s1of2/1"
    verified(one)
    assert merge["id"] not in {each["id"] for each in done(one, "merges")["merges"]}
    refused = run_memstate(one, "rollback", "--shard", "r2s0of2", "--json")
    assert (refused.code, refused.document["error"]["type"]) == (1, "RollbackRefused")


def test_a_server_answers_throughout_and_switches_by_itself(one: Path) -> None:
    pinned = topics(one)[SCOPES[1], "Spring budget u1"]
    asked, failed, ended = list[tuple[str, str]](), list[Any](), threading.Event()

    def ask(client: Client) -> None:
        while not ended.is_set():
            answer = client.post("/v1/query", {"q": "Spring budget", "scope": [SCOPES[1]]})
            found = answer.document
            if answer.status == 200 and found["candidates"]:
                asked.append((found["snapshot"], found["candidates"][0]["topic_id"]))
            else:
                failed.append(found)

    with serving_process(one, "--no-record") as (client, _):
        client.until_ready()
        thread = threading.Thread(target=ask, args=(client,))
        thread.start()
        try:
            done(one, "reshard", "2")
            deadline = threading.Event()
            for _ in range(200):
                if any(name == NEW for name, _ in asked):
                    break
                deadline.wait(0.1)
            done(one, "maintain", "--now", LATER[1])  # which removes the snapshots of the shard before
            deadline.wait(3)
        finally:
            ended.set()
            thread.join()
        ready = client.get("/readyz")
    assert (failed, {topic for _, topic in asked}) == ([], {pinned})
    names = list(dict.fromkeys(name for name, _ in asked))
    assert names[:2] == [OLD, NEW]
    assert all(name.startswith("r1") for name in names[1:])
    assert (ready.status, ready.document["snapshot"].partition("/")[0]) == (200, "r1s0of2")


@pytest.mark.parametrize("point", POINTS)
def test_a_kill_leaves_the_old_shards_or_the_new_ones(one: Path, point: str) -> None:
    before, recorded = scope_states(one), decisions(open_store(one, {}))
    module, name, call, after, serves = POINTS[point]
    script = KILL_AT.format(module=module, name=name, call=call, after=after)
    killed = warm.run(["-c", script, "--home", str(one), "reshard", "2"], clean_environment())
    assert killed.returncode == -signal.SIGKILL, killed.stdout + killed.stderr
    assert (done(one, "status")["snapshot"], scope_states(one)) == (serves, before)
    goes_on = [*POINTS].index(point) % 2 == 0
    if goes_on:
        again = done(one, "reshard", "2")
        assert again["completed"] == (serves == NEW or "commit that" in point)
        assert again.get("kept", 0) == {"with one shard built": 1, "with one CURRENT": 2}.get(point, 0)
        assert scope_states(one) == before
    assert done(one, "maintain", "--now", LATER[1])["counts"]["accesses"] == 1
    committed = goes_on or [*POINTS].index(point) > [*POINTS].index("before the commit")
    assert [each.manifest.shard for each in snapshots(one)] == (["r1s0of2", "r1s1of2"] if committed else ["s0"])
    assert decisions(open_store(one, {})).head(recorded.height).equals(recorded)
    verified(one)
    kept = {path.name for path in (one / "snapshots").iterdir()} - {"layout.json"}
    assert kept == {*open_store(one, {}).shards}
    assert not (one / ".reshard.json").exists() or not committed
    assert ("shards = 2" in (one / "memstate.toml").read_text()) == committed


def test_rows_that_one_shard_had_not_read_wait_for_the_night(tmp_path: Path) -> None:
    home = begun(tmp_path / "two", 2)
    imported(home, 0)
    done(home, "maintain", "--now", NIGHTS[0])
    late = next(scope for scope in SCOPES if Layout(2).of(scope) == "s0")
    yard = topics(home)[late, f"Old Ferry Yard {late.partition(':')[2]}"]
    imported(home, 1)
    done(home, "feedback", yard, "--used", "--now", NIGHTS[1])
    night_of(home, "s1", NIGHTS[1])
    without = Path(shutil.copytree(home, tmp_path / "without"))
    before = scope_states(home)
    done(home, "reshard", "1")
    assert scope_states(home) == before
    own = sum(Layout(2).of(scope) == "s0" for scope in SCOPES)
    waiting = decisions(open_store(home, {})).filter(pl.col("kind") == SET_ASIDE)
    assert waiting.height == own * 3 + 1, "topics, duplicates and turns of the night, and the feedback"
    verified(home)
    for each in (home, without):
        done(each, "maintain", "--now", NIGHTS[2])
        verified(each)
    assert scope_states(home) == scope_states(without)
    readmitted = decisions(open_store(home, {})).filter(pl.col("kind") == READMITTED)
    assert readmitted.height == waiting.height
    assert done(home, "maintain", "--now", NIGHTS[3])["counts"]["evidence"] == 0
    assert decisions(open_store(home, {})).filter(pl.col("kind") == READMITTED).height == waiting.height


def test_what_a_rollback_undid_before_stays_undone(tmp_path: Path) -> None:
    home = begun(tmp_path / "one", 1)
    for night in range(2):
        imported(home, night)
        done(home, "maintain", "--now", NIGHTS[night])
    assert done(home, "merges")["merges"]
    done(home, "rollback", "--now", NIGHTS[2])
    before = scope_states(home)
    done(home, "reshard", "2")
    assert (scope_states(home), done(home, "merges")["merges"]) == (before, [])
    done(home, "reshard", "1")
    assert scope_states(home) == before
    verified(home)
    assert done(home, "maintain", "--now", NIGHTS[3])["counts"]["evidence"] == len(SCOPES) * 3
    verified(home)
    assert done(home, "rollback", "1", "--now", NIGHTS[4])["state_of"]["snapshot"] == "r2s0of1/1"
    assert scope_states(home) == before
    verified(home)


def test_a_search_that_an_earlier_shard_owed_is_made(tmp_path: Path) -> None:
    home = begun(tmp_path / "two", 2)
    for night in range(2):
        imported(home, night)
        done(home, "maintain", "--now", NIGHTS[night])
    (merge, *_) = [each for each in done(home, "merges")["merges"] if Layout(2).of(each["scope"]) == "s0"]
    done(home, "undo", merge["id"], "--now", NIGHTS[1])
    imported(home, 2, [scope for scope in SCOPES if Layout(2).of(scope) == "s1"])
    night_of(home, "s1", NIGHTS[2])
    done(home, "reshard", "1")
    named = decisions(open_store(home, {})).filter(pl.col("kind") == RESHARDED)["scope"].to_list()
    assert named == [None, merge["scope"]]
    done(home, "maintain", "--now", NIGHTS[3])
    rows = decisions(open_store(home, {})).filter(pl.col("shard") == "r1s0of1", pl.col("kind") == MATCH_MODEL)
    assert rows["scope"].to_list() == [merge["scope"]]


def test_nothing_changes_where_it_is_refused(one: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = times(one)
    tried = done(one, "reshard", "4", "--dry-run")
    assert sum(each["scopes"] for each in tried["placed"].values()) == len(SCOPES)
    for given in ("0", "257"):
        assert run_memstate(one, "reshard", given).code == 2
    refused = run_memstate(one, "reshard", "4", MEMSTATE_STORE_SHARDS="4")
    assert (refused.code, "unset it first" in refused.stderr) == (2, True)
    same_number = run_memstate(one, "reshard", "1", "--json")
    assert (same_number.code, same_number.document["error"]["type"]) == (1, "ReshardRefused")
    earlier = run_memstate(one, "reshard", "4", "--now", NIGHTS[0], "--json")
    assert "before the state that is served" in earlier.document["error"]["message"]
    assert run_memstate(one.parent / "nothing", "reshard", "4").code == 1
    assert times(one) == before

    imported(one, 3)
    script = KILL_AT.format(module="memstate_core.night.publish", name="_record", call=1, after=False)
    killed = warm.run(["-c", script, "--home", str(one), "maintain", "--now", LATER[1]], clean_environment())
    assert killed.returncode == -signal.SIGKILL
    unfinished = run_memstate(one, "reshard", "4", "--json")
    assert "a run of s0 began and has not published" in unfinished.document["error"]["message"]
    done(one, "maintain", "--now", LATER[1])
    (one / "replica.json").write_text("{}")
    assert "the folder of a replica" in run_memstate(one, "reshard", "4", "--json").document["error"]["message"]
    (one / "replica.json").unlink()

    monkeypatch.setattr(compare, "scope_hashes", lambda tables: {scope: repr(tables) for scope in SCOPES})
    other = run_memstate(one, "reshard", "4", "--json")
    assert (other.code, other.document["error"]["type"]) == (4, ReshardMismatch.__name__)
    monkeypatch.undo()
    assert done(one, "status")["snapshot"].startswith("s0/")
    verified(one)


def test_an_erasure_counts_what_the_subject_had_before_and_after(one: Path) -> None:
    counted = done(one, "erase", "--scope", SCOPES[0], "--dry-run")["removed"]
    done(one, "reshard", "2")
    again = done(one, "erase", "--scope", SCOPES[0], "--dry-run")["removed"]
    assert (again["evidence"], again["transitions"]) == (counted["evidence"], counted["transitions"])
    nobody = run_memstate(one, "erase", "--actor", "Nobody", "--dry-run", "--json")
    assert (nobody.code, nobody.document["error"]["type"]) == (1, "SubjectNotFound")


def test_settings_with_another_number_are_refused_by_writers_alone(one: Path) -> None:
    done(one, "reshard", "2")
    file = one / "memstate.toml"
    replace_file(file, file.read_bytes().replace(b"shards = 2", b"shards = 3"))
    assert done(one, "query", "Old Ferry Yard")["snapshot"] == NEW
    assert "store.shards is 3, the store has 2 shards" in " ".join(run_memstate(one, "doctor").stdout.split())
    refused = run_memstate(one, "maintain", "--now", LATER[1], "--json")
    assert refused.code != 0
    assert "set it back, then `memstate reshard 3`" in refused.stdout + refused.stderr
    replace_file(file, file.read_bytes().replace(b"shards = 3", b"shards = 2"))
    done(one, "reshard", "3")
    assert len(snapshots(one)) == 3


def test_settings_with_another_number_are_refused_before_the_first_reshard_too(one: Path, tmp_path: Path) -> None:
    file, said = one / "memstate.toml", answers(one)
    replace_file(file, file.read_bytes().replace(b"shards = 1", b"shards = 4"))
    imported(one, 3)
    refused = run_memstate(one, "maintain", "--now", LATER[1], "--json")
    message = refused.document["error"]["message"]
    assert "store.shards = 4 is not allowed: the store has 1 shard; set it back, then `memstate reshard 4`" in message
    assert message.count("set it back") == 1, "once for all shards"
    assert message.endswith("then `memstate reshard 4` changes that. Published: none.")
    assert "store.shards is 4, the store has 1 shard:" in " ".join(run_memstate(one, "doctor").stdout.split())
    assert answers(one) == said
    replace_file(file, file.read_bytes().replace(b"shards = 4", b"shards = 1"))
    assert done(one, "maintain", "--now", LATER[1])["counts"]["evidence"] > 0
    done(one, "reshard", "4")
    verified(one)

    four = begun(tmp_path / "four", 4)
    imported(four, 0)
    replace_file(four / "memstate.toml", SETTINGS.format(shards=2).encode())
    done(four, "maintain", "--now", NIGHTS[0])
    assert [each.manifest.shard for each in snapshots(four)] == ["s0", "s1"], "nothing was published, so it may choose"
    before = answers(four)
    replace_file(four / "memstate.toml", SETTINGS.format(shards=1).encode())
    fewer = run_memstate(four, "maintain", "--now", NIGHTS[1], "--json")
    assert "the store has 2 shards; set it back" in fewer.document["error"]["message"]
    assert answers(four) == before


def test_a_first_night_that_published_only_some_shards_goes_on(tmp_path: Path) -> None:
    home = begun(tmp_path / "four", 4)
    imported(home, 0)
    night_of(home, "s1", NIGHTS[0])
    done(home, "maintain", "--now", NIGHTS[1])
    assert [each.manifest.shard for each in snapshots(home)] == ["s0", "s1", "s2", "s3"]
    verified(home)


def test_a_night_of_an_earlier_shard_says_so(one: Path) -> None:
    job = build_defs(one).resolve_job_def(NIGHTLY)
    schedule = nightly_schedule(open_store(one))
    done(one, "reshard", "2")
    with dagster_instance(open_store(one).home) as instance:
        failed = job.execute_in_process(partition_key="s0", instance=instance, raise_on_error=False)
    (event,) = failed.filter_events(lambda each: each.is_step_failure)
    assert "Restart `memstate ui`" in str(event.event_specific_data)
    assert not (one / "work" / "s0").exists()
    at = dg.build_schedule_context(scheduled_execution_time=datetime(2026, 4, 21, 2, tzinfo=UTC))
    with pytest.raises(dg.DagsterUserCodeExecutionError) as refused:
        schedule.evaluate_tick(at)
    assert isinstance(refused.value.__cause__, ShardRetired)
