"""The server whose tools are called."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from memstate_core.serve.auth.key_file import ID_BYTES, SECRET_BYTES, add, make
from memstate_core.serve.options import Options
from tests.core.serve.conftest import Publish, harbour, served
from tests.core.serve.mcp.calls import Locked


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory, publish: Publish) -> Iterator[Locked]:
    """A server with keys: of the owner, of the scope with the harbour, for reading it, of the other scope."""
    store = publish(tmp_path_factory.mktemp("tools") / "home", harbour)
    tokens = {"owner": "the-owner"}
    for number, (name, scope, role) in enumerate(
        [("ines", "user:a", "write"), ("guest", "user:a", "read"), ("foreign", "user:b", "write")]
    ):
        entropy = bytes([number]) * (ID_BYTES + SECRET_BYTES)
        made = make(name, scopes=[scope], role=role, entropy=entropy, now=datetime.now(UTC))  # type: ignore[arg-type]
        add(store.home.keys, made.key)
        tokens[name] = made.token
    with served(store, Options(api_key="the-owner", record=False)) as client:
        yield client.until_ready(), tokens, store
