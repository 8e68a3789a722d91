"""The import accepts everything once, the first content of an id, and nothing on a repeat (law L1)."""

from __future__ import annotations

from typing import Any

import pytest

from memstate_core.ingest import batch_import, importer
from memstate_core.ingest.validation.batch import validate_batch
from memstate_core.model.errors import StoreLocked
from memstate_core.state.ledger.ledger import Ledger


def turns(first: int, last: int) -> list[dict[str, Any]]:
    return [{"observation_id": f"t{n}", "text": f"turn {n}"} for n in range(first, last)]


def counts(report: Any) -> tuple[int, int, int, int]:
    return report.read, report.accepted, report.duplicate, report.quarantined


def test_importing_a_dump_twice_changes_nothing(desk):
    bad = [b"{", b"{", {"text": 5}, {"observation_id": "t3", "text": "something else"}]
    path = desk.file("a.jsonl", *turns(0, 250), *bad, {"text": "no id"})
    assert counts(desk.read(path)) == (255, 251, 0, 4)
    before = desk.tables()
    versions = [desk.ledger.version(table) for table in ("evidence", "quarantine")]
    assert counts(desk.read(path)) == (255, 0, 251, 4)
    assert all(old.equals(new) for old, new in zip(before, desk.tables(), strict=True))
    assert [desk.ledger.version(table) for table in ("evidence", "quarantine")] == versions


def test_a_newer_export_adds_only_what_is_new(desk):
    desk.read(desk.file("old.jsonl", *turns(0, 150)))
    assert counts(desk.read(desk.file("new.jsonl", *turns(0, 180)))) == (180, 30, 150, 0)
    assert desk.ledger.count("evidence") == 180


def test_batches_of_any_size_give_the_same_tables(desk, tmp_path):
    path = desk.file("a.jsonl", *turns(0, 250), *turns(0, 250), {"observation_id": "t7", "text": "other"})
    desk.read(path)
    settings = desk.settings.model_copy(update={"ingest": desk.settings.ingest.model_copy(update={"chunk_rows": 1000})})
    other = type(desk)(desk.folder, Ledger(tmp_path / "other"), settings)
    other.read(path)
    assert all(one.equals(two) for one, two in zip(desk.tables(), other.tables(), strict=True))


def test_batches_end_early_when_rows_are_long(desk, monkeypatch):
    monkeypatch.setattr(importer, "BATCH_BYTES", 1000)
    assert counts(desk.read(desk.file("a.jsonl", *turns(0, 90)))) == (90, 90, 0, 0)
    assert desk.ledger.version("evidence") > 2


@pytest.mark.parametrize("distance", [0, 150])
def test_the_first_content_of_an_id_wins_within_a_file(desk, distance):
    rows = [{"observation_id": "x", "text": "first"}, *turns(0, distance), {"observation_id": "x", "text": "second"}]
    assert counts(desk.rows(*rows, rows[0])) == (distance + 3, distance + 1, 1, 1)
    [refused] = desk.quarantine()
    assert (refused["reason"], refused["line"]) == ("conflicting_observation", distance + 2)
    assert b"second" in refused["raw"]
    assert "'x'" in refused["detail"]


def test_the_first_content_of_an_id_wins_across_files_and_imports(desk):
    one = desk.file("one.jsonl", {"observation_id": "x", "text": "first"})
    two = desk.file("two.jsonl", {"observation_id": "x", "text": "second"})
    assert [file.quarantined for file in desk.read(one, two).files] == [0, 1]
    assert counts(desk.read(two)) == (1, 0, 0, 1)
    assert [row["text"] for row in desk.evidence()] == ["first"]
    assert len(desk.quarantine()) == 1


def test_scopes_do_not_see_each_others_ids(desk):
    rows = [{"observation_id": "x", "text": name, "scope": {"type": "user", "id": name}} for name in ("a", "b")]
    assert counts(desk.rows(*rows)) == (2, 2, 0, 0)


def test_another_importer_in_between_is_noticed(desk, monkeypatch):
    """Two imports of the same rows at the same time: each row is taken once."""
    path = desk.file("a.jsonl", *turns(0, 250))
    rival = desk.file("b.jsonl", *turns(100, 300))
    seen: list[int] = []

    def interrupted(*batch: Any) -> Any:
        if not seen:
            seen.append(1)
            desk.read(rival)
        return validate_batch(*batch)

    desk.read(desk.file("c.jsonl", {"text": "so that the table exists"}))
    monkeypatch.setattr(batch_import, "validate_batch", interrupted)
    assert counts(desk.read(path)) == (250, 100, 150, 0)
    assert desk.ledger.count("evidence") == 301


def test_a_batch_whose_rows_were_removed_is_not_taken_again(desk):
    path = desk.file("a.jsonl", *turns(0, 3))
    desk.read(path)
    desk.ledger._open("evidence").delete()
    assert counts(desk.read(path)) == (3, 0, 3, 0)


def test_a_quarantined_row_keeps_its_bytes_and_its_place(desk):
    desk.read(desk.file("a.jsonl", b"", {"text": "good"}, b' {"text": caf\xe9} '))
    [row] = desk.quarantine()
    assert (row["file"], row["line"], row["reason"]) == ("a.jsonl", 3, "not_utf8")
    assert row["raw"] == b'{"text": caf\xe9}'
    assert (row["raw_bytes"], row["run_id"]) == (14, "run-1")


def test_a_locked_ledger_stops_the_import(desk, tmp_path):
    path = desk.file("a.jsonl", *turns(0, 3))
    impatient = type(desk)(desk.folder, Ledger(tmp_path / "ledger", lock_wait_seconds=0), desk.settings)
    with desk.ledger.writing("somebody else"), pytest.raises(StoreLocked, match="somebody else"):
        impatient.read(path)


def test_the_report_as_json(desk):
    path = desk.file("a.jsonl", {"text": "a"}, {"text": "a"}, b"{", b"{}")
    found = desk.read(path, desk.folder / "none.jsonl").to_json()
    message = f"{desk.folder}/none.jsonl: cannot be read: there is no such file"
    assert list(found) == ["read", "accepted", "duplicate", "quarantined", "files", "reasons", "errors"]
    assert [found[key] for key in ("read", "accepted", "duplicate", "quarantined")] == [4, 1, 1, 2]
    assert found["reasons"] == {"broken_json": 1, "missing_content": 1}
    assert found["files"][0] == {
        "path": str(path), "read": 4, "accepted": 1, "duplicate": 1, "quarantined": 2, "error": None,
        "format": "observations", "notes": (),
    }  # fmt: skip
    assert found["files"][1]["error"].startswith(message)
    assert [error.startswith(message) for error in found["errors"]] == [True]
