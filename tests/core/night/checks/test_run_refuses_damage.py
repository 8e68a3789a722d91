"""A run begins only from a ledger and a snapshot whose every byte is as it was written.

Before these checks an emptied last commit of evidence passed: the night exited with 0, most topics were gone, and
`verify` passed afterwards; a single-bit flip reached a published snapshot.
"""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

from memstate_core.model.errors import DiskFull, LedgerDamaged, SnapshotDamaged
from memstate_core.model.frames import empty
from memstate_core.model.graph_tables import VECTORS
from memstate_core.model.ledger_tables import DECISION
from memstate_core.night.corrections import correct
from memstate_core.night.rebuild import ensure_served, rebuild
from memstate_core.run.begin import begin_run
from memstate_core.run.run import GRAPH_FILE
from memstate_core.state.current import current_snapshot, named_number
from memstate_core.state.files import RESERVED_BYTES
from memstate_core.state.graph import VECTOR, open_graph
from memstate_core.state.ledger.chain import CHAIN
from memstate_core.state.snapshots import COMPRESSED_FILE, MANIFEST, numbers
from tests.core.frames import filled
from tests.core.night.checks.damage import Home
from tests.core.night.checks.store import LAST
from tests.core.night.checks.test_file_damage import FIELDS
from tests.core.strategies import day

pytestmark = pytest.mark.slow

NIGHT = day(LAST + 1)


def begin(home: Home) -> None:
    begin_run(home.store, "s0", "run", NIGHT).end()


def last_commit(home: Home, table: str) -> Path:
    return max((home.store.ledger.root / table / "_delta_log").glob("*.json"))


def without_chain(home: Home) -> None:
    """The store as a version before the chain made it."""
    home.manifest(lambda manifest: {name: value for name, value in manifest.items() if name != "ledger_head"})
    (home.store.ledger.root / CHAIN).unlink()


def kept(home: Home) -> tuple[list[int], int | None]:
    return numbers(home.store.home, "s0"), named_number(home.store.home, "s0")


def test_a_sound_store_begins_a_run_with_and_without_a_chain(home: Home) -> None:
    begin(home)
    without_chain(home)
    begin(home)
    assert home.store.ledger.chain.head is not None


@pytest.mark.parametrize("table", ["evidence", "transitions", "accesses"])
def test_an_emptied_last_commit_is_refused(home: Home, table: str) -> None:
    last_commit(home, table).write_bytes(b"")
    before = kept(home)
    for command in (lambda: begin(home), lambda: rebuild(home.store, "s0", "run")):
        with pytest.raises(LedgerDamaged, match=table) as refused:
            command()
        assert "from a backup" in refused.value.message
    assert kept(home) == before


@pytest.mark.parametrize("table", ["evidence", "transitions"])
def test_an_emptied_last_commit_is_refused_in_a_store_from_before_the_chain(home: Home, table: str) -> None:
    without_chain(home)
    last_commit(home, table).write_bytes(b"")
    before = kept(home)
    with pytest.raises(LedgerDamaged, match=table):
        begin(home)
    assert kept(home) == before


def test_evidence_of_the_served_snapshot_that_is_gone_is_named(home: Home) -> None:
    """Rows that were removed by a commit like any other, which no digest shows."""
    gone = home.store.ledger.scan("evidence").collect()["evidence_id"].sort()[0]
    home.ledger("evidence", lambda rows: rows.filter(rows["evidence_id"] != gone))
    with pytest.raises(LedgerDamaged, match=f"evidence: 1 row of the served snapshot missing, such as {gone}"):
        begin(home)


def test_evidence_with_another_id_than_its_content_gives_is_named(home: Home) -> None:
    first = home.store.ledger.scan("evidence").collect()["evidence_id"].sort()[0]
    changed = f"{first[:-1]}{'0' if first[-1] != '0' else '1'}"
    home.ledger("evidence", lambda rows: rows.with_columns(rows["content_sha256"].str.replace(first, changed)))
    with pytest.raises(LedgerDamaged, match="evidence: 1 row with another id than the content gives"):
        begin(home)


def test_no_single_bit_flip_of_the_ledger_reaches_a_run(home: Home) -> None:
    dice, before = random.Random(3), kept(home)
    files = sorted((home.store.ledger.root).glob("*/*.parquet"))
    for _ in range(20):
        file = dice.choice(files)
        sound = file.read_bytes()
        flipped = bytearray(sound)
        flipped[dice.randrange(len(sound))] ^= 1 << dice.randrange(8)
        file.write_bytes(flipped)
        with pytest.raises(LedgerDamaged, match=file.name):
            begin(home)
        file.write_bytes(sound)
    assert kept(home) == before
    begin(home)


def test_a_damaged_base_is_refused(home: Home) -> None:
    graph = home.served / GRAPH_FILE
    content = bytearray(graph.read_bytes())
    content[len(content) // 2] ^= 1
    graph.write_bytes(content)
    with pytest.raises(SnapshotDamaged, match=GRAPH_FILE):
        begin(home)


@pytest.mark.parametrize("name", [*(name for name in FIELDS if name != "number"), "ledger_head"])
def test_a_base_whose_manifest_was_changed_is_refused_and_rebuilt(home: Home, name: str) -> None:
    """The base's versions, policy and model decide what a run reads, so a change of them would change its result."""
    path = home.served / MANIFEST
    path.write_text(json.dumps({**json.loads(path.read_text()), name: FIELDS.get(name)}))
    for command in (lambda: begin(home), lambda: correct(home.store, "s0", "run", NIGHT, empty(DECISION), "why")):
        with pytest.raises(SnapshotDamaged, match=rf"manifest.json: {name}.* is .*, the ledger recorded"):
            command()
    rebuild(home.store, "s0", "rebuilt")
    begin(home)


@pytest.mark.parametrize("text", ["", "\n", "garbage", "99", None])
def test_a_writer_mends_current(home: Home, text: str | None) -> None:
    path = home.served.parent / "CURRENT"
    path.unlink() if text is None else path.write_text(text)
    ensure_served(home.store, "s0", "run")
    assert path.read_text() == "5\n"
    begin(home)


@pytest.mark.parametrize("text", ["", "garbage", "99", None])
def test_readers_serve_the_newest_sound_snapshot_and_say_so(
    home: Home, text: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    path = home.served.parent / "CURRENT"
    path.unlink() if text is None else path.write_text(text)
    shutil.copytree(home.served, home.served.with_name("6"))  # never published
    found = current_snapshot(home.store.home, "s0")
    assert found is not None
    assert found.name == "s0/5"
    (warning,) = [record.getMessage() for record in caplog.records if record.name == "memstate.store"]
    assert warning.endswith("serving s0/5, the newest sound snapshot")
    assert not path.exists() if text is None else path.read_text() == text


def test_a_damaged_snapshot_is_passed_over_and_without_any_sound_one_readers_fail(home: Home) -> None:
    (home.served.parent / "CURRENT").write_text("")
    (home.served / COMPRESSED_FILE).write_bytes(b"")
    found = current_snapshot(home.store.home, "s0")
    assert found is not None
    assert found.name == "s0/4"
    shutil.rmtree(home.served)
    (home.served.parent / "4" / COMPRESSED_FILE).unlink()
    with pytest.raises(SnapshotDamaged, match="CURRENT holds"):
        current_snapshot(home.store.home, "s0")


def test_a_full_disk_begins_no_run_and_writes_no_graph(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kuzu aborts the process where it finds the disk full."""
    before = kept(home)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=RESERVED_BYTES + 4096))
    with pytest.raises(DiskFull):
        begin(home)
    assert kept(home) == before


def test_rows_that_the_disk_has_no_room_for_are_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pl.DataFrame([{"id": f"v{n}", "embedding": [0.5] * 384} for n in range(500)])
    with open_graph(tmp_path / GRAPH_FILE, buffer_mib=64) as graph:
        monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=RESERVED_BYTES + 500_000))
        with pytest.raises(DiskFull):
            graph.insert(VECTOR, filled(rows, VECTORS))
        monkeypatch.undo()
        assert graph.read(VECTOR).is_empty()
        graph.insert(VECTOR, filled(rows, VECTORS))
