"""A draft is published only if it holds what the working graph has; each damage is named, and nothing is published."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from memstate_core.model.errors import SnapshotDamaged
from memstate_core.night import publish
from memstate_core.run.served_state import read_served
from memstate_core.run.store import Store, open_store
from memstate_core.state.kept_tables import Rows
from memstate_core.state.snapshots import Snapshot, file_digests
from tests.core.revise.nights import night, record_by_key

pytestmark = pytest.mark.slow

KEYS = ("harbour", "kite")


def served(store: Store) -> Snapshot:
    return read_served(store)["s0"].snapshot


@pytest.fixture
def with_topics(tmp_path: Path) -> Store:
    """A store after its first night."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "memstate.toml").write_text('[embedding]\nmodel = "hashing"\n')
    store = open_store(home, {})
    record_by_key(store, {key: {"title": key, "fields": [{"name": "stage", "value": "one"}]} for key in KEYS}, 0)
    night(store, 1)
    return store


def _torn(source: Path, copy: Path) -> None:
    """Copies a graph; the draft's copy has another last byte."""
    content = source.read_bytes()
    last = content[-1] ^ 1 if copy.parent.name == "snapshot" else content[-1]
    copy.write_bytes(content[:-1] + bytes([last]))


def _leaving(source: Path, copy: Path) -> None:
    """Copies a graph; a file lies beside the draft's copy, as of one that was not closed."""
    copy.write_bytes(source.read_bytes())
    if copy.parent.name == "snapshot":
        copy.with_name(copy.name + ".shadow").write_bytes(b"")


def _without_a_field(folder: Path, tables: Rows) -> None:
    write_facts(folder, tables)
    fields = pl.read_parquet(folder / "facts/fields.parquet")
    fields.slice(1).write_parquet(folder / "facts/fields.parquet")


def _with_other_vectors(path: Path, rows: np.ndarray) -> None:
    save(path, rows + 1 if path.name == "topic_vectors.npy" else rows)


write_facts, save = publish.write_facts, np.save


@pytest.mark.parametrize(
    ("place", "damage", "named"),
    [
        ("memstate_core.night.publish.shutil.copyfile", _torn, "that of the working graph"),
        ("memstate_core.night.publish.shutil.copyfile", _leaving, "graph.kuzu.shadow is left beside the graph"),
        ("memstate_core.night.publish.write_facts", _without_a_field, "facts/fields.parquet differs from the graph"),
        ("numpy.save", _with_other_vectors, "topic_vectors.npy differs from the graph in"),
    ],
)
def test_a_damaged_draft_is_refused(
    with_topics: Store, monkeypatch: pytest.MonkeyPatch, place: str, damage: Callable[..., None], named: str
) -> None:
    before = served(with_topics).name
    monkeypatch.setattr(place, damage)
    with pytest.raises(SnapshotDamaged, match=named):
        night(with_topics, 2)
    monkeypatch.undo()
    assert served(with_topics).name == before
    night(with_topics, 3)
    assert served(with_topics).name != before


def test_digests_of_shared_files_are_taken_over_and_of_others_are_not(with_topics: Store, tmp_path: Path) -> None:
    base = served(with_topics)
    names = ("evidence.parquet", "topics.parquet")
    for name, put in zip(names, (shutil.copyfile, lambda one, other: other.hardlink_to(one)), strict=True):
        put(base.path / name, tmp_path / name)
        with (tmp_path / name).open("ab") as file:
            file.write(b"0")
    found = file_digests(tmp_path, base)
    assert found["evidence.parquet"] != base.manifest.files["evidence.parquet"]
    assert found["topics.parquet"] == base.manifest.files["topics.parquet"]
    assert found == file_digests(tmp_path) | {"topics.parquet": base.manifest.files["topics.parquet"]}
