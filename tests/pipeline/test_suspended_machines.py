"""A real process that the system pauses past its lease, with all its threads, as a machine that is suspended.

Nights beside others are in `test_nights_on_machines`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from memstate_core.night.checkout.note import read_checkout
from memstate_core.night.checkout.send import named
from memstate_core.run.store import open_store
from memstate_core.storage.head import Head, read_head
from memstate_core.storage.purpose import STORE
from memstate_core.storage.storage import storage
from tests.core.night.publication.conftest import there
from tests.pipeline.paused import COMMAND, paused
from tests.pipeline.test_checkout import HEAD, LEASE, NIGHTS, machine, machines, made, night, observations, settings

__all__ = ["machines", "made"]  # the fixtures
pytestmark = pytest.mark.slow

PAUSES = {
    "before it publishes": ("memstate_pipeline.assets.publish", "publish", 1),
    "while the night is sent": (HEAD, "Contents.send", 9),
    "before the state moves": (LEASE, "Lease.commit", 2),
}
PLACES = [("file", "before it publishes"), ("s3", "while the night is sent"), ("s3", "before the state moves")]
PLACES += [("file", "before the state moves")]


def head_at(url: str) -> Head:
    found = read_head(storage(url, STORE))
    assert found is not None
    return found[0]


@pytest.mark.parametrize(("machines", "point"), PLACES, indirect=["machines"])
def test_a_machine_that_is_suspended_past_its_lease_publishes_nothing(
    machines: tuple[Path, Path, str], point: str, tmp_path: Path
) -> None:
    """Another machine takes the lease and makes a night; its state and its snapshot for replicas stay."""
    aya, ben, url = machines
    replicas = {"MEMSTATE_PUBLISH_URL": f"file://{tmp_path}/replicas"}
    arguments = ["--home", str(aya), "maintain", "--now", NIGHTS[2], "--json"]
    with paused(PAUSES[point], COMMAND, arguments, settings(url) | replicas, tmp_path / "output") as process:
        number = head_at(url).fence
        night(ben, url, 3, **replicas)
        head = head_at(url)
        code, output = process.go_on()
    assert (code, '"type": "LeaseLost"' in output) == (3, True), output
    assert f"held the lease number {number}, which expired, and number {head.fence} was taken" in output
    assert head_at(url) == head
    assert there(replicas["MEMSTATE_PUBLISH_URL"]).numbers == [3]
    last = night(aya, url, 4)
    assert machine(ben, url, "pull", "--json").document["state_hash"] == last
    for home in (aya, ben):
        assert observations(home) == ["said-1", "said-2", "said-3", "said-4"]
    assert machine(ben, url, "verify", "--deep").code == 0
    note = read_checkout(open_store(aya, {}).home)
    assert note is not None
    assert set(storage(url, STORE).sizes("data")) == named(note.state, note.files)
