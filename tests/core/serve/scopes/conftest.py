"""The store with two scopes, served, and keys for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from memstate_core.run.store import Store
from memstate_core.serve.auth import key_file
from memstate_core.serve.options import Options
from tests.core.serve.conftest import Client, Publish, served
from tests.core.serve.scopes.two_scopes import (
    MINE,
    Caller,
    entangled,
    key_for,
    night,
)


@pytest.fixture(scope="module", params=["entangled", pytest.param("night", marks=pytest.mark.slow)])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, publish: Publish) -> Store:
    """The two scopes: with ties that no run makes, and as a run makes them."""
    home = tmp_path_factory.mktemp("scopes") / "home"
    return publish(home, entangled) if request.param == "entangled" else night(home)


@pytest.fixture(scope="module")
def tokens(store: Store) -> dict[str, str]:
    """The strongest key of one scope, and one of every scope for each role."""
    every: list[key_file.RoleName] = ["read", "write", "admin"]
    made = {role: key_for(store, role, role, None, number) for number, role in enumerate(every)}
    return made | {"mine": key_for(store, "mine", "admin", [MINE], 9)}


@pytest.fixture(scope="module")
def client(store: Store, tokens: dict[str, str]) -> Iterator[Client]:
    assert tokens
    with served(store, Options(rate_limit=0)) as client:
        yield client.until_ready()


@pytest.fixture(scope="module")
def caller(client: Client, tokens: dict[str, str]) -> Caller:
    return Caller(client, tokens["mine"])


@pytest.fixture(scope="module")
def owner(client: Client, tokens: dict[str, str]) -> Caller:
    """Who sees everything, to show that there is something to see."""
    return Caller(client, tokens["admin"])
