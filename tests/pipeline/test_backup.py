"""Backups made by processes while a server takes in observations and a night runs, and of a store at a URL."""

from __future__ import annotations

import tempfile
import threading
import time
from pathlib import Path

import pytest

from memstate_core.run.store import open_store
from tests import warm
from tests.core.night.backup.conftest import NIGHTS, failures, home, observations, prepared, topic
from tests.core.serve.conftest import Client, serving_process
from tests.pipeline import test_checkout as checkouts
from tests.pipeline.conftest import clean_environment, fork_memstate, run_memstate
from tests.pipeline.test_checkout import drop, everywhere, machine, machines, made, night

__all__ = ["home", "machines", "made", "prepared"]
pytestmark = pytest.mark.slow


class Writer(threading.Thread):
    """Writes observations, each with feedback on a topic, until it is stopped."""

    def __init__(self, client: Client, token: str) -> None:
        super().__init__()
        self._client, self._key = client, f"Bearer {token}"
        self.acknowledged: list[str] = []
        self.ended = threading.Event()

    def run(self) -> None:
        while not self.ended.is_set():
            name = f"api-{len(self.acknowledged)}"
            body = {"observation_id": name, "scope": {"type": "user", "id": "aya"}, "title": name}
            body["observed_at"] = "2026-04-01T00:00:00Z"
            answer = self._client.post("/v1/ingest", body, Authorization=self._key)
            assert answer.status == 202, answer.content
            self.acknowledged.append(name)
            time.sleep(0.05)


def test_every_acknowledged_row_is_in_a_backup_made_meanwhile(home: Path, tmp_path: Path) -> None:
    token = run_memstate(home, "keys", "add", "writer", "--all-scopes", "--role", "write").stdout.split()[0]
    folder, begun = tmp_path / "backups", []
    with serving_process(home) as (client, _), tempfile.TemporaryFile() as output:
        client.until_ready()
        writer = Writer(client, token)
        writer.start()
        used = {"topic_id": topic(), "used": True, "at": "2026-04-07T00:00:00Z"}
        assert client.post("/v1/feedback", used, Authorization=f"Bearer {token}").status < 300
        arguments = ["-m", "memstate_pipeline", "--home", str(home), "maintain", "--now", NIGHTS[2]]
        night = warm.Process(arguments, clean_environment(), output, output)
        while night.returncode is None and len(begun) < 4:
            before = list(writer.acknowledged)
            running = (home / "run.holder.json").exists()
            answer = fork_memstate(home, "backup", str(folder), "--json")
            assert answer.code == 0, answer.stderr
            begun.append((answer.document["backup"], before, running and (home / "run.holder.json").exists()))
        assert night.wait(120) == 0
        writer.ended.set()
        writer.join()
    assert any(during for *_, during in begun), begun
    last = [each for each in begun if each[2]][-1]
    for number, before, _ in (begun[0], last):
        restored = tmp_path / str(number)
        assert run_memstate(restored, "restore-backup", str(folder), "--backup", str(number)).code == 0
        assert failures(restored) == []
        done = run_memstate(restored, "maintain", "--now", NIGHTS[2])
        assert done.code == 0, done.stderr
        assert observations(restored).issuperset(["aya-3", *before])
        assert open_store(restored, {}).ledger.count("accesses") == 1
        assert failures(restored) == []
    assert len(last[1]) > 0
    with serving_process(restored) as (client, _):
        client.until_ready()
        assert client.get("/v1/topics", Authorization=f"Bearer {token}").status == 200
        assert client.get("/v1/topics", Authorization=f"Bearer {token}x").status == 401


@everywhere
def test_a_backup_from_a_stale_checkout_is_of_the_state_at_the_url(
    machines: tuple[Path, Path, str], tmp_path: Path
) -> None:
    """It has what was acknowledged on another machine, in a night and since then, and what waits in the inbox here."""
    aya, ben, url = machines
    made_there = night(ben, url, 2)
    drop(tmp_path, 5)
    assert machine(ben, url, "import", str(tmp_path / "inbox" / "5.jsonl")).code == 0
    assert checkouts.observations(aya) == ["said-1"], "the checkout is stale"
    folder, restored = str(tmp_path / "backups"), tmp_path / "restored"
    backed_up = machine(aya, url, "backup", folder, "--json")
    assert (backed_up.code, backed_up.document["state_hash"]) == (0, made_there), backed_up.stderr
    assert run_memstate(restored, "verify", "--backup", folder, "--deep").code == 0
    assert run_memstate(restored, "restore-backup", folder).code == 0
    assert run_memstate(restored, "verify", "--deep").code == 0
    assert run_memstate(restored, "status", "--json").document["checkout"] is None
    assert checkouts.observations(restored) == ["said-1", "said-2", "said-4", "said-5"]
    again = run_memstate(restored, "maintain", "--now", checkouts.NIGHTS[3], "--json")
    assert (again.code, again.document["state_hash"]) == (0, night(aya, url, 3)), again.stderr
    assert checkouts.observations(restored) == ["said-1", "said-2", "said-3", "said-4", "said-5"]
    assert run_memstate(restored, "verify", "--deep").code == 0
