"""A replica that opens shards on demand: it fetches what requests need, and keeps and follows no more than that."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from memstate_core.model.scope import Layout
from memstate_core.night.publication.upload import publish_to
from memstate_core.policy.settings import Settings, StoreSettings
from memstate_core.run.store import Store
from memstate_core.serve.options import Options
from memstate_core.serve.replica.service import FOLDER
from memstate_core.state.home import Home
from memstate_core.state.layout import write_layout
from tests.core.retrieve.conftest import Store as Draft
from tests.core.serve.conftest import Client, Publish, served
from tests.core.storage.s3 import Faults

pytestmark = pytest.mark.slow
URL = "s3://bucket/store"
SHARDS = 8
LAYOUT = Layout(SHARDS)
OPTIONS = Options(replica_of=URL, poll_seconds=0.02, follow_seconds=0.05, record=False, open_shards=2)


def scope_of(shard: str, layout: Layout = LAYOUT) -> str:
    return next(scope for number in range(1000) if layout.of(scope := f"user:{number}") == shard)


def fill(shard: str, edition: str = "first", layout: Layout = LAYOUT) -> Callable[[Draft], None]:
    def written(draft: Draft) -> None:
        scope = scope_of(shard, layout)
        draft.topic(f"yard-{shard}", title=f"Ferry yard {shard}", summary=f"The {edition} yard", scope=scope)
        draft.says(f"yard-{shard}", f"The gate of yard {shard} is open, {edition}.", on=20, scope=scope)

    return written


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, publish: Publish) -> Path:
    """Seven shards with a snapshot; the last one has none."""
    root = tmp_path_factory.mktemp("shards") / "home"
    for index in range(SHARDS - 1):
        publish(root, fill(f"s{index}"), shard=f"s{index}", shards=SHARDS)
    return root


@pytest.fixture
def store(tmp_path: Path, home: Path, s3_faults: Faults) -> Store:
    root = shutil.copytree(home, tmp_path / "home")
    store = Store(Home(root), Settings(store=StoreSettings(shards=SHARDS)))
    publish_to(store, URL)
    s3_faults.seen.clear()
    return store


def local(tmp_path: Path, name: str = "server") -> Store:
    return Store(Home(tmp_path / name), Settings())


@pytest.fixture
def replica(tmp_path: Path, store: Store) -> Iterator[Client]:  # noqa: ARG001, what is published
    with served(local(tmp_path), OPTIONS) as client:
        yield client.until_ready()


def ask(client: Client, *shards: str) -> Any:
    answer = client.post("/v1/query", {"q": "gate of the ferry yard", "scope": [scope_of(each) for each in shards]})
    return answer.document if answer.status == 200 else answer.document["type"].rpartition(":")[2]


def states(client: Client) -> dict[str, str]:
    return {name: each["state"] for name, each in client.get("/readyz").document["shards"].items()}


def until(holds: Callable[[], bool]) -> None:
    ends = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.02)


def asked(faults: Faults) -> set[str]:
    """The shards of the requests that came."""
    return {found[1] for each in faults.seen if (found := re.search(r"/shards/(s\d)/", each))}


def objects(faults: Faults) -> int:
    return sum("/objects/" in each for each in faults.seen)


def files(tmp_path: Path) -> str:
    """Everything that the replica has on disk."""
    return "\n".join(path.read_bytes().decode("latin-1") for path in (tmp_path / "server").rglob("*") if path.is_file())


def test_a_shard_is_fetched_by_the_first_request_for_it_and_the_least_recently_used_is_closed(
    tmp_path: Path, replica: Client, s3_faults: Faults
) -> None:
    assert set(states(replica).values()) == {"not_open"}
    assert "memstate_ready 1.0" in replica.get("/metrics").content.decode()
    assert asked(s3_faults) == set()
    for shard in ("s1", "s2", "s1"):
        assert ask(replica, shard)["candidates"][0]["topic_id"] == f"yard-{shard}"
    assert asked(s3_faults) == {"s1", "s2"}
    ask(replica, "s4")
    assert {shard for shard, state in states(replica).items() if state == "open"} == {"s1", "s4"}
    (folder,) = (tmp_path / "server" / FOLDER).glob("*/snapshots")
    until(lambda: {path.name for path in folder.iterdir() if path.is_dir()} == {"s1", "s4"})
    s3_faults.seen.clear()
    until(lambda: sum("store.json" in each for each in s3_faults.seen) > 2)
    assert asked(s3_faults) == {"s1", "s4"}
    assert objects(s3_faults) == 0
    ask(replica, "s2")  # its objects are in the cache
    assert objects(s3_faults) == 0


def test_it_answers_as_a_replica_that_has_all_shards_open(tmp_path: Path, store: Store, replica: Client) -> None:
    with served(local(tmp_path, "other"), Options(replica_of=URL, record=False)) as eager:
        eager.until_ready()
        until(lambda: sum(state == "open" for state in states(eager).values()) == SHARDS - 1)
        for shards in (["s3"], ["s5", "s0", "s2"], ["s7"], store.shards):
            found, expected = ask(replica, *shards), ask(eager, *shards)
            assert found | {"snapshot": ""} == expected | {"snapshot": ""}
            assert set(found["snapshot"].split(",")) - {""} == {f"{each}/1" for each in shards if each != "s7"}
        assert ask(replica, *store.shards) == ask(eager, *store.shards)
        for path in ("/v1/topics", "/v1/topics/yard-s6", "/v1/facts"):
            assert replica.get(path).document == eager.get(path).document
        packed = {"q": "ferry yard", "scope": [scope_of("s7")], "budget": 500}
        assert (
            replica.post("/v1/context", packed).document["text"] == eager.post("/v1/context", packed).document["text"]
        )


def test_requests_for_a_cold_shard_fetch_it_once(replica: Client, s3_faults: Faults) -> None:
    ask(replica, "s0")
    s3_faults.seen.clear()
    s3_faults.seconds, s3_faults.matching = 0.1, "/s3/objects/"
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: ask(replica, "s3"), range(8)))
    assert all(each == answers[0] for each in answers)
    fetched = [each for each in s3_faults.seen if "/s3/objects/" in each]
    assert len(fetched) == len(set(fetched)) > 5


def test_a_shard_that_cannot_be_fetched_is_refused_and_the_others_answer(replica: Client, s3_faults: Faults) -> None:
    assert ask(replica, "s0")["candidates"]
    s3_faults.status, s3_faults.matching = 403, "/s3/"
    assert ask(replica, "s3") == "source-unreachable"
    assert ask(replica, "s3", "s0") == "source-unreachable"
    assert ask(replica, "s0")["candidates"]
    assert ask(replica, "s2")["candidates"]
    assert [replica.get(f"/readyz?shard={shard}").status for shard in ("s3", "s2", "s4", "s9")] == [503, 200, 200, 404]
    s3_faults.none()
    until(lambda: replica.get("/readyz?shard=s3").status == 200)
    assert ask(replica, "s3")["candidates"]


def test_it_begins_with_what_it_has_when_its_source_is_down(tmp_path: Path, store: Store, s3_faults: Faults) -> None:
    assert store.shards
    with served(local(tmp_path), OPTIONS) as client:
        ask(client.until_ready(), "s2")
    s3_faults.status = 503
    with served(local(tmp_path), OPTIONS) as client:
        assert ask(client.until_ready(), "s2")["candidates"]
        assert ask(client, "s3") == "source-unreachable"


def test_an_erasure_removes_what_is_kept_of_shards_that_are_not_open(
    tmp_path: Path, replica: Client, store: Store, publish: Publish
) -> None:
    for shard in ("s1", "s2", "s3"):
        ask(replica, shard)
    until(lambda: states(replica)["s1"] == "not_open")
    assert "yard s1 is open, first" in files(tmp_path)
    for shard in ("s1", "s3"):
        publish(store.home.root, fill(shard, "second"), number=2, shard=shard, shards=SHARDS)
    store.home.erasures.mkdir()
    (store.home.erasures / "1.json").write_text("{}")
    publish_to(store, URL)
    until(lambda: ask(replica, "s3")["snapshot"] == "s3/2")
    until(lambda: "yard s1 is open, first" not in files(tmp_path))
    assert "yard s2 is open, first" in files(tmp_path)
    assert [ask(replica, shard)["snapshot"] for shard in ("s1", "s2")] == ["s1/2", "s2/1"]


def test_it_follows_a_change_of_the_number_of_shards(replica: Client, store: Store, publish: Publish) -> None:
    layout = Layout(2, 1)
    assert ask(replica, "s1")["snapshot"] == "s1/1"
    for shard in layout.names:
        publish(store.home.root, fill(shard, layout=layout), shard=shard)
    write_layout(store.home, layout)
    publish_to(store, URL)
    (name,) = {layout.of(scope_of("s5"))}
    assert ask(replica, "s5")["snapshot"] == f"{name}/1"  # its shard is gone at the source
    assert set(states(replica)) == set(layout.names)
