"""What two machines go through with a storage that fails, answers with half a body, or answers slowly; of any kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from memstate_core.model.errors import StoreLocked, StoreUnreachable
from memstate_core.night.checkout.pull import pull
from tests.core.night.checkout.conftest import command, drop, observations, pair, run, run_when_free, unnamed
from tests.core.storage.s3 import Faults


def loses_and_doubles_nothing(
    tmp_path: Path, url: str, faults: Faults, secret: str, *, matching: str, method: str, status: int
) -> None:
    """Some requests of a command are answered by a status; after that, another machine and this one go on."""
    aya, ben = pair(tmp_path, url, 1.0)
    drop(aya, "dump.jsonl", "one")
    run(aya)
    drop(aya, "more.jsonl", "two")
    faults.matching, faults.methods, faults.status = matching, (method,), status
    with pytest.raises(StoreUnreachable) as caught:
        run(aya)
    assert secret not in caught.value.message
    faults.none()
    run_when_free(ben)
    run(aya)
    pull(ben)
    assert observations(aya) == observations(ben) == ["one", "two"]
    assert unnamed(ben, url) == set()


def half_a_body_changes_nothing(tmp_path: Path, url: str, faults: Faults, matching: str) -> None:
    """What a machine fetches is cut; it keeps what it had, and fetches the rest later."""
    aya, ben = pair(tmp_path, url)
    drop(aya, "dump.jsonl", "one")
    run(aya)
    run(ben)
    drop(aya, "more.jsonl", "two")
    run(aya)
    faults.matching, faults.methods, faults.cut = matching, ("GET",), 0.5
    with pytest.raises(StoreUnreachable):
        pull(ben)
    assert observations(ben) == ["one"]
    faults.none()
    pull(ben)
    assert observations(ben) == ["one", "two"]


def slow_answers_are_waited_for(tmp_path: Path, url: str, faults: Faults) -> None:
    """Each answer takes half of the time after which the lease may be taken; the command takes many times as long."""
    aya, ben = pair(tmp_path, url, 1.0)
    run(aya)
    drop(aya, "dump.jsonl", "one")
    faults.seconds = 0.5
    with command(aya), pytest.raises(StoreLocked):
        run(ben)
    faults.none()
    run(ben)
    assert observations(aya) == observations(ben) == ["one"]
    assert unnamed(ben, url) == set()
