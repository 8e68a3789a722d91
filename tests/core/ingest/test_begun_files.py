"""A file with which the process dies is read again once, by itself, and then set aside; no other file waits for it."""

from __future__ import annotations

import json
import os
import signal
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memstate_core.ingest import begun_files, inbox, unreported
from memstate_core.ingest.accesses.collect import AccessReport, collect_accesses
from memstate_core.ingest.api_files import file_name, make_key, signed
from memstate_core.ingest.begun_files import INBOX, BegunFiles
from memstate_core.ingest.divided_files import divide
from memstate_core.ingest.inbox import import_inbox
from memstate_core.ingest.report import ImportReport
from memstate_core.policy.settings import Settings
from memstate_core.state.home import Home
from memstate_core.state.ledger.ledger import Ledger
from tests import warm
from tests.core.clocks import SETTLED
from tests.core.ingest.test_inbox import names

KEY = b"k" * 32
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
KILLED_AT = """
import os, signal, sys
from pathlib import Path
from tests.core.ingest import test_begun_files as tests
from memstate_core.ingest import batch_import, importer
from memstate_core.ingest.accesses import collect
from memstate_core.state.home import Home

home, at, chosen = Home(Path(sys.argv[1])), sys.argv[2], sys.argv[3]

def killing(module, name, is_fatal):
    sound = getattr(module, name)
    def kill(*given, **named):
        if is_fatal(*given):
            os.kill(os.getpid(), signal.SIGKILL)
        return sound(*given, **named)
    setattr(module, name, kill)

if at == "reading":
    killing(importer, "open_dump", lambda path, *_: path.name == chosen)
elif at == "committing":
    killing(batch_import, "evidence_frame", lambda records, *_: any(chosen in record for record in records))
else:
    killing(collect, "parse_lines", lambda rows, *_: any(chosen.encode() in row.raw for row in rows))
print(tests.collected(home) if at == "collecting" else tests.read(home))
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    home.inbox.mkdir()
    home.accesses.mkdir()
    return home


def read(home: Home) -> ImportReport:
    run_id = f"r{os.getpid()}"
    return import_inbox(home, Ledger(home.ledger), Settings(), now=NOW, run_id=run_id, clock=SETTLED)


def collected(home: Home) -> AccessReport:
    return collect_accesses(home, Ledger(home.ledger), Settings(), NOW, "r")


def dies(home: Home, at: str, chosen: str) -> bool:
    """Whether a process that imports or collects is killed where it meets what was chosen."""
    done = warm.run(["-c", KILLED_AT, str(home.root), at, chosen], os.environ)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode != 0


def dumps(home: Home, *texts: str) -> None:
    for text in texts:
        (home.inbox / f"{text}.jsonl").write_text(f'{{"text": "{text}"}}\n')


def texts(home: Home) -> list[str]:
    return Ledger(home.ledger).scan("evidence").collect()["text"].sort().to_list()


@pytest.mark.slow
@pytest.mark.parametrize(("at", "chosen"), [("reading", "c.jsonl"), ("committing", "c")])
def test_a_file_that_kills_the_process_is_set_aside_and_the_others_are_imported(
    home: Home, at: str, chosen: str
) -> None:
    dumps(home, "a", "b", "c", "d")
    assert dies(home, at, chosen)
    assert texts(home) == []  # they share a batch
    assert dies(home, at, chosen)
    assert texts(home) == ["a", "b"]  # each is read alone now
    assert not dies(home, at, chosen)
    assert texts(home) == ["a", "b", "d"]
    assert (names(home.processed), names(home.failed)) == (["a.jsonl", "b.jsonl", "d.jsonl"], ["c.jsonl"])
    (kept,) = unreported.kept(home.imports).values()
    (error,) = kept["errors"]
    assert error.startswith(f"{home.inbox}/c.jsonl: cannot be read: 2 processes died")
    assert "it is kept in inbox/failed, and is read again once it is moved back" in error

    (home.failed / "c.jsonl").rename(home.inbox / "c.jsonl")
    assert dies(home, at, chosen)
    report = read(home)
    assert (report.accepted, report.errors, texts(home)) == (1, (), ["a", "b", "c", "d"])


@pytest.mark.slow
def test_good_files_that_were_being_read_when_the_process_was_killed_are_imported(home: Home) -> None:
    dumps(home, "a", "b", "c")
    assert dies(home, "reading", "b.jsonl")
    report = read(home)
    assert (report.accepted, report.errors, names(home.failed)) == (3, (), [])
    dumps(home, "b")
    assert dies(home, "reading", "b.jsonl")
    assert read(home).errors == ()


@pytest.mark.slow
def test_each_of_two_files_that_kill_the_process_is_named_in_a_report(home: Home) -> None:
    dumps(home, "b", "x1", "x2")
    for name in ("x1.jsonl", "x1.jsonl", "x2.jsonl", "x2.jsonl"):
        assert dies(home, "reading", name)
    assert (names(home.failed), texts(home)) == (["x1.jsonl"], ["b"])
    assert not dies(home, "reading", "x2.jsonl")
    assert names(home.failed) == ["x1.jsonl", "x2.jsonl"]
    errors = [error for report in unreported.kept(home.imports).values() for error in report["errors"]]
    assert ["x1.jsonl" in errors[0], "x2.jsonl" in errors[1], len(errors)] == [True, True, 2]


@pytest.mark.slow
@pytest.mark.parametrize(("count", "deaths"), [(5, 3), (130, 4)])
def test_of_a_file_of_the_api_only_the_row_that_kills_the_process_is_set_aside(
    home: Home, count: int, deaths: int
) -> None:
    dumps(home, "a", "z")
    texts_of_file = ["fatal" if number == count // 2 else f"t{number:03}" for number in range(count)]
    rows = "".join(f'{{"text": "{text}"}}\n' for text in texts_of_file).encode()
    whole = home.inbox / file_name(1_770_000_000_000_000_000, "token")
    whole.write_bytes(signed(rows, make_key(home.inbox_key)))
    sound = whole.read_bytes()
    assert [dies(home, "committing", "fatal") for _ in range(deaths)] == [True] * deaths
    assert not dies(home, "committing", "fatal")
    assert texts(home) == ["a", *sorted(set(texts_of_file) - {"fatal"}), "z"]
    (failed,) = names(home.failed)
    assert (home.failed / failed).read_bytes().splitlines()[1:] == [b'{"text": "fatal"}']
    assert (home.processed / whole.name).read_bytes() == sound
    (kept,) = unreported.kept(home.imports).values()
    (error,) = kept["errors"]
    assert failed in error

    (home.failed / failed).rename(home.inbox / failed)
    report = read(home)
    assert (report.accepted, report.duplicate, report.errors) == (1, 0, ())


@pytest.mark.slow
def test_a_kill_while_a_file_is_divided_loses_and_repeats_nothing(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = home.inbox / file_name(1_770_000_000_000_000_000, "token")
    whole.write_bytes(signed(b'{"text": "a"}\n{"text": "b"}\n', make_key(home.inbox_key)))
    for _ in range(2):
        assert dies(home, "reading", whole.name)
    with monkeypatch.context() as patch:
        patch.setattr(inbox, "move_into", failing)
        with pytest.raises(InterruptedError):
            read(home)
    assert len(names(home.inbox)) == 3
    report = read(home)
    assert (report.accepted, report.duplicate, texts(home), names(home.inbox)) == (2, 2, ["a", "b"], [])


def failing(*_: object) -> None:
    raise InterruptedError


@pytest.mark.parametrize("name", ["dump.jsonl", "api-1.jsonl", file_name(1, "one"), file_name(1, "damaged")])
def test_other_files_are_not_divided(tmp_path: Path, name: str) -> None:
    rows = b'{"text": "a"}\n' * (1 if "one" in name else 2)
    content = signed(rows, KEY)
    (tmp_path / name).write_bytes(content.replace(b'"a"', b'"b"') if "damaged" in name else content)
    assert divide(tmp_path / name, KEY) == []
    assert names(tmp_path) == [name]


@pytest.mark.slow
def test_a_changed_file_starts_without_deaths(home: Home) -> None:
    dumps(home, "a")
    assert dies(home, "reading", "a.jsonl")
    assert dies(home, "reading", "a.jsonl")
    (home.inbox / "a.jsonl").write_text('{"text": "mended"}\n')
    assert (read(home).errors, texts(home)) == ((), ["mended"])


def test_an_error_is_no_death(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    dumps(home, "a")
    for error in (OSError(28, "No space left on device"), KeyboardInterrupt()) * 2:
        with monkeypatch.context() as patch:
            patch.setattr(Ledger, "append", raising(error))
            with pytest.raises(type(error)):
                read(home)
    assert [*home.imports.iterdir()] == []
    assert (read(home).accepted, names(home.failed)) == (1, [])


def raising(error: BaseException):
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


def test_damaged_notes_stop_no_import(home: Home) -> None:
    dumps(home, "a")
    for path in begun_files.notes_of(home.imports, INBOX):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b'\xff\xfe\n["a.jsonl"\n[]\n{"a": 1}\n["a.jsonl", null, 3, 9]\nnull\n')
    assert read(home).accepted == 1


def test_names_of_any_bytes_are_noted(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/a\xff\n.jsonl"))
    path.write_bytes(b"")
    notes = BegunFiles(tmp_path, INBOX)
    with notes:
        notes.begin(path)
        left = notes._log.read_bytes()
    notes._log.write_bytes(left)
    with BegunFiles(tmp_path, INBOX) as begun:
        assert begun.deaths(path) == 1


@pytest.mark.slow
def test_a_segment_that_kills_the_process_is_set_aside_and_the_others_are_collected(home: Home) -> None:
    for topic in ("a", "fatal", "z"):
        row = {"topic_id": topic, "at": "2026-05-01T10:00:00Z", "source": "cli"}
        (home.accesses / f"{topic}.jsonl").write_text(json.dumps(row) + "\n")
    assert dies(home, "collecting", "fatal")
    assert dies(home, "collecting", "fatal")
    report = collected(home)
    assert (report.segments, report.accepted, names(home.collected)) == (2, 1, ["a.jsonl", "z.jsonl"])
    assert names(home.failed_accesses) == ["fatal.jsonl"]
    (error,) = report.errors
    assert "2 processes died" in error
    assert unreported.kept(home.imports)["r-accesses.json"]["errors"] == [error]

    (home.failed_accesses / "fatal.jsonl").rename(home.accesses / "fatal.jsonl")
    assert dies(home, "collecting", "fatal")
    assert (collected(home).accepted, Ledger(home.ledger).count("accesses")) == (1, 3)
