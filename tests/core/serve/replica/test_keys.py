"""Replicas accept the keys of the store, of which nothing but hashes is published."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import obstore
import pytest
from obstore.store import from_url

from memstate_core.night.publication.keys import publish_keys
from memstate_core.night.publication.upload import publish_to
from memstate_core.policy.settings import PublishSettings, Settings, StoreSettings
from memstate_core.run.store import Store
from memstate_core.serve.auth import key_file
from memstate_core.serve.auth.key_file import hashed
from memstate_core.serve.options import Options
from memstate_core.state.home import Home
from tests.core.serve.auth.test_keys import made
from tests.core.serve.conftest import Client, Publish, served, serving_process
from tests.core.serve.snapshots.test_swap import edition
from tests.core.storage.s3 import Faults
from tests.pipeline.conftest import run_memstate

pytestmark = pytest.mark.slow
URL = "s3://bucket/store"
OPTIONS = Options(replica_of=URL, poll_seconds=0.02, follow_seconds=0.05)


@pytest.fixture
def store(tmp_path: Path, publish: Publish, s3_faults: Faults) -> Store:  # noqa: ARG001, the bucket
    store = publish(tmp_path / "home", edition(1))
    publish_to(store, URL)
    return store


def until(holds: Callable[[], bool], seconds: float = 10) -> None:
    ends = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.02)


def status(client: Client, token: str) -> int:
    return client.get("/v1/topics", X_API_Key=token).status


def command(store: Store, *arguments: str) -> tuple[int, dict[str, str]]:
    done = run_memstate(store.home.root, "keys", *arguments, "--json", MEMSTATE_PUBLISH_URL=URL)
    return done.code, done.document


def test_a_replica_takes_the_keys_of_the_store_and_its_own(tmp_path: Path, store: Store, s3_faults: Faults) -> None:
    local = Store(Home(tmp_path / "server"), Settings())
    local.home.root.mkdir()
    (own, own_token), _ = made("own", 7), key_file.add(local.home.keys, made("own", 7).key)
    with served(local, OPTIONS) as client:
        until(lambda: status(client.until_ready(), own_token) == 200)
        code, added = command(store, "add", "reader", "--all-scopes")
        assert (code, added["published"]) == (0, {"url": URL, "problem": None})
        until(lambda: status(client, added["key"]) == 200, 2)
        s3_faults.status, s3_faults.methods = 403, ("PUT",)
        code, revoked = command(store, "revoke", "reader")
        assert (code, key_file.read(store.home.keys)) == (1, [])
        assert "failed" in str(revoked["published"])
        s3_faults.none()
        assert status(client, added["key"]) == 200
        publish_to(store, URL)
        until(lambda: status(client, added["key"]) == 401, 2)
        assert status(client, own_token) == 200
        assert own.name == "own"


def test_nothing_but_hashes_is_published(store: Store) -> None:
    _, added = command(store, "add", "reader", "--all-scopes")
    bucket, token = from_url("s3://bucket"), added["key"]
    found = {each["path"]: bytes(obstore.get(bucket, each["path"]).bytes()) for each in obstore.list(bucket).collect()}
    secret = token.rpartition("_")[2].encode()
    assert not [name for name, content in found.items() if secret in content]
    assert [name for name, content in found.items() if hashed(token).encode() in content] == ["store/keys.json"]


def test_keys_survive_a_source_that_is_down_and_none_is_left_once_they_are_gone(
    tmp_path: Path, store: Store, s3_faults: Faults
) -> None:
    key, token = made()
    key_file.add(store.home.keys, key)
    publish_to(store, URL)
    local = Store(Home(tmp_path / "server"), Settings())
    with served(local, OPTIONS) as client:
        client.until_ready()
    s3_faults.status = 503
    owner = "a-key-of-the-environment"
    with served(local, replace(OPTIONS, api_key=owner)) as client:
        client.until_ready()
        assert [status(client, each) for each in (token, "")] == [200, 401]
        s3_faults.none()
        bucket = from_url("s3://bucket")
        obstore.put(bucket, "store/keys.json", b"{")
        until(lambda: "is not a valid key file" in str(client.get("/readyz", X_API_Key=owner).document["replica"]))
        assert status(client, token) == 200
        obstore.delete(bucket, "store/keys.json")
        until(lambda: status(client, token) == 401)


def test_a_home_without_a_key_file_and_a_night_of_a_store_at_a_url_change_no_keys(tmp_path: Path, store: Store) -> None:
    key_file.add(store.home.keys, made("first").key)
    publish_to(store, URL)
    bucket = from_url("s3://bucket")
    before = bytes(obstore.get(bucket, "store/keys.json").bytes())
    other = Store(Home(Path(shutil.copytree(store.home.root, tmp_path / "other"))), store.settings)
    other.home.keys.unlink()
    assert not publish_keys(other, URL)
    key_file.add(other.home.keys, made("second", 1).key)
    at_url = StoreSettings.model_construct(url="s3://bucket/elsewhere", shards=1)
    publish_to(Store(other.home, other.settings.model_copy(update={"store": at_url})), URL)
    assert bytes(obstore.get(bucket, "store/keys.json").bytes()) == before


def test_the_command_listens_on_other_addresses_with_the_keys_of_the_store_alone(tmp_path: Path, store: Store) -> None:
    where = f"file://{tmp_path}/there"
    section = PublishSettings(url=where)
    publishing = Store(store.home, store.settings.model_copy(update={"publish": section}))
    publish_to(publishing, where)
    (tmp_path / "server").mkdir()
    serve = ("--host", "0.0.0.0", "--replica-of", where)
    refused = run_memstate(tmp_path / "server", "serve", "--port", "0", *serve)
    assert (refused.code, "create a key" in refused.stderr) == (2, True)
    key, token = made()
    key_file.add(store.home.keys, key)
    publish_keys(publishing, where)
    with serving_process(tmp_path / "server", *serve) as (client, _):
        assert [status(client.until_ready(), each) for each in (token, "")] == [200, 401]
