"""Reports of imports between nights are kept until a page covers them."""

from pathlib import Path

from memstate_core.ingest import unreported
from memstate_core.ingest.report import FileReport, ImportReport
from memstate_core.model.errors import UnreadableDump

BAD = UnreadableDump("inbox/cut.jsonl.gz", "it breaks off")
FIRST = ImportReport((FileReport("a.jsonl", 5, 3, 1, 1),), {"broken_json": 1}, ())
SECOND = ImportReport((FileReport("b.jsonl", 4, 1, 0, 3, str(BAD)),), {"broken_json": 1, "bad_time": 2}, (BAD,))


def test_reports_are_kept_in_order_and_removed_by_name(tmp_path: Path) -> None:
    folder = tmp_path / "imports"
    assert unreported.kept(folder) == {}
    unreported.keep(folder, "run-b", FIRST)
    unreported.keep(folder, "run-a", SECOND)
    assert list(unreported.kept(folder)) == ["run-b.json", "run-a.json"]
    unreported.remove(folder, ["run-b.json", "unknown.json"])
    (left,) = unreported.kept(folder).values()
    assert (left["read"], left["errors"], left["files"][0]["path"]) == (4, [BAD.message], "b.jsonl")


def test_an_import_of_nothing_is_not_kept(tmp_path: Path) -> None:
    unreported.keep(tmp_path / "imports", "run", ImportReport((), {}, ()))
    assert not (tmp_path / "imports").exists()


def test_an_import_that_was_kept_twice_counts_once(tmp_path: Path) -> None:
    for _ in range(2):
        unreported.keep(tmp_path, "run", FIRST)
    assert unreported.together(unreported.kept(tmp_path).values())["read"] == 5


def test_several_reports_become_one() -> None:
    found = unreported.together([FIRST.to_json(), SECOND.to_json()])
    assert found.keys() == FIRST.to_json().keys()
    assert [found[name] for name in unreported.COUNTS] == [9, 4, 1, 4]
    assert found["reasons"] == {"broken_json": 2, "bad_time": 2}
    assert [file["path"] for file in found["files"]] == ["a.jsonl", "b.jsonl"]
    assert found["errors"] == [BAD.message]
    assert unreported.together([])["read"] == 0
