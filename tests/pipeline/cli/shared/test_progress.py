"""Progress on a terminal: the step, the phase, what is done of how much, and nothing where stderr is no terminal."""

from __future__ import annotations

import io
import json
import os
import pty
import tempfile
from pathlib import Path

import pytest

from memstate_core.model.progress import Progress, progress_to, report_progress
from memstate_pipeline.cli.shared.progress import LiveProgress, _display, live_progress
from memstate_pipeline.progress import STEPS
from tests import warm
from tests.pipeline.cli.test_revise import read_until_closed
from tests.pipeline.conftest import clean_environment, run_memstate

pytestmark = pytest.mark.slow


def test_a_terminal_shows_steps_and_phases_beside_the_answer(tmp_path: Path) -> None:
    dump = tmp_path / "a.jsonl"
    dump.write_text("".join(json.dumps({"text": f"note {at} about gardens"}) + "\n" for at in range(50)))
    home = ["--home", str(tmp_path / "home")]
    shown = on_terminal([*home, "import", str(dump)])[1]
    assert "import" in shown
    assert "MB" in shown
    answer, shown = on_terminal([*home, "maintain", "--now", "2026-04-06T02:00:00Z", "--json"])
    assert json.loads(answer)["counts"]["evidence"] == 50
    assert "of 11 steps" in shown
    assert all(step in shown for step in ("placements", "topic_embeddings", "duplicate_pairs", "maintenance_report"))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("progress")
    dump = folder / "a.jsonl"
    dump.write_text("".join(json.dumps({"text": f"note {at} about gardens"}) + "\n" for at in range(20)))
    (folder / "policy.toml").write_text("[policy]\nsalience_half_life_days = 5\n")
    (folder / "questions.jsonl").write_text('{"q": "gardens", "topics": ["none"]}\n')
    home = folder / "home"
    for arguments in (["import", str(dump)], ["maintain", "--now", "2026-04-06T02:00:00Z"]):
        assert run_memstate(home, *arguments).code == 0
    return home


@pytest.mark.parametrize(
    ("command", "frames"),
    [
        ("rebuild", ["0 of 1 shards"]),
        ("reembed --model hashing --questions {}/questions.jsonl --dry-run", ["0 of 1 shards", "0 of 1 questions"]),
        ("reshard 2 --dry-run", []),
        ("rollback", []),
        ("pin {topic}", []),
        ("undo --run nightly-1", []),
        ("erase --actor nobody --dry-run", []),
        ("export --output {}/out.jsonl", ["topics"]),
        ("retention --dry-run", []),
        ("simulate --policies {}/policy.toml --days 2", ["histories"]),
        ("eval {}/questions.jsonl", ["0 of 1 questions"]),
        ("quarantine replay --all", []),
        ("publish file://{}/published", ["objects"]),
        ("fetch-inbox file://{}/published", []),
        ("backup file://{}/backups", ["MB"]),
        ("restore-backup file://{}/backups", ["MB"]),
        ("compact", ["tables"]),
    ],
)
def test_every_command_that_may_take_long_shows_progress(home: Path, command: str, frames: list[str]) -> None:
    name, *given = command.split()
    topic = run_memstate(home, "query", "gardens", "--json").document["candidates"][0]["topic_id"]
    options = [each.format(home.parent, topic=topic) for each in given]
    target = home.parent / "restored" if name == "restore-backup" else home
    _, shown = on_terminal(["--home", str(target), name, *options], may_fail=True)
    text = "\n".join(shown.split("\r"))
    assert "0:00:0" in text, text
    assert all(frame in text for frame in frames), text
    assert " of 0 " not in text, "the first frame has the total"


def test_without_a_terminal_nothing_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with live_progress(3):
        report_progress(Progress("encode", 1, 2, "texts"))
    assert capsys.readouterr() == ("", "")


def test_the_display_keeps_one_line_for_steps_and_one_for_the_phase() -> None:
    display = _display(io.StringIO())
    with progress_to(LiveProgress(display, 2)):
        report_progress(Progress("placements", 0, 1, STEPS))
        report_progress(Progress("import bad\x1b]0;name", 3_000_000, 6_000_000, "bytes"))
        report_progress(Progress("encode", 7, 10, "texts"))
        lines = [(task.description, task.completed, task.total) for task in display.tasks]
        assert lines == [("placements", 0, 2), ("encode", 7, 10)]
        report_progress(Progress("topics", 0, 1, STEPS))
    assert [(task.description, task.completed) for task in display.tasks] == [("topics", 1)]


def on_terminal(arguments: list[str], *, may_fail: bool = False) -> tuple[str, str]:
    """The stdout of a command, and what it showed on stderr, which is a terminal."""
    controller, terminal = pty.openpty()
    environment = clean_environment(TERM="xterm", COLUMNS="120")
    with tempfile.TemporaryFile() as stdout:
        with os.fdopen(terminal, "w+b", buffering=0) as stderr:
            process = warm.Process(["-m", "memstate_pipeline", *arguments], environment, stdout, stderr)
        shown = b"".join(read_until_closed(controller))
        assert process.wait(timeout=120) == 0 or may_fail, shown.decode()
        stdout.seek(0)
        answer = stdout.read()
    os.close(controller)
    return answer.decode(), shown.decode(errors="replace")
