"""Backups on servers that speak the protocols of S3 and Azure: incremental, checked, whole after kills, restored."""

from __future__ import annotations

from pathlib import Path

import obstore
import pytest
from obstore.store import ObjectStore, from_url

from memstate_core.model.errors import BackupDamaged, BackupUnreachable, ConditionalPutsIgnored
from memstate_core.night.backup.back_up import back_up, last_backup
from memstate_core.night.backup.folder import BackupFolder
from memstate_core.night.backup.restore import restore_backup
from memstate_core.night.backup.verify import verify_backups
from memstate_core.run.store import Store
from memstate_core.storage.storage import object_name, storage
from tests.core.night.backup.conftest import AT, failures, rows
from tests.core.night.backup.test_restore import killed
from tests.core.storage.azure import KEY, empty_container
from tests.core.storage.s3 import SECRET, Faults, empty_bucket
from tests.pipeline.conftest import run_memstate

pytestmark = pytest.mark.slow
URL = "s3://bucket/of a store"


@pytest.fixture
def bucket(s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    empty_bucket(s3_endpoint, monkeypatch)
    return from_url(URL)


@pytest.fixture(params=["s3", "az"])
def where(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "az":
        return f"{empty_container(request.getfixturevalue('azure_endpoint'), monkeypatch)}/of a store"
    empty_bucket(request.getfixturevalue("s3_endpoint"), monkeypatch)
    return URL


def names(bucket: ObjectStore) -> set[str]:
    return {each["path"] for page in obstore.list(bucket) for each in page}


def test_a_store_comes_back_from_object_storage(where: str, store: Store, restored: Path) -> None:
    home, bucket = store.home.root, from_url(where)
    sends = ("memstate_core.storage.cloud", "object_name", 30, True)
    killed(sends, home, "backup", where)
    sent = names(bucket)
    assert {name.partition("/")[0] for name in sent} == {"objects", "backup.lock"}

    first = run_memstate(home, "backup", where, "--json")
    assert first.code == 0, first.stderr
    assert first.document["reused"]["files"] >= len(sent) - 1
    assert names(bucket) > sent - {"backup.lock"}
    again, copying, _ = back_up(store, where, AT)
    assert (again.number, len(copying.sent)) == (2, 0)
    note = last_backup(store.home)
    assert note is not None
    assert (note.number, note.folder) == (2, where)

    (home / "inbox" / "more.jsonl").write_bytes(rows(4))
    (home / "inbox" / "waiting.jsonl").unlink()
    killed(("memstate_core.night.backup.folder", "_list_name", 4, False), home, "backup", where, "--keep", "1")
    third = run_memstate(home, "backup", where, "--keep", "1", "--json")
    assert third.code == 0, third.stderr
    assert third.document["removed"] == [1, 2]
    kept = BackupFolder(where).read()
    assert names(bucket) == {"backups/3.json", *(object_name(file.sha256) for file in kept.files)}

    verdicts = run_memstate(home, "verify", "--backup", where, "--deep", "--json")
    assert verdicts.document["passed"], verdicts.stdout
    assert run_memstate(restored, "restore-backup", where).code == 0
    assert failures(restored) == []
    assert (restored / "inbox" / "more.jsonl").read_bytes() == rows(4)
    texts = [path.read_bytes() for path in home.rglob("*") if path.is_file()]
    assert not any(
        secret.encode() in text for secret in (SECRET, KEY) for text in [*texts, (first.stdout + first.stderr).encode()]
    )


def test_damage_and_silence_of_a_bucket_are_named(
    bucket: ObjectStore, store: Store, restored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, _, _ = back_up(store, URL, AT)
    changed, missing = (object_name(made.files[number].sha256) for number in (0, -1))
    obstore.put(bucket, changed, b"other bytes")
    obstore.delete(bucket, missing)
    (verdicts,) = verify_backups(URL, deep=False).values()
    assert f"{changed} has SHA-256" in verdicts[1].detail
    with pytest.raises(BackupDamaged, match=f"{missing} is missing"):
        restore_backup(URL, restored)
    assert not restored.exists()

    _, copying, _ = back_up(store, URL, AT)
    assert len(copying.sent) == 2
    (*_, (_, digests)) = verify_backups(URL, deep=False).values()
    assert digests.passed

    with pytest.raises(BackupUnreachable, match="does not exist") as absent:
        back_up(store, "s3://no-such-bucket/x", AT)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(BackupUnreachable, match="HTTP error") as silent:
        restore_backup(URL, restored)
    assert not any(SECRET in str(error.value) for error in (absent, silent))
    assert not restored.exists()


def test_no_backup_is_made_where_conditions_of_puts_are_ignored(s3_faults: Faults, store: Store) -> None:
    s3_faults.left_out = ("if-match", "if-none-match")
    with pytest.raises(ConditionalPutsIgnored):
        back_up(store, URL, AT)
    assert storage(URL).listed("") == {}
    s3_faults.none()
    back_up(store, URL, AT)
    s3_faults.seen.clear()
    back_up(store, URL, AT)
    assert [each for each in s3_faults.seen if "probe-" in each] == []
