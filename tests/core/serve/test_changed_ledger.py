"""Answers that read the ledger, as of a moment and with what is pending, compare its files with their digests first."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from memstate_core.ingest.inbox import import_inbox
from memstate_core.model.errors import LedgerDamaged
from memstate_core.model.text import parse_moment
from memstate_core.run.store import Store, open_store
from memstate_core.serve.options import Options
from memstate_core.state.files import file_digest
from memstate_core.state.ledger import read_once
from memstate_core.state.ledger.ledger import Ledger
from tests.core.clocks import SETTLED
from tests.core.serve.conftest import Client, Publish, harbour, served

pytestmark = pytest.mark.slow

NOW = parse_moment("2026-12-24T00:00:00Z")
QUESTION = {"q": "Where is the yard?", "topic_ids": ["yard"]}
PAST, PENDING = {"as_of": "2026-01-10"}, {"pending": True}


@pytest.fixture(scope="module")
def frozen(tmp_path_factory: pytest.TempPathFactory, publish: Publish) -> Path:
    return publish(tmp_path_factory.mktemp("changed") / "home", harbour).home.root


@pytest.fixture
def store(frozen: Path, tmp_path: Path) -> Store:
    """A store with evidence that was imported and not published yet."""
    store = open_store(Path(shutil.copytree(frozen, tmp_path / "home")))
    store.home.inbox.mkdir(exist_ok=True)
    (store.home.inbox / "sauna.jsonl").write_text('{"text": "A sauna of spruce", "observed_at": "2026-07-02"}\n')
    assert import_inbox(store.home, store.ledger, store.settings, now=NOW, run_id="r", clock=SETTLED).accepted == 1
    return store


@pytest.fixture
def client(store: Store) -> Iterator[Client]:
    with served(store, Options(record=False)) as client:
        yield client.until_ready()


def flip(path: Path) -> None:
    """Flips a bit in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("table", ["evidence", "transitions"])
@pytest.mark.parametrize(("asked", "place"), [(PAST, 0), (PENDING, -1)], ids=["as of", "pending"])
def test_an_answer_from_a_changed_file_is_refused(
    client: Client, store: Store, table: str, asked: dict[str, object], place: int
) -> None:
    file = sorted((store.ledger.root / table).glob("*.parquet"), key=lambda path: path.stat().st_mtime_ns)[place]
    sound = file.read_bytes()
    flip(file)
    assert client.post("/v1/query", QUESTION).status == 200
    refused = client.post("/v1/query", QUESTION | asked)
    assert (refused.status, refused.document["type"]) == (503, "urn:memstate:problem:ledger-damaged")
    assert file.name in refused.document["detail"]
    file.write_bytes(sound)
    assert client.post("/v1/query", QUESTION | asked).status == 200


def test_a_checked_ledger_reads_a_file_again_only_if_it_changed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    monkeypatch.setattr(read_once, "file_digest", lambda path: read.append(path.name) or file_digest(path))
    ledger = Ledger(store.ledger.root, checked=True)
    assert ledger.count("evidence") == store.ledger.count("evidence")
    files = [path.name for path in (store.ledger.root / "evidence").glob("*.parquet")]
    assert sorted(read) == sorted(files)
    ledger.count("evidence")
    assert len(read) == len(files)
    flip(store.ledger.root / "evidence" / files[0])
    with pytest.raises(LedgerDamaged, match=files[0]):
        ledger.count("evidence")
    assert read[len(files) :] == [files[0]]
