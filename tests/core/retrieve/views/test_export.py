"""Everything leaves: every topic in every state, with whole histories and all its evidence."""

from __future__ import annotations

import json

import polars as pl
import pytest

from memstate_core.model.errors import SnapshotDamaged
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.retrieve.views import export
from memstate_core.retrieve.views.export import export_jsonl, export_parquet, export_records
from memstate_core.retrieve.views.topic import topic_record
from tests.core.retrieve.conftest import Store


@pytest.fixture
def readers(store, opened):
    store.topic("b", title="Acme")
    store.field("b", "owner", (9, "Aya"), (5, 1), (1, None))
    store.field("b", "title", (1, "Acme"), part="topic")
    store.topic("a", state="archived")
    store.topic("d", state="merged", merged_into="c")
    store.topic("c", state="merged", merged_into="b")
    store.edge("b", "a", "part_of")
    store.says("b", "second", on=2)
    store.says("b", "first", on=1)
    store.says("a", "other")
    other = Store()
    other.topic("z", "user:z")
    other.topic("Ω", "user:z")
    other.field("Ω", "name", (1, "omega"))
    return opened(store, other)


def test_every_topic_is_exported_once_with_what_belongs_to_it(readers):
    records = {record["id"]: record for record in export_records(readers)}
    assert list(records) == ["a", "b", "c", "d", "z", "Ω"]
    assert {name: record["observation_ids"] for name, record in records.items()} == {
        "a": ["o0002"], "b": ["o0001", "o0000"], "c": [], "d": [], "z": [], "Ω": [],
    }  # fmt: skip
    assert {name: record["merged_from"] for name, record in records.items()} == {
        "a": [], "b": ["c", "d"], "c": [], "d": [], "z": [], "Ω": [],
    }  # fmt: skip
    assert [revision["value"] for revision in records["b"]["fields"]["owner"]["history"]] == ["Aya", 1, None]
    assert (records["d"]["state"], records["d"]["merged_into"]) == ("merged", "c")


def test_an_exported_record_is_the_topics_record(readers):
    exported = next(record for record in export_records(readers) if record["id"] == "b")
    del exported["observation_ids"], exported["merged_from"]
    assert exported == topic_record(readers, "b", history=True)


@pytest.mark.slow
def test_chunks_change_nothing(readers, monkeypatch):
    whole = list(export_records(readers))
    monkeypatch.setattr(export, "CHUNK", 1)
    assert list(export_records(readers)) == whole


def test_lines_and_columns_say_the_same(readers, tmp_path):
    lines = [json.loads(line) for line in export_jsonl(readers)]
    assert lines == json.loads(json.dumps(list(export_records(readers))))
    assert export_parquet(readers, tmp_path / "topics.parquet") == 6
    table = pl.read_parquet(tmp_path / "topics.parquet")
    assert table["id"].to_list() == [line["id"] for line in lines]
    assert [json.loads(cell) for cell in table["fields_json"]] == [line["fields"] for line in lines]
    assert table["observation_ids"].to_list() == [line["observation_ids"] for line in lines]


def test_a_snapshot_that_lacks_a_file_of_its_manifest_is_not_opened(readers):
    """Without `compressed.parquet` an export lacked the history behind summaries, and succeeded."""
    snapshot = readers[0].snapshot
    for name in sorted(snapshot.manifest.files):
        content = (snapshot.path / name).read_bytes()
        (snapshot.path / name).unlink()
        with pytest.raises(SnapshotDamaged, match=f"{name} is missing"):
            SnapshotReader(snapshot)
        (snapshot.path / name).write_bytes(content)
    SnapshotReader(snapshot)
