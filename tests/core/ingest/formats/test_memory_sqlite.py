"""The SQLite file of a layered agent memory: seven tables, columns in either spelling, nothing written."""

from __future__ import annotations

import gzip
import json
import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from memstate_core.ingest.dumps import open_dump
from memstate_core.ingest.formats.shared.memory_tables import TABLES
from memstate_core.model.errors import UnreadableDump

SCOPE = "workspace:mill"
ROWS: dict[str, dict[str, Any]] = {
    "core_blocks": {"label": "persona", "content": "Aya sails.", "authority": 5, "read_only": 1,
                    "updated_at": "2026-01-02T00:00:00Z"},
    "evidence_events": {"kind": "tool_call", "content": "ls /boat", "actor": "agent", "session_id": "s-1",
                        "created_at": 1767225600, "metadata": '{"toolName": "ls", "args": {"in": "/boat"}, "n": 1}'},
    "semantic_facts": {"subject": "Acme", "predicate": "owner", "object": "Aya", "confidence": 0.9,
                       "source_event_ids": '["evidence_events-1", "lost"]', "valid_from": "2026-01-01T00:00:00Z",
                       "created_at": "2026-01-03T00:00:00Z"},
    "session_states": {"session_id": "s-1", "status": "blocked", "current_goal": "Sail", "working_set": '["map.md"]',
                       "updated_at": "2026-01-04T00:00:00Z"},
    "workspace_resources": {"uri": "file:///map.md", "kind": "file", "title": "Map", "content": "North is up.",
                            "updated_at": "2026-01-05T00:00:00Z"},
    "temporal_relations": {"source_id": "semantic_facts-1", "relation": "derives", "target_id": "evidence_events-1",
                           "created_at": "2026-01-06T00:00:00Z"},
    "verification_records": {"target_id": "workspace_resources-1", "status": "stale", "message": "it moved",
                             "checked_at": "2026-01-07T00:00:00Z"},
}  # fmt: skip


def store(path: Path, spell: Any = str, **changed: dict[str, Any]) -> Path:
    """A file with a row in each table; `changed` replaces or drops (None) cells by table."""
    with closing(sqlite3.connect(path)) as connection:
        for table, cells in ROWS.items():
            row = {"id": f"{table}-1", "scope": SCOPE} | cells | changed.get(table, {})
            names = [spell(name) for name in row]
            connection.execute(f"CREATE TABLE {table} ({', '.join(names)})")
            connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", list(row.values()))
        connection.commit()
    return path


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)


def read(path: Path) -> dict[str, dict[str, Any]]:
    """The observation of each table, without refusals."""
    with open_dump(path, 1 << 20) as dump:
        assert dump.format == "memory-sqlite"
        rows = [row for batch in dump.batches(100, 1 << 20) for row in batch if row.reason is None]
    return {row.member: json.loads(row.raw) for row in rows if row.member is not None}


def test_every_table_is_read(tmp_path: Path) -> None:
    found = read(store(tmp_path / "memory.db"))
    assert list(found) == list(TABLES)
    assert all(row["scope"] == {"type": "workspace", "id": "mill"} for row in found.values())
    names = {table: row["observation_id"] for table, row in found.items()}
    assert all(name.startswith(f"memory-sqlite/{table}/{table}-1/") for table, name in names.items())
    assert found["core_blocks"]["memory"] == {
        "type": "core_block", "label": "persona", "content": "Aya sails.", "authority": 5, "read_only": True,
    }  # fmt: skip
    event = found["evidence_events"]
    assert (event["kind"], event["text"], event["actor"], event["session_id"]) == (
        "tool_call",
        "ls /boat",
        "agent",
        "s-1",
    )
    assert (event["observed_at"], event["metadata"]) == (
        "2026-01-01T00:00:00Z",
        {"toolName": "ls", "args": {"in": "/boat"}, "n": 1},
    )
    assert event["details"] == {"tool": "ls", "arguments": {"in": "/boat"}}
    assert found["semantic_facts"]["memory"] == {
        "type": "fact", "subject": "title:Acme", "predicate": "owner", "object": "Aya", "confidence": 0.9,
        "valid_from": "2026-01-01T00:00:00Z", "sources": [names["evidence_events"], "lost"],
    }  # fmt: skip
    assert found["session_states"]["memory"] == {
        "type": "session_state", "session_id": "s-1", "status": "blocked", "current_goal": "Sail",
        "working_set": ["map.md"],
    }  # fmt: skip
    assert found["workspace_resources"]["memory"]["uri"] == "file:///map.md"
    assert found["temporal_relations"]["memory"] == {
        "type": "relation", "source": f"observation:{names['semantic_facts']}", "relation": "derives",
        "target": f"observation:{names['evidence_events']}",
    }  # fmt: skip
    assert found["verification_records"]["memory"] == {
        "type": "verification", "target": f"observation:{names['workspace_resources']}", "status": "stale",
        "message": "it moved", "checked_at": "2026-01-07T00:00:00Z",
    }  # fmt: skip


def test_the_spelling_of_columns_does_not_matter(tmp_path: Path) -> None:
    assert read(store(tmp_path / "camel.db", camel)) == read(store(tmp_path / "snake.db"))


def test_a_second_import_changes_nothing_and_a_changed_row_is_new(desk) -> None:
    first = desk.read(store(desk.folder / "a.db"))
    assert first.read == len(TABLES)
    assert first.accepted >= 2
    again = desk.read(store(desk.folder / "b.db"))
    assert (again.accepted, again.duplicate) == (0, first.accepted)
    changed = store(desk.folder / "c.db", core_blocks={"content": "Aya rows.", "updated_at": "2026-02-01T00:00:00Z"})
    later = desk.read(changed)
    assert (later.accepted, later.duplicate) == (1, first.accepted - 1)
    assert "conflicting_observation" not in later.reasons


@pytest.mark.parametrize(
    ("table", "change", "expected"),
    [
        ("core_blocks", {"label": None}, "core_blocks, row 1: it has no label nor name, expected a text"),
        ("core_blocks", {"authority": "high"}, "core_blocks, row 1: authority is 'high', expected a whole number"),
        ("core_blocks", {"read_only": "maybe"}, "read_only is 'maybe', expected 0 or 1"),
        ("evidence_events", {"content": " "}, "it has no content nor text nor body, expected a text"),
        ("evidence_events", {"scope": "elsewhere"}, "scope: 'elsewhere' is not a scope"),
        ("evidence_events", {"content": b"\xff"}, "content is not UTF-8"),
        ("semantic_facts", {"confidence": "sure"}, "confidence is 'sure', expected a number"),
        ("session_states", {"working_set": "[{}]"}, "expected a JSON array of texts"),
        ("workspace_resources", {"uri": None}, "it has no uri nor url nor path, expected a text"),
        ("temporal_relations", {"target_id": "nobody"}, "no row has the id 'nobody', expected one in core_blocks"),
        ("verification_records", {"status": None}, "it has no status, expected a text"),
    ],
)
def test_a_row_that_says_too_little_is_quarantined_with_its_place(desk, table, change, expected) -> None:
    desk.read(store(desk.folder / "a.db", **{table: change}))
    kept, *naming = sorted(
        (row for row in desk.quarantine() if expected in row["detail"]),
        key=lambda row: "which it names" in row["detail"],
    )
    assert kept["file"].endswith(f"a.db/{table}")
    assert (kept["line"], kept["detail"].startswith(f"{table}, row 1: ")) == (1, True)
    assert all("which it names, is refused" in row["detail"] for row in naming)


def test_missing_optional_columns_and_an_id_of_several_tables(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE core_blocks (id INTEGER PRIMARY KEY, label, content)")
        connection.execute("CREATE TABLE session_states (id INTEGER PRIMARY KEY, summary) ")
        connection.execute("CREATE TABLE temporal_relations (source_id, source_type, kind, target_id, target_type)")
        connection.execute("INSERT INTO core_blocks VALUES (7, 'persona', 'Aya sails.')")
        connection.execute("INSERT INTO session_states VALUES (7, 'We sailed.')")
        connection.execute("INSERT INTO temporal_relations VALUES (7, 'core_block', 'supports', 7, 'session')")
        connection.execute("INSERT INTO temporal_relations VALUES (7, NULL, 'supports', 7, 'session')")
        connection.commit()
    with open_dump(path, 1 << 20) as dump:
        *_, related, refused = dump.rows
    relation = json.loads(related.raw)["memory"]
    assert relation["source"].startswith("observation:memory-sqlite/core_blocks/7/")
    assert relation["target"].startswith("observation:memory-sqlite/session_states/7/")
    assert "core_blocks and session_states have the id '7', expected one table" in refused.detail


def test_the_file_stays_as_it_is(tmp_path: Path) -> None:
    path = store(tmp_path / "memory.db")
    before = sha256(path.read_bytes()).hexdigest()
    path.chmod(0o400)
    tmp_path.chmod(0o500)
    try:
        read(path)
    finally:
        tmp_path.chmod(0o700)
    assert sha256(path.read_bytes()).hexdigest() == before
    assert [each.name for each in tmp_path.iterdir()] == ["memory.db"]


def test_a_file_with_changes_in_its_journal_is_refused(tmp_path: Path) -> None:
    path = store(tmp_path / "memory.db")
    with closing(sqlite3.connect(path)) as open_elsewhere:
        open_elsewhere.execute("PRAGMA journal_mode = WAL")
        open_elsewhere.execute("INSERT INTO core_blocks (id, label, content) VALUES ('new', 'rules', 'No mail.')")
        open_elsewhere.commit()
        with pytest.raises(UnreadableDump, match=r"memory\.db-wal holds changes that are not in the file yet"):
            read(path)
    assert "core_blocks" in read(path), "once the program has closed it, all is in the file"


def test_other_databases_and_damage_are_named(tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE songs (name)")
    with pytest.raises(UnreadableDump, match="its tables are songs, expected a SQLite file of an agent memory"):
        read(other)
    whole = store(tmp_path / "memory.db").read_bytes()
    cut = tmp_path / "cut.db"
    cut.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UnreadableDump, match="SQLite cannot read it on"):
        list(read(cut))


def test_a_packed_file_is_refused(tmp_path: Path) -> None:
    packed = tmp_path / "memory.db.gz"
    packed.write_bytes(gzip.compress(store(tmp_path / "memory.db").read_bytes()))
    with pytest.raises(UnreadableDump, match="it is a packed SQLite file, expected it unpacked"):
        read(packed)


def test_a_long_row_is_cut_and_refused(desk) -> None:
    report = desk.read(store(desk.folder / "a.db", evidence_events={"content": "x" * 2_000_000}))
    assert report.reasons["line_too_long"] == 1
