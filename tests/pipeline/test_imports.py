"""The inbox between nights: the sensor's job imports and leaves no run behind, and the next page covers it."""

from __future__ import annotations

import json
from pathlib import Path

import dagster as dg
import pytest

from memstate_core.model.text import parse_moment
from memstate_core.run.store import Store, open_store
from memstate_core.state.lock import exclusive
from memstate_pipeline.assets.common import WRITER_POOL
from memstate_pipeline.definitions import build_defs
from memstate_pipeline.instance import dagster_instance
from memstate_pipeline.nights import IMPORT_INBOX
from memstate_pipeline.run import maintain
from tests.core.serve.conftest import serving_process
from tests.pipeline.conftest import NIGHT, run_memstate

pytestmark = pytest.mark.usefixtures("no_settings")
EVIDENCE = dg.AssetKey("evidence")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store with one good row, one bad row and one damaged file in its inbox."""
    store = open_store(tmp_path / "home")
    store.home.inbox.mkdir(parents=True)
    (store.home.inbox / "rows.jsonl").write_text('{"text": "The yard is open."}\nnot json\n')
    (store.home.inbox / "cut.jsonl.gz").write_bytes(b"\x1f\x8bnot really")
    return store


def import_inbox(store: Store, instance: dg.DagsterInstance) -> dg.ExecuteInProcessResult:
    return build_defs(store.home.root).resolve_job_def(IMPORT_INBOX).execute_in_process(instance=instance)


@pytest.mark.slow
def test_an_import_leaves_no_run_and_shows_what_it_refused(store: Store) -> None:
    with dagster_instance(store.home) as instance:
        done = import_inbox(store, instance)
        (observed,) = instance.fetch_observations(EVIDENCE, limit=10).records
        (checked,) = instance.event_log_storage.get_asset_check_execution_history(
            dg.AssetCheckKey(EVIDENCE, "dumps_readable"), limit=10
        )
    assert done.success
    assert store.ledger.count("evidence") == 1
    assert not store.home.work("s0").exists()
    metadata = observed.asset_observation.metadata if observed.asset_observation else {}
    assert (metadata["accepted"].value, metadata["quarantined"].value) == (1, 1)
    assert metadata["reasons"].value == {"broken_json": 1}
    assert checked.status.value == "FAILED"
    assert "cut.jsonl.gz" in str(metadata["unreadable"].value)


@pytest.mark.slow
def test_a_server_reports_no_unpublished_run_after_an_import(store: Store) -> None:
    night = maintain(store, parse_moment(NIGHT))
    (store.home.inbox / "later.jsonl").write_text('{"text": "The yard is shut."}\n')
    with dagster_instance(store.home) as instance:
        import_inbox(store, instance)
    assert store.ledger.count("evidence") == 2
    with serving_process(store.home.root) as (client, _):
        ready = client.until_ready().get("/readyz").document
    assert (ready["status"], ready["unpublished_run"]) == ("ready", None)
    assert ready["last_run"]["run_id"] == night.summary["run_id"]


@pytest.mark.slow
def test_the_next_page_covers_imports_since_the_last(store: Store) -> None:
    with dagster_instance(store.home) as instance:
        import_inbox(store, instance)
        (store.home.inbox / "later.jsonl").write_text("neither\n")
        import_inbox(store, instance)
    first = maintain(store, parse_moment(NIGHT))
    assert first.summary["ingest"] | {"errors": []} == {
        "read": 3, "accepted": 1, "duplicate": 0, "quarantined": 2, "reasons": {"broken_json": 2}, "errors": [],
    }  # fmt: skip
    assert first.summary["counts"]["evidence"] == 1
    assert "cut.jsonl.gz" in json.dumps(first.summary["warnings"])
    assert "2 quarantined" in first.pages[0].read_text()
    second = maintain(store, parse_moment(NIGHT))
    assert (second.summary["ingest"]["read"], second.summary["warnings"]) == (0, [])


@pytest.mark.slow
@pytest.mark.parametrize("shards", ["1", "2"])
def test_a_night_says_what_it_could_not_read(store: Store, shards: str) -> None:
    home, settings = store.home.root, {"MEMSTATE_STORE_SHARDS": shards}
    answer = run_memstate(home, "maintain", "--now", NIGHT, "--json", **settings)
    assert answer.code == 0, answer.stderr
    assert (answer.document["ingest"]["quarantined"], len(answer.document["warnings"])) == (1, 1)
    (warning,) = answer.document["warnings"]
    assert "cut.jsonl.gz: cannot be read" in warning
    (home / "inbox" / "more.jsonl").write_text("neither\nnor\n")
    (home / "inbox" / "random.zip").write_bytes(b"PK\x03\x04nothing")
    said = run_memstate(home, "maintain", "--now", "2026-04-07T02:00:00Z", **settings).stdout
    assert "2 rows quarantined (2 broken_json); `memstate quarantine` lists them" in said
    assert said.count("warning: ") == 1
    assert "random.zip: cannot be read" in said


@pytest.mark.slow
def test_a_folder_in_the_inbox_is_named_until_it_is_gone(store: Store) -> None:
    home = store.home.root
    (store.home.inbox / "cut.jsonl.gz").unlink()
    for name in ("sub/deeper", "empty", ".hidden"):
        (store.home.inbox / name).mkdir(parents=True)
    (store.home.inbox / "sub" / "deeper" / "x.jsonl").write_text('{"text": "Never read."}\n')
    (store.home.inbox / ".hidden" / "x.jsonl").write_text("{}")
    said = run_memstate(home, "maintain", "--now", NIGHT).stdout
    named = "inbox/sub is a folder, which no run reads: move its files into the inbox"
    assert f"warning: {named}" in said
    assert said.count("is a folder") == 1
    assert named in json.dumps(run_memstate(home, "status", "--json").document["warnings"])
    doctor = run_memstate(home, "doctor", "--json").document
    assert [named in row["detail"] for row in doctor if row["name"] == "refused input"] == [True]
    (store.home.inbox / "sub" / "deeper" / "x.jsonl").rename(store.home.inbox / "x.jsonl")
    after = run_memstate(home, "maintain", "--now", "2026-04-07T02:00:00Z", "--json").document
    assert (after["ingest"]["accepted"], after["warnings"]) == (1, [])


@pytest.mark.slow
def test_the_check_warns_until_the_files_that_failed_are_dealt_with(store: Store) -> None:
    passed = []
    for _ in range(3):
        maintain(store, parse_moment(NIGHT))
        with dagster_instance(store.home) as instance:
            key = dg.AssetCheckKey(EVIDENCE, "dumps_readable")
            (last,) = instance.event_log_storage.get_asset_check_execution_history(key, limit=1)
        passed.append(last.status.value)
        if len(passed) == 2:
            (store.home.failed / "cut.jsonl.gz").unlink()
    assert passed == ["FAILED", "FAILED", "SUCCEEDED"]


@pytest.mark.slow
def test_an_import_is_refused_while_a_night_holds_the_store(store: Store) -> None:
    job = build_defs(store.home.root).resolve_job_def(IMPORT_INBOX)
    assert {node.definition.pool for node in job.nodes if isinstance(node.definition, dg.OpDefinition)} == {WRITER_POOL}
    with exclusive(store.home.lock, "a night"), dg.DagsterInstance.ephemeral() as instance:
        assert not job.execute_in_process(instance=instance, raise_on_error=False).success
    assert (store.home.inbox / "rows.jsonl").exists()
