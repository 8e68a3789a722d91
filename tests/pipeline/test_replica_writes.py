"""Nights and erasures take what replicas accepted; what fails at the URL is warned of and taken by the next night."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memstate_core.ingest.accesses.record import AccessRecord, heading, written
from memstate_core.run.store import Store, open_store
from memstate_core.serve.options import Options
from memstate_core.storage.purpose import INBOX
from memstate_core.storage.remote_inbox import put_once, waiting_objects
from memstate_core.storage.storage import storage
from memstate_pipeline.doctor.data import remote_inbox
from tests.core.night.backup.test_restore import killed
from tests.core.serve.conftest import ROWS, one_night, served, serving_process
from tests.core.serve.replica.test_writes import until
from tests.pipeline.conftest import Answer, run_memstate, shared

pytestmark = pytest.mark.slow
NIGHTS = ("2026-04-07T02:00:00Z", "2026-04-08T02:00:00Z", "2026-04-09T02:00:00Z")
INES = {"type": "user", "id": "ines"}
GATE: dict[str, Any] = {
    "topic_key": "yard",
    "scope": INES,
    "observed_at": "2026-04-06T00:00:00Z",
    "fields": [{"name": "gate", "value": "open"}],
    "actor": "Marta",
}


@pytest.fixture(scope="session")
def first_night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shared(tmp_path_factory, "night", one_night)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"file://{tmp_path}/published"


@pytest.fixture
def home(first_night: Path, tmp_path: Path, url: str) -> Path:
    """A store whose replicas take writes."""
    copy = Path(shutil.copytree(first_night, tmp_path / "home"))
    with (copy / "memstate.toml").open("a") as file:
        file.write(f'\n[publish]\nurl = "{url}"\naccept_writes = true\n')
    assert run_memstate(copy, "publish").code == 0
    return copy


def leave(url: str, *rows: dict[str, Any]) -> str:
    return put_once(storage(url, INBOX), "inbox", b"".join(json.dumps(row).encode() + b"\n" for row in rows))


def leave_access(url: str, topic_id: str) -> str:
    record = AccessRecord(topic_id=topic_id, at="2026-04-06T00:00:00Z", source="server", scope="user:ines")
    return put_once(storage(url, INBOX), "accesses", written(heading("a")) + written(record))


def names(url: str) -> list[str]:
    return [each.name for each in waiting_objects(storage(url, INBOX)).objects]


def opened(home: Path) -> Store:
    return open_store(home, {})


def evidence(home: Path) -> pl.DataFrame:
    return opened(home).ledger.scan("evidence").collect()


def maintain(home: Path, now: str) -> Answer:
    return run_memstate(home, "maintain", "--now", now, "--json")


def test_what_a_replica_acknowledged_is_in_the_next_snapshot(home: Path, url: str, tmp_path: Path) -> None:
    """Through the commands alone: a replica that is killed, two nights of the store, and the replica again."""
    (tmp_path / "replica").mkdir()
    options = ("--replica-of", url, "--accept-writes", "--follow-seconds", "0.1")
    with serving_process(tmp_path / "replica", *options) as (client, process):
        answer = client.until_ready().post("/v1/ingest", [GATE])
        topic = answer.document["topic_ids"][0]
        assert client.post("/v1/feedback", {"topic_id": topic, "used": True, "at": "2026-04-06"}).status == 202
        process.kill()
        process.wait()
    assert answer.status == 202
    for now in NIGHTS[:2]:
        assert maintain(home, now).code == 0
    assert names(url) == []
    assert evidence(home).filter(topic_key="yard").height == 2
    assert opened(home).ledger.count("accesses") == 1
    with serving_process(tmp_path / "replica", *options) as (client, _):
        client.until_ready()
        until(lambda: client.get(f"/v1/topics/{topic}").document["snapshot"] == "s0/3")
        fields = client.get(f"/v1/topics/{topic}").document["fields"]
        assert '"open"' in json.dumps(fields["gate"])


def test_a_night_goes_on_without_the_storage_and_says_so(home: Path, url: str, tmp_path: Path) -> None:
    leave(url, GATE)
    shutil.move(tmp_path / "published", tmp_path / "away")
    (tmp_path / "published").write_text("a file in the way")
    night = maintain(home, NIGHTS[0])
    assert night.code == 1
    assert "what replicas accepted could not be fetched" in night.stderr
    (page,) = (home / "reports").glob(f"{night.document['run_id']}-s0.json")
    assert any("could not be fetched" in warning for warning in json.loads(page.read_text())["warnings"])
    found = remote_inbox(opened(home), datetime.now(UTC))
    assert (found.ok, "never fetched" in found.detail) == (False, True)
    (tmp_path / "published").unlink()
    shutil.move(tmp_path / "away", tmp_path / "published")
    assert maintain(home, NIGHTS[1]).code == 0
    assert evidence(home).filter(topic_key="yard").height == 2
    found = remote_inbox(opened(home), datetime.now(UTC))
    assert (found.ok, "0 objects waited there" in found.detail) == (True, True)


POINTS = {
    "before an object is copied": ("memstate_core.night.publication.fetch", "keep_copy", 1, False),
    "after an object was copied": ("memstate_core.night.publication.fetch", "keep_copy", 1, True),
    "after the import": ("memstate_pipeline.inputs", "import_inbox", 1, True),
    "before the removal": ("memstate_pipeline.inputs", "release_writes", 1, False),
    "after the removal": ("memstate_pipeline.inputs", "release_writes", 1, True),
    "before the night publishes": ("memstate_pipeline.assets.publish", "publish", 1, False),
    "after the night published": ("memstate_pipeline.assets.publish", "publish", 1, True),
}


@pytest.mark.parametrize("point", POINTS)
def test_a_killed_night_loses_and_doubles_nothing(home: Path, url: str, point: str) -> None:
    leave(url, GATE)
    leave(url, GATE | {"topic_key": "bench", "text": "The bench is long."})
    leave_access(url, "yard")
    killed(POINTS[point], home, "maintain", "--now", NIGHTS[0])
    assert maintain(home, NIGHTS[1]).code == 0
    assert names(url) == []
    rows = evidence(home)
    assert sorted(rows["topic_key"]) == ["bench", "bench", "yard", "yard"]
    assert rows["evidence_id"].is_unique().all()
    assert opened(home).ledger.count("accesses") == 1
    assert opened(home).ledger.count("quarantine") == 0


def test_a_planned_night_imports_what_the_plan_knows(home: Path, url: str, tmp_path: Path) -> None:
    assert run_memstate(home, "plan", "--now", NIGHTS[0], "--output", str(tmp_path / "plan.json")).code == 0
    leave(url, GATE)
    assert run_memstate(home, "apply", str(tmp_path / "plan.json")).code == 0
    assert len(names(url)) == 1
    assert maintain(home, NIGHTS[1]).code == 0
    assert names(url) == []


def test_a_trial_takes_nothing(home: Path, url: str, tmp_path: Path) -> None:
    leave(url, GATE)
    assert run_memstate(home, "plan", "--now", NIGHTS[0], "--output", str(tmp_path / "plan.json")).code == 0
    assert len(names(url)) == 1
    assert evidence(home).height == len(ROWS)


def test_what_was_accepted_is_fetched_after_the_setting_is_gone(home: Path, url: str) -> None:
    assert run_memstate(home, "fetch-inbox").code == 0
    leave(url, GATE)
    settings = home / "memstate.toml"
    settings.write_text(settings.read_text().replace("accept_writes = true", "accept_writes = false"))
    assert maintain(home, NIGHTS[0]).code == 0
    assert names(url) == []


def test_an_erasure_looks_through_what_lies_there(home: Path, url: str, tmp_path: Path) -> None:
    """As through the inbox: what no run has read refuses it, what was read is removed everywhere."""
    leave(url, GATE)
    refused = run_memstate(home, "erase", "--actor", "Marta", "--yes")
    assert refused.code != 0
    assert maintain(home, NIGHTS[0]).code == 0
    leave(url, GATE | {"observed_at": "2026-04-07T00:00:00Z"})
    refused = run_memstate(home, "erase", "--actor", "Marta", "--yes")
    assert refused.code != 0
    assert "in the inbox quote it" in refused.stderr
    assert maintain(home, NIGHTS[1]).code == 0
    assert run_memstate(home, "erase", "--actor", "Marta", "--yes").code == 0
    assert names(url) == []
    held = [path for path in (*home.rglob("*"), *(tmp_path / "published").rglob("*")) if path.is_file()]
    assert [path for path in held if b"Marta" in path.read_bytes()] == []


def test_an_erasure_removes_copies_at_the_url(home: Path, url: str) -> None:
    """Also those whose removal failed before, and accesses that wait for the next night."""
    name = leave(url, GATE)
    assert maintain(home, NIGHTS[0]).code == 0
    (topic,) = evidence(home).filter(actor="Marta")["topic_key"]
    assert leave(url, GATE) == name
    leave_access(url, "yard")
    processed = [path.name for path in (home / "inbox" / "processed").glob("api-*")]
    assert any(name.partition("/")[2].removesuffix(".jsonl") in each for each in processed)
    assert run_memstate(home, "erase", "--actor", "Marta", "--yes").code == 0
    assert (topic, names(url)) == ("yard", [])


def test_an_erasure_is_refused_while_the_url_cannot_be_read(home: Path, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "published")
    (tmp_path / "published").write_text("a file in the way")
    refused = run_memstate(home, "erase", "--observation", "none", "--yes")
    assert refused.code == 1
    assert "cannot be looked through" in refused.stderr


def test_the_server_of_the_store_shows_the_last_fetch(home: Path, url: str) -> None:
    leave(url, GATE)
    assert run_memstate(home, "fetch-inbox").code == 0
    with served(opened(home), Options()) as client:
        state = client.until_ready().get("/readyz").document["fetch"]
        assert (state["waiting"], state["problem"]) == (1, None)
        metrics = client.get("/metrics").content.decode()
    assert "memstate_remote_inbox_objects 1.0" in metrics
    assert "memstate_fetch_failed 0.0" in metrics
    assert "memstate_fetch_age_seconds" in metrics
