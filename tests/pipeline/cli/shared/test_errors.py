"""Errors of commands: one message, one exit code, no traceback unless it is asked for."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from memstate_core.run.run import Run
from memstate_core.state.current import served
from memstate_core.state.home import Home
from memstate_pipeline.cli import operate
from memstate_pipeline.cli.main import main
from tests import warm
from tests.pipeline.conftest import NIGHT, Answer, Memstate, clean_environment, run_memstate

pytestmark = pytest.mark.slow

ROW = '{"title": "Yard", "observed_at": "2026-01-01", "fields": [{"name": "gate", "value": "shut"}]}\n'


def failed(answer: Answer, kind: str, code: int = 1) -> str:
    """Checks that a command with --json failed cleanly.

    Returns:
        Its message.
    """
    assert (answer.code, answer.document["error"]["exit_code"]) == (code, code)
    assert answer.document["error"]["type"] == kind
    assert "Traceback" not in answer.stderr + answer.stdout
    assert answer.stderr.strip().splitlines()[-1] == f"memstate: {answer.document['error']['message']}"
    return str(answer.document["error"]["message"])


@pytest.fixture
def typed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], no_settings: None, tmp_path: Path
) -> Memstate:
    """The command line in this process, where tests can break parts of it."""
    del no_settings
    monkeypatch.setenv("MEMSTATE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)  # typer sets its own

    def run(*arguments: str, **_: str) -> Answer:
        monkeypatch.setattr(sys, "argv", ["memstate", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        printed = capsys.readouterr()
        return Answer(int(str(end.value.code or 0)), printed.out, printed.err)

    return run


def broken(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Lets `memstate status` fail."""

    def fail(_: object) -> None:
        raise error

    monkeypatch.setattr(operate, "store_status", fail)


def test_an_unexpected_error_is_one_line(typed: Memstate, monkeypatch: pytest.MonkeyPatch) -> None:
    broken(monkeypatch, RuntimeError("the first line\nand the second"))
    message = failed(typed("status", "--json"), "RuntimeError")
    assert message.startswith("unexpected RuntimeError: the first line. `memstate doctor`")
    shown = typed("--debug", "status")
    assert (shown.code, shown.stderr.count("Traceback")) == (1, 1)
    assert shown.stderr.splitlines()[-1] == f"memstate: {message}"


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "Free some disk space"),
        (errno.EROFS, "pass another --home DIR"),
        (errno.EACCES, "Check the permissions"),
    ],
)
def test_an_error_of_the_system_says_where_and_what_to_do(
    number: int, advice: str, typed: Memstate, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch, OSError(number, os.strerror(number), "/store/ledger"))
    message = failed(typed("status", "--json"), type(OSError(number, "")).__name__)
    assert message.startswith(f"/store/ledger: {os.strerror(number)}. ")
    assert advice in message


@pytest.mark.parametrize(
    ("command", "output", "code", "problem"),
    [
        ("status", ">/dev/full", 1, "memstate: No space left on device. Free some disk space"),
        ("status", ">&-", 1, "memstate: The output is closed."),
        ("topic nope", ">/dev/full", 1, "holds no snapshot"),
        ("statsu", ">/dev/full", 2, "memstate: No such command"),
    ],
)
@pytest.mark.parametrize("option", ["", " --json"])
def test_an_output_that_takes_nothing_is_one_line(
    command: str, output: str, code: int, problem: str, option: str, tmp_path: Path
) -> None:
    line = f'"$0" -m memstate_pipeline --home "$1" {command}{option} {output}'
    arguments = ["sh", "-c", line, sys.executable, str(tmp_path)]
    done = subprocess.run(arguments, env=clean_environment(), stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False)
    assert problem in done.stderr.splitlines()[-1]


def test_an_interrupt_is_one_line_and_130(typed: Memstate, monkeypatch: pytest.MonkeyPatch) -> None:
    broken(monkeypatch, KeyboardInterrupt())
    answer = typed("status")
    assert (answer.code, answer.stdout, answer.stderr) == (130, "", "memstate: interrupted\n")


@pytest.mark.parametrize("command", [("status",), ("query", "x"), ("maintain",), ("import", "."), ("doctor",)])
def test_a_home_that_cannot_be_is_an_error(command: tuple[str, ...], memstate: Memstate, tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    (tmp_path / "dumps").mkdir()
    (tmp_path / "dumps" / "one.jsonl").write_text(ROW)
    answer = memstate(*(str(tmp_path / "dumps") if part == "." else part for part in command))
    assert answer.code in (1, 2)
    assert "Traceback" not in answer.stderr + answer.stdout
    assert str(tmp_path / "home") in answer.stderr + answer.stdout


def test_a_full_disk_during_a_run_is_reported_without_a_traceback(
    typed: Memstate, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def full(*_: object) -> Run:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "graph.kuzu")

    (tmp_path / "memstate.toml").write_text("[store]\nniceness = 0\n")
    monkeypatch.setattr(Run, "begin", full)
    message = failed(typed("--home", str(tmp_path), "maintain", "--now", NIGHT, "--json"), "StepFailed")
    assert "No space left on device" in message
    assert len(message.splitlines()) == 1


def test_damaged_files_are_errors(small_home: Path, tmp_path: Path) -> None:
    home = Path(shutil.copytree(small_home, tmp_path / "home"))
    (sound,) = served(Home(small_home), ["s0"])
    snapshot = Home(home).snapshots("s0") / sound.path.name
    query = ("query", "the yard", "--stages", "structural")
    for name, command in {"graph.kuzu": ("export",), "topics.parquet": query, "manifest.json": ("status",)}.items():
        (snapshot / name).write_bytes(b"damaged")
        answer = run_memstate(home, *command)
        assert answer.code == 1, name
        assert "Traceback" not in answer.stderr
        assert answer.stderr.strip().splitlines()[-1].startswith("memstate: ")
        shutil.copy(sound.path / name, snapshot / name)


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("query", "-dash title"), "-d. Where an argument begins with -, write -- before it: `memstate query -- TEXT`"),
        (
            ("import", "-dash.jsonl"),
            "-d. Where an argument begins with -, write -- before it: `memstate import -- PA",
        ),
        (("query", "--dash title"), "--dash title. Where an argument begins with -, write -- before it: `memstate q"),
        (
            ("memory", "search", "-x"),
            "-x. Where an argument begins with -, write -- before it: `memstate memory s",
        ),
    ],
)
def test_an_argument_that_looks_like_an_option_is_explained(
    typed: Memstate, arguments: tuple[str, ...], hint: str
) -> None:
    message = failed(typed(*arguments, "--json"), "NoSuchOption", 2)
    assert message.startswith(f"No such option: {hint}")


def test_an_unknown_option_of_a_command_without_arguments_has_no_such_hint(typed: Memstate) -> None:
    assert failed(typed("status", "-x", "--json"), "NoSuchOption", 2) == "No such option: -x"


def test_an_option_that_is_like_another_has_no_such_hint(typed: Memstate) -> None:
    message = failed(typed("query", "x", "--jsno", "--json"), "NoSuchOption", 2)
    assert message.startswith("No such option: --jsno (Possible options: --json")
    assert "before it" not in message


def test_an_argument_after_two_dashes_may_begin_with_one(typed: Memstate, tmp_path: Path) -> None:
    message = failed(typed("query", "--json", "--", "-dash title"), "StoreNotFound")
    assert str(tmp_path) in message


def test_hostile_file_names_and_arguments_are_shown(memstate: Memstate, tmp_path: Path) -> None:
    names = [b"/\x1b[2J\xe2\x80\xae.jsonl.gz", b"/\xff.jsonl.gz"]
    for dump in (os.fsdecode(os.fsencode(tmp_path) + name) for name in names):
        Path(dump).write_bytes(b"\x1f\x8bnot really")
        answer = memstate("import", dump, "--json")
        assert (answer.code, len(answer.document["errors"])) == (1, 1)
        assert answer.stderr.isascii()
    assert r"\xff.jsonl.gz" in answer.stderr
    wrong = memstate("query", "x", "--scope", "\x1b]0;title\x07")
    assert wrong.code == 2
    assert "\x1b" not in wrong.stderr
    assert r"\x1b]0;title\x07" in wrong.stderr


def test_a_closed_pipe_ends_a_command_in_silence(small_home: Path) -> None:
    command = [sys.executable, "-m", "memstate_pipeline", "--home", str(small_home), "export"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean_environment()) as export:
        assert export.stdout is not None
        assert export.stderr is not None
        export.stdout.close()
        assert export.stderr.read() == b""
    assert export.returncode == 1


def test_ctrl_c_ends_a_run_with_one_line_and_the_next_run_works(memstate: Memstate, tmp_path: Path) -> None:
    home, dump = tmp_path / "home", tmp_path / "one.jsonl"
    dump.write_text(ROW)
    assert memstate("import", str(dump)).code == 0
    command = ["-m", "memstate_pipeline", "--home", str(home), "maintain", "--now", NIGHT]
    with (tmp_path / "stdout").open("w+b") as stdout, (tmp_path / "stderr").open("w+b") as stderr:
        run = warm.Process(command, clean_environment(), stdout, stderr)
        while not (home / "work" / "s0" / "run.json").exists() and run.returncode is None:
            time.sleep(0.01)
        run.send_signal(signal.SIGINT)
        code = run.wait(timeout=120)
    said = (tmp_path / "stderr").read_text()
    assert (code, said.splitlines()[-1]) == (130, "memstate: interrupted")
    assert "Traceback" not in said
    assert memstate("maintain", "--now", NIGHT).code == 0
    assert memstate("verify").code == 0
