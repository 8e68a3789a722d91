"""One damaged shard of two: answers come from the other one and say what is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memstate_core.client import MemoryClient
from memstate_core.model.errors import ShardsFailed
from memstate_core.model.scope import Layout
from memstate_core.model.text import parse_moment
from memstate_core.run.store import open_store
from memstate_core.state.files import file_digest
from memstate_core.state.ledger import read_once
from memstate_pipeline import run
from memstate_pipeline.doctor.examine import examine
from tests.core.serve.conftest import serving_process
from tests.pipeline.cli.test_care import night
from tests.pipeline.conftest import NIGHT, run_memstate

pytestmark = pytest.mark.slow

LOST, SOUND = (next(f"user:u{n}" for n in range(8) if Layout(2).of(f"user:u{n}") == shard) for shard in ("s0", "s1"))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("shards") / "home"
    home.mkdir()
    (home / "memstate.toml").write_text("[store]\nshards = 2\n")
    night(home, "shut")
    return home


@pytest.mark.parametrize("name", ["manifest.json", "topics.parquet", "scopes.parquet", "graph.kuzu"])
def test_the_sound_shard_answers_and_names_what_is_missing(home: Path, name: str) -> None:
    file = home / "snapshots" / "s0" / "1" / name
    exported = run_memstate(home, "export", "--json").document["topics"]
    topics = {topic["scope"]: topic["id"] for topic in exported}
    bytes_before = file.read_bytes()
    file.write_bytes(b"damaged")
    try:
        found = run_memstate(home, "query", "yard", "--json").document
        assert ([each["shard"] for each in found["missing_shards"]], found["snapshot"]) == (["s0"], "s1/1")
        assert {Layout(2).of(each["scope"]) for each in found["candidates"]} == {"s1"}
        assert "memstate rebuild" in run_memstate(home, "query", "yard").stdout
        assert "missing_shards" not in run_memstate(home, "query", "yard", "--scope", SOUND, "--json").document
        pack = run_memstate(home, "context", "yard", "--budget", "200", "--json").document
        assert [each["shard"] for each in pack["missing_shards"]] == ["s0"]
        assert run_memstate(home, "topic", topics[SOUND]).code == 0
        for command in (("query", "yard", "--scope", LOST), ("topic", topics[LOST])):
            refused = run_memstate(home, *command, "--json")
            assert (refused.code, refused.document["error"]["type"]) == (1, "SnapshotDamaged"), command
        for command in ("export", "merges"):
            refused = run_memstate(home, command, "--json")
            assert (refused.code, refused.document["error"]["type"]) == (1, "SnapshotDamaged"), command
        if name == "manifest.json":
            assert "s0/1 is damaged" in run_memstate(home, "status").stdout
    finally:
        file.write_bytes(bytes_before)


def test_a_server_answers_from_the_sound_shard(home: Path) -> None:
    file = home / "snapshots" / "s0" / "1" / "topics.parquet"
    bytes_before = file.read_bytes()
    file.write_bytes(b"damaged")
    try:
        with serving_process(home) as (client, _):
            ready = client.until_ready().get("/readyz").document
            assert ([each["shard"] for each in ready["missing_shards"]], ready["snapshot"]) == (["s0"], "s1/1")
            whole = client.post("/v1/query", {"q": "yard"}).document
            assert (len(whole["missing_shards"]), bool(whole["candidates"])) == (1, True)
            kind, _, number = LOST.partition(":")
            lost = client.post("/v1/query", {"q": "yard", "scope": {"type": kind, "id": number}})
            assert (lost.status, "memstate rebuild" in lost.document["detail"]) == (503, True), lost.document
            page = client.get("/v1/topics").document
            assert [each["shard"] for each in page["missing_shards"]] == ["s0"]
            assert {Layout(2).of(each["scope"]) for each in page["topics"]} == {"s1"}
            assert "missing_shards" not in client.get(f"/v1/topics?scope={SOUND}").document
            assert client.get(f"/v1/topics?scope={LOST}").status == 503
            with MemoryClient(client.url) as memory, pytest.warns(UserWarning, match="nothing of shard s0"):
                assert {Layout(2).of(each.scope) for each in memory.topics()} == {"s1"}
    finally:
        file.write_bytes(bytes_before)


def test_doctor_names_every_damaged_shard(home: Path) -> None:
    files = [home / "snapshots" / shard / "1" / "manifest.json" for shard in ("s0", "s1")]
    before = [file.read_bytes() for file in files]
    try:
        for file in files:
            file.write_bytes(b"damaged")
        (finding,) = (each for each in examine(str(home), parse_moment(NIGHT)) if each.name == "snapshot")
        assert ("s0/1 is damaged" in finding.detail, "s1/1 is damaged" in finding.detail) == (True, True)
    finally:
        for file, content in zip(files, before, strict=True):
            file.write_bytes(content)


def test_a_night_reads_the_ledger_once_and_finds_what_changes_between_shards(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []
    monkeypatch.setattr(read_once, "file_digest", lambda path: read.append(path) or file_digest(path))
    monkeypatch.setattr(read_once, "_SETTLED_NS", 0)
    store, now = open_store(home), parse_moment("2026-07-01T00:00:00Z")
    run.maintain(store, now)
    (evidence,) = (home / "ledger" / "evidence").glob("*.parquet")
    assert read.count(evidence) == 1

    bytes_before, run_shard = evidence.read_bytes(), run._run_shard

    def damaged_after(*given: Any) -> str:
        done = run_shard(*given)
        evidence.write_bytes(bytes_before[:-1] + b"?")
        return done

    monkeypatch.setattr(run, "_run_shard", damaged_after)
    with pytest.raises(ShardsFailed, match=r"evidence: .* has SHA-256") as failed:
        run.maintain(store, now)
    evidence.write_bytes(bytes_before)
    assert [*failed.value.facts["failed"]] == ["s1"]
