"""Servers for notifications, and a store that sends to them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.pipeline.notify.servers import Hook, Post, mail_server, webhook


@pytest.fixture
def hook() -> Iterator[Hook]:
    with webhook() as server:
        yield server


@pytest.fixture
def post() -> Iterator[Post]:
    with mail_server() as server:
        yield server
