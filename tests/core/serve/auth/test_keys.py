"""Keys: how they are made and kept, who is let in by them, and for how long."""

from __future__ import annotations

import json
import logging
import os
import stat
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memstate_core.model.errors import KeyRefused, KeysDamaged
from memstate_core.run.store import Store
from memstate_core.serve.auth import key_file
from memstate_core.serve.auth.keyring import LOOK_SECONDS, Keyring
from memstate_core.serve.auth.principal import ANONYMOUS, OWNER, Principal, Role
from memstate_core.serve.options import Options
from memstate_core.serve.telemetry.log import JsonLines
from tests.core.serve.conftest import Client, Publish, harbour, served
from tests.pipeline.conftest import run_memstate

NOW = datetime(2026, 6, 1, tzinfo=UTC)
ENTROPY = bytes(range(key_file.ID_BYTES + key_file.SECRET_BYTES))


class Clock:
    """A clock that advances on request."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def made(name: str = "bot", number: int = 0, **how: object) -> key_file.Made:
    given = {
        "scopes": ["user:a"],
        "role": "read",
        "entropy": bytes([number]) + ENTROPY[1:-1] + bytes([number]),
        "now": NOW,
    } | how
    return key_file.make(name, **given)  # type: ignore[arg-type]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "keys.json"


# Principals


def test_a_principal_sees_its_scopes() -> None:
    bot = Principal("bot", frozenset({"user:a", "user:b"}), Role.WRITE)
    assert (bot.sees("user:a"), bot.sees("user:c"), bot.sees_all) == (True, False, False)
    assert bot.narrowed(None) == ("user:a", "user:b")
    assert bot.narrowed(["user:b", "user:c"]) == ("user:b",)
    assert bot.narrowed(["user:c"]) == bot.narrowed(["user:nobody"]) == ()
    assert [bot.may(role) for role in Role] == [True, True, False]


def test_the_owner_sees_everything_and_who_shows_no_key_nothing() -> None:
    assert (OWNER.narrowed(None), OWNER.narrowed(["user:a"]), OWNER.may(Role.ADMIN)) == (None, ("user:a",), True)
    assert (ANONYMOUS.narrowed(None), ANONYMOUS.sees("user:a"), ANONYMOUS.may(Role.WRITE)) == ((), False, False)


# The file


def test_a_key_has_256_random_bits_and_is_stored_as_a_hash(path: Path) -> None:
    key, token = made(scopes=["user:b", "user:a", "user:a"], role="write", rate=2.5, expires_at=NOW + timedelta(1))
    assert token == f"ms_{ENTROPY[:6].hex()}_{ENTROPY[6:-1].hex()}00"
    assert len(ENTROPY[6:]) * 8 == 256
    key_file.add(path, key)
    assert ENTROPY[6:-1].hex() not in path.read_text()
    assert key_file.read(path) == [key]
    assert key.principal == Principal("bot", frozenset({"user:a", "user:b"}), Role.WRITE)


def test_the_file_is_its_owners_alone(path: Path) -> None:
    before = os.umask(0)
    try:
        key_file.add(path, made().key)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in path.parent.iterdir() if each.suffix == ".part"] == []


def test_keys_created_concurrently_are_all_stored(path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: key_file.add(path, made(f"bot{number}", number).key), range(16)))
    assert len(key_file.read(path) or []) == 16


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"name": ""}, "a name has 1 to 64"),
        ({"name": "a b"}, "a name has 1 to 64"),
        ({"name": "-a"}, "a name has 1 to 64"),
        ({"scopes": []}, "it grants no scope"),
        ({"expires_at": NOW}, "it would already have expired"),
    ],
)
def test_a_key_that_would_grant_nothing_is_refused(change: dict[str, object], problem: str) -> None:
    with pytest.raises(KeyRefused, match=problem):
        made(**change)  # type: ignore[arg-type]


def test_names_are_used_once_and_revoked_once(path: Path) -> None:
    key_file.add(path, made().key)
    with pytest.raises(KeyRefused, match="this name is taken"):
        key_file.add(path, made(number=1).key)
    assert key_file.revoke(path, "bot").name == "bot"
    assert key_file.read(path) == []
    with pytest.raises(KeyRefused, match="no key has this name"):
        key_file.revoke(path, "bot")


@pytest.mark.parametrize("content", ["", "{", "[]", '{"keys": [{}]}', '{"keys": [], "version": 2}', "\xff"])
def test_a_damaged_file_is_an_error(path: Path, content: str) -> None:
    path.write_text(content, "latin-1")
    with pytest.raises(KeysDamaged, match=r"keys.json is not a valid key file"):
        key_file.read(path)


def test_a_key_is_found_by_the_whole_of_it() -> None:
    one, two = made("one", 1), made("two", 2)
    kept = [one.key, two.key]
    assert key_file.find(kept, one.token) == one.key
    crossed = f"ms_{one.key.id}_{two.token.rpartition('_')[2]}"
    for wrong in ("", "ms_", one.token[:-1], one.token + "0", one.token.upper(), crossed, one.key.hash, "ms__"):
        assert key_file.find(kept, wrong) is None


def test_an_unknown_id_costs_what_a_wrong_secret_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are hashed and compared once."""
    compared: list[tuple[str, str]] = []
    monkeypatch.setattr(key_file, "compare_digest", lambda *pair: compared.append(pair) or False)
    kept = [made().key]
    for token in (made().token[:-1] + "x", "ms_ffffffffffff_0", "nothing like it"):
        key_file.find(kept, token)
    assert [len(shown) + len(stored) for shown, stored in compared] == [128, 128, 128]


# What a server knows


def test_a_running_server_follows_the_file(path: Path) -> None:
    clock = Clock()
    ring = Keyring(path, None, clock)
    key, token = made()
    assert (ring.is_needed(), ring.holder(token, NOW)) == (False, None)
    key_file.add(path, key)
    clock.now += LOOK_SECONDS
    assert ring.is_needed()
    found = ring.holder(token, NOW)
    assert found is not None
    assert (found.principal, found.rate) == (key.principal, None)
    key_file.revoke(path, "bot")
    clock.now += LOOK_SECONDS
    assert ring.holder(token, NOW) is None
    path.unlink()
    clock.now += LOOK_SECONDS
    assert ring.is_needed(), "a server that asked for keys never stops to"


def test_the_keys_of_a_damaged_file_are_invalid(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, "memstate.serve")
    clock = Clock()
    key, token = made()
    key_file.add(path, key)
    ring = Keyring(path, "owner's", clock)
    assert ring.holder(token, NOW) is not None
    path.write_text("{")
    clock.now += LOOK_SECONDS
    assert ring.holder(token, NOW) is None
    assert ring.holder("owner's", NOW) is not None
    assert "is not a valid key file" in caplog.text
    path.unlink()
    key_file.add(path, key)
    clock.now += LOOK_SECONDS
    assert ring.holder(token, NOW) is not None


def test_a_file_that_cannot_be_read_does_not_open_the_door(path: Path) -> None:
    path.mkdir()
    assert Keyring(path, None, Clock()).is_needed()


def test_a_key_ends(path: Path) -> None:
    key, token = made(expires_at=NOW + timedelta(hours=1))
    key_file.add(path, key)
    ring = Keyring(path, None, Clock())
    assert ring.holder(token, NOW + timedelta(minutes=59)) is not None
    assert ring.holder(token, NOW + timedelta(hours=1)) is None


def test_the_key_of_the_environment_is_for_everything(path: Path) -> None:
    ring = Keyring(path, "prïvate", Clock())
    found = ring.holder("prïvate", NOW)
    assert found is not None
    assert found.principal is OWNER
    assert ring.holder("prïvate", NOW, guessable=False) is None
    assert [ring.holder(wrong, NOW) for wrong in ("", "private", "0" * 64)] == [None, None, None]


# The command line


@pytest.mark.slow
def test_keys_are_made_listed_and_revoked(tmp_path: Path) -> None:
    home = tmp_path / "home"
    more = ["--scope", "user:a", "--scope", "project:x", "--role", "write", "--rate", "5", "--expires", "2100-01-01"]
    response = run_memstate(home, "keys", "add", "bot", *more, "--json")
    assert response.code == 0, response.stderr
    token = response.document.pop("key")
    expected = {"name": "bot", "scopes": ["project:x", "user:a"], "role": "write", "rate": 5.0, "expired": False}
    assert response.document | expected | {"expires_at": "2100-01-01T00:00:00Z", "key": token} == response.document
    assert run_memstate(home, "keys", "add", "bot", "--all-scopes", "--json").code == 1
    listed = run_memstate(home, "keys", "list", "--json")
    assert [key["name"] for key in listed.document["keys"]] == ["bot"]
    plain = run_memstate(home, "keys", "list")
    assert (
        plain.stdout
        == f"bot (ms_{response.document['id']}_…): write, project:x, user:a, expires 2100-01-01T00:00:00Z\n"
    )
    secret, stored = token.rpartition("_")[2], (key_file.read(home / "keys.json") or [])[0].hash
    for said in (listed.stdout, listed.stderr, plain.stdout, (home / "keys.json").read_text()):
        assert secret not in said
    assert stored not in listed.stdout + plain.stdout
    assert run_memstate(home, "keys", "revoke", "bot", "--json").document["revoked"]["name"] == "bot"
    assert run_memstate(home, "keys", "revoke", "bot", "--json").document["error"]["type"] == "KeyRefused"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "expected either --scope"),
        (["--scope", "user:a", "--all-scopes"], "expected either --scope"),
        (["--scope", "ines"], "is not a scope: expected TYPE:ID"),
        (["--all-scopes", "--expires", "soon"], "is not a time: expected ISO 8601"),
    ],
)
def test_wrong_usage_is_reported(tmp_path: Path, arguments: list[str], said: str) -> None:
    response = run_memstate(tmp_path, "keys", "add", "bot", *arguments, "--json")
    assert response.code == 2
    assert said in response.document["error"]["message"]


# A server


def until(condition: Callable[[], bool], seconds: float = 1.5) -> float:
    """How long it took."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds, "it did not happen in time"
        time.sleep(0.02)
    return time.monotonic() - began


@pytest.mark.slow
def test_a_key_is_taken_and_revoked_within_a_second(tmp_path: Path, publish: Publish) -> None:
    store: Store = publish(tmp_path / "home", harbour)
    with served(store, Options(record=False)) as client:
        assert client.until_ready().get("/v1/topics").status == 200
        key, token = made()
        key_file.add(store.home.keys, key)

        def status(shown: str = token) -> int:
            return client.get("/v1/topics", X_API_Key=shown).status

        assert until(lambda: client.get("/v1/topics").status == 401) < 1
        assert (status(), status("wrong")) == (200, 401)
        found = client.get("/v1/topics", Authorization=f"Bearer {token}").document["topics"]
        assert {topic["scope"] for topic in found} == {"user:a"}
        key_file.revoke(store.home.keys, "bot")
        assert until(lambda: status() == 401) < 1


def test_no_key_and_no_secret_comes_into_the_log(
    tmp_path: Path, harbour_store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever a caller does with a key, good or not: the log names who asked, never what was shown."""
    caplog.set_level(logging.DEBUG)
    store = Store(type(harbour_store.home)(tmp_path), harbour_store.settings)
    key, token = made()
    key_file.add(store.home.keys, key)
    secret = token.rpartition("_")[2]
    with served(store, Options(api_key="the-owner's-own")) as client:
        misuse(client, token, "the-owner's-own")
    lines = [JsonLines("the-owner's-own").format(record) for record in caplog.records]
    callers = {json.loads(line).get("caller") for line in lines}
    assert {"bot", "owner", None} <= callers
    assert not [line for line in lines for word in (secret, key.hash, "the-owner's-own") if word in line]


def misuse(client: Client, *shown: str) -> None:
    for one in shown:
        client.get("/v1/topics", X_API_Key=one)
        client.get("/v1/topics", Authorization=f"Bearer {one}")
        client.get("/v1/topics", Authorization=one)
        client.get("/v1/topics", Authorization=f"Basic {one}", Cookie=f"key={one}")
        client.get(f"/v1/topics?api_key={one}", X_API_Key=one)
        client.get("/v1/topics", X_Other_Key=one, X_Request_Id=one)
        client.post("/v1/query", {"q": one, "key": one}, X_API_Key=one)
        client.post("/v1/query", {"q": one}, X_API_Key=one + "x")
    client.get(f"/v1/topics/{shown[0]}", X_API_Key=shown[0])
