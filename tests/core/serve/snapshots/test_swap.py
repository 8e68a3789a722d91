"""Publishing under load: no request fails, none mixes snapshots, old snapshots are closed, damage changes nothing."""

from __future__ import annotations

import random
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memstate_core.model.errors import StoreNotFound
from memstate_core.run.store import Store
from memstate_core.serve.options import Options
from memstate_core.serve.snapshots.generation import Generation
from memstate_core.serve.snapshots.swap import Serving
from memstate_core.state.current import move_current
from memstate_core.state.graph import TOPIC
from memstate_core.state.snapshots import MANIFEST
from tests.core.retrieve.conftest import Store as Draft
from tests.core.serve.conftest import Client, Publish, served

pytestmark = pytest.mark.slow

OPTIONS = Options(poll_seconds=0.05, record=False)


def edition(number: int, scope: str = "user:a") -> Callable[[Draft], None]:
    """A snapshot in which everything says which one it is."""

    def fill(draft: Draft) -> None:
        draft.topic("yard", scope, title=f"Yard {number}", summary=f"The yard in edition {number}")
        draft.field("yard", "edition", (number, number))
        draft.says("yard", f"This is edition {number} of the yard.", on=number, scope=scope)

    return fill


def numbers_in_query(document: dict[str, Any]) -> set[str]:
    candidate, evidence = document["candidates"][0], document["evidence"][0]
    words = [
        candidate["title"].split()[1],
        candidate["summary"].split()[-1],
        evidence["text"].split()[3],
    ]
    return {f"s0/{word}" for word in [*words, str(candidate["fields"][0]["current"]["value"])]}


def numbers_in_topic(document: dict[str, Any]) -> set[str]:
    return {f"s0/{document['title'].split()[1]}", f"s0/{document['fields']['edition']['history'][0]['value']}"}


class Load:
    """Threads that send requests without pause until stopped."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.failures: list[Any] = []
        self.seen: list[str] = []
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(seed,)) for seed in range(6)]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _ask(self, seed: int) -> None:
        chance = random.Random(seed)
        while not self._stop.is_set():
            if chance.random() < 0.3:
                answer, response = self.client.get("/v1/topics/yard"), numbers_in_topic
            else:
                answer, response = self.client.post("/v1/query", {"q": "Which edition?"}), numbers_in_query
            if answer.status != 200 or response(answer.document) != {answer.document["snapshot"]}:
                self.failures.append(answer)
            else:
                self.seen.append(answer.document["snapshot"])


@pytest.mark.parametrize("kept", [3, 1])
def test_swaps_under_load_fail_and_mix_nothing(tmp_path: Path, publish: Publish, kept: int) -> None:
    """Also where so few snapshots are kept that the one that is being read is removed."""
    store = publish(tmp_path / "home", edition(1))
    with served(store, OPTIONS) as client:
        client.until_ready()
        with Load(client) as load:
            for number in range(2, 8):
                publish(tmp_path / "home", edition(number), number)
                shutil.rmtree(store.home.snapshots("s0") / str(number - kept), ignore_errors=True)
                wait_for(lambda: f"s0/{number}" in load.seen)  # noqa: B023 (asked before the next turn)
    assert load.failures == []
    assert set(load.seen) == {f"s0/{number}" for number in range(1, 8)}


def wait_for(condition: Callable[[], bool], seconds: float = 60) -> None:
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, "it did not happen"
        time.sleep(0.02)


def test_a_request_keeps_its_snapshot_open(tmp_path: Path, publish: Publish) -> None:
    store = publish(tmp_path / "home", edition(1))
    serving = Serving(store)
    assert serving.refresh()
    assert not serving.refresh()

    held: list[Generation] = []

    def over_a_swap(generation: Generation) -> tuple[str, str, int]:
        held.append(generation)
        before = generation.readers[0].graph
        publish(tmp_path / "home", edition(2), 2)
        assert serving.refresh()
        return generation.snapshot, before.read(TOPIC, ["title"])["title"][0], generation.users

    assert serving.read(over_a_swap) == ("s0/1", "Yard 1", 1)
    with pytest.raises(RuntimeError, match="closed"):
        held[0].readers[0].graph.read(TOPIC)
    assert serving.read(lambda generation: generation.snapshot) == "s0/2"
    serving.close()
    with pytest.raises(StoreNotFound):
        serving.read(lambda generation: generation)


def test_only_the_shard_that_moved_is_opened_again(tmp_path: Path, publish: Publish) -> None:
    publish(tmp_path / "home", edition(1), shard="s0", shards=2)
    store = publish(tmp_path / "home", edition(1, "user:b"), shard="s1", shards=2)
    serving = Serving(store)
    serving.refresh()
    first = serving.read(lambda generation: generation.readers)
    publish(tmp_path / "home", edition(2), 2, shard="s0", shards=2)
    serving.refresh()
    second = serving.read(lambda generation: generation.readers)
    assert [reader.name for reader in second] == ["s0/2", "s1/1"]
    assert (second[0] is first[0], second[1] is first[1]) == (False, True)
    assert second[1].graph.read(TOPIC).height == 1
    serving.close()


def test_a_damaged_snapshot_is_not_served_until_it_is_sound(tmp_path: Path, publish: Publish) -> None:
    store = publish(tmp_path / "home", edition(1))
    with served(store, OPTIONS) as client:
        client.until_ready()
        manifest = store.home.snapshots("s0") / "2" / MANIFEST
        publish(tmp_path / "home", edition(2), 2)
        wait_for(lambda: client.get("/readyz").document["snapshot"] == "s0/2")
        move_current(store.home, "s0", 1)
        wait_for(lambda: client.get("/readyz").document["snapshot"] == "s0/1")
        sound = manifest.read_bytes()
        manifest.write_text("{")
        move_current(store.home, "s0", 2)
        time.sleep(0.3)
        assert client.post("/v1/query", {"q": "x"}).document["snapshot"] == "s0/1"
        manifest.write_bytes(sound)
        wait_for(lambda: client.get("/readyz").document["snapshot"] == "s0/2")


def test_the_first_snapshot_is_served_when_it_comes(tmp_path: Path, publish: Publish, harbour_store: Store) -> None:
    empty = Store(type(harbour_store.home)(tmp_path / "home"), harbour_store.settings)
    with served(empty, OPTIONS) as client:
        assert client.get("/readyz").status == 503
        publish(tmp_path / "home", edition(1))
        client.until_ready()
        assert client.post("/v1/query", {"q": "x"}).document["snapshot"] == "s0/1"
