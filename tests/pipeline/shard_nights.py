"""Nights of shards that run side by side, in this process, and what happens in the middle of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from memstate_core.run.apply import update_topics
from memstate_pipeline.resources import NOW_TAG
from memstate_pipeline.run import night_of
from tests.pipeline.sharded_homes import NIGHTS

AT_ONCE = {"MEMSTATE_STORE_NIGHTS_AT_ONCE": "2"}
SHARDS = ["s0", "s1"]
_STEP = "memstate_pipeline.assets.topics.update_topics"


def night(home: Path, shard: str, number: int = 0) -> str:
    """Makes one of the nights of a shard; the id of its run."""
    return night_of(home, {NOW_TAG: NIGHTS[number]}, shard)


@contextmanager
def during(shard: str, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> Iterator[None]:
    """Has something happen in the middle of the night of a shard, which has begun and not published."""
    acted: list[str] = []

    def interrupted(store: Any, run: Any) -> Any:
        if run.facts.shard == shard and not acted:
            acted.append(shard)
            act()
        return update_topics(store, run)

    with monkeypatch.context() as patch:
        patch.setattr(_STEP, interrupted)
        yield
    assert acted == [shard]


def served(home: Path) -> dict[str, str]:
    """The number of the snapshot that each shard serves."""
    return {path.parent.name: path.read_text().strip() for path in (home / "snapshots").glob("*/CURRENT")}
