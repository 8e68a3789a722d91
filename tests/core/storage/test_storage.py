"""Addresses of backups: folders, URLs, and what is refused without showing a secret."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from memstate_core.model.errors import BackupRefused, BackupUnreachable, CloudUnavailable
from memstate_core.storage.cloud import CloudStorage
from memstate_core.storage.folder import FolderStorage
from memstate_core.storage.storage import storage


@pytest.mark.parametrize("address", ["{}/a b", "file://{}/a%20b", "file://localhost{}/a%20b"])
def test_a_folder_has_a_path_or_a_file_url(tmp_path: Path, address: str) -> None:
    found = storage(address.format(tmp_path))
    assert isinstance(found, FolderStorage)
    assert found.where == str(tmp_path / "a b")


@pytest.mark.parametrize("address", ["s3://bucket", "s3://bucket/a b/c/", "gs://bucket/c", "az://container/c"])
def test_a_bucket_has_a_url(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
    found = storage(address)
    assert isinstance(found, CloudStorage)
    assert found.where == address.rstrip("/")


@pytest.mark.parametrize(
    "address",
    ["s3:/bucket/c", "s3://", "http://host/c", "file://host/c", "s3://key:hidden@bucket/c", "az://c/d?sig=hidden"],
)
def test_other_addresses_are_refused(address: str) -> None:
    with pytest.raises(BackupRefused) as caught:
        storage(address)
    assert "hidden" not in caught.value.message


def test_settings_that_lack_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)
    with pytest.raises(BackupUnreachable, match=r"az://container/c failed: .*Account must be specified\. No backup"):
        storage("az://container/c")


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    with pytest.raises(CloudUnavailable, match=r"memstate\[cloud\]"):
        storage("s3://bucket/c")
