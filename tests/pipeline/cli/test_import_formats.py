"""`memstate import` of chat exports, as a user types it."""

import re
from pathlib import Path

import pytest

from memstate_core.ingest.formats import FORMATS
from memstate_core.state.ledger.ledger import Ledger
from tests.core.ingest.formats.samples import SAMPLES
from tests.pipeline.conftest import Memstate

pytestmark = pytest.mark.slow


def exports(folder: Path) -> list[str]:
    folder.mkdir()
    for name, found in SAMPLES.items():
        (folder / name).write_bytes(found[-1])
    return [str(folder / name) for name in SAMPLES]


def test_every_format_is_imported_once(memstate: Memstate, tmp_path: Path) -> None:
    paths = exports(tmp_path / "dumps")
    first = memstate("import", *paths, "--scope", "user:ann", "--json")
    assert first.code == 0, first.stderr
    assert (first.document["accepted"], first.document["quarantined"]) == (2 * len(FORMATS), 0)
    assert [file["format"] for file in first.document["files"]] == list(SAMPLES)
    again = memstate("import", *reversed(paths), "--scope", "user:ann", "--json")
    assert (again.document["accepted"], again.document["duplicate"]) == (0, 2 * len(FORMATS))
    ledger = Ledger(tmp_path / "home" / "ledger")
    assert ledger.count("evidence") == 2 * len(FORMATS)
    assert set(ledger.scan("evidence").collect()["scope"]) == {"user:ann"}


@pytest.mark.parametrize("command", [("import", "dumps"), ("quarantine", "replay", "--all")])
def test_the_scope_of_rows_that_name_none_is_as_long_as_theirs(
    memstate: Memstate, tmp_path: Path, command: tuple[str, ...]
) -> None:
    (tmp_path / "home").mkdir()
    refused = memstate(*command, "--scope", "user:" + "x" * 70_000)
    assert refused.code == 2
    assert "--scope: the id of the scope has 70,000 characters, expected at most 1,024" in refused.stderr
    assert list((tmp_path / "home").iterdir()) == []


def test_folders_that_are_not_read_are_named(memstate: Memstate, tmp_path: Path) -> None:
    dumps = tmp_path / "dumps"
    exports(dumps)
    assert memstate("import", str(dumps), "--json").document["warnings"] == []
    (dumps / "older").mkdir()
    (dumps / "older" / "x.jsonl").write_text('{"text": "Never read."}')
    warning = f"the folders in {dumps} are not read (older): import each of them by its path"
    assert memstate("import", str(dumps), "--json").document["warnings"] == [warning]
    said = memstate("import", str(dumps))
    assert (said.code, said.stdout.splitlines()[-1]) == (0, f"warning: {warning}")


def test_notes_are_printed_and_in_the_json(memstate: Memstate, tmp_path: Path) -> None:
    chat = tmp_path / "chat.txt"
    chat.write_text("01/02/21, 10:00 - Ann: Hi\n")
    words = "the dates are ambiguous: read as day first, since nothing in the file decides"
    assert f"chat.txt: {words}" in memstate("import", str(chat)).stdout
    assert memstate("import", str(chat), "--json").document["files"][0]["notes"] == [words]


def test_a_format_that_does_not_fit_is_an_error(memstate: Memstate, tmp_path: Path) -> None:
    paths = exports(tmp_path / "dumps")
    answer = memstate("import", paths[1], "--format", "slack", "--json")
    assert answer.code == 1
    assert "format slack was asked for, expected a Slack export" in answer.stderr
    assert "it looks like chatgpt" in answer.document["errors"][0]


def test_a_format_that_does_not_exist_is_wrong_usage(memstate: Memstate, tmp_path: Path) -> None:
    answer = memstate("import", str(tmp_path), "--format", "word")
    assert answer.code == 2
    assert "chatgpt" in answer.stderr


def test_the_help_names_every_format(memstate: Memstate) -> None:
    words = re.findall(r"[a-z-]+", memstate("import", "--help").stdout)
    assert set(FORMATS) <= set(words)
