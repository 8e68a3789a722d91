"""A store works in a folder of any supported name, from the first import to a verified snapshot, also after a move."""

import json
from pathlib import Path

import pytest

from tests.pipeline.conftest import run_memstate

NAME = "müller & \"söhne\" #1 {100%} 'x' *日本*"
PRIVATE = {(True, 0o700), (False, 0o600)}
"""A home was made readable by everybody whom the umask allowed."""

ROW = {"title": "Acme renewal", "topic_kind": "deal", "fields": [{"name": "owner", "value": "Aya"}]}


@pytest.mark.slow
def test_a_night_in_an_oddly_named_home_and_after_moving_it(tmp_path: Path) -> None:
    home, dump = tmp_path / NAME, tmp_path / "dump.jsonl"
    dump.write_text(json.dumps(ROW))
    assert run_memstate(home, "import", str(dump), "--json").document["accepted"] == 1
    first = run_memstate(home, "maintain", "--now", "2026-01-01T02:00:00Z", "--json")
    assert first.code == 0, first.stderr
    assert {(path.is_dir(), path.stat().st_mode & 0o777) for path in [home, *home.rglob("*")]} == PRIVATE
    moved = tmp_path / "moved #2"
    home.rename(moved)
    (tmp_path / "a link").symlink_to(moved)
    status = run_memstate(tmp_path / "a link", "status", "--json").document
    assert status["state_hash"] == first.document["state_hash"]
    verified = run_memstate(moved, "verify")
    assert verified.code == 0, verified.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a link", "dump.jsonl", "moved #2"]


@pytest.mark.slow
@pytest.mark.usefixtures("no_settings")
@pytest.mark.parametrize("name", [" at both ends ", "/".join(["a folder of sixty letters " + "x" * 34] * 4)])
def test_a_night_runs_in_a_home_with_spaces_at_its_ends_or_a_long_path(tmp_path: Path, name: str) -> None:
    home, dump = tmp_path / name, tmp_path / "dump.jsonl"
    dump.write_text(json.dumps(ROW))
    assert run_memstate(home, "import", str(dump)).code == 0
    night = run_memstate(home, "maintain", "--now", "2026-01-01T02:00:00Z")
    assert night.code == 0, night.stderr
    assert run_memstate(home, "verify").code == 0


@pytest.mark.slow
def test_doctor_says_that_others_can_enter_the_home(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home").chmod(0o755)  # whatever the umask
    found = {row["name"]: row for row in run_memstate(tmp_path / "home", "doctor", "--json").document}["home"]
    assert "chmod 700" in found["detail"]
    (tmp_path / "home").chmod(0o700)
    found = {row["name"]: row for row in run_memstate(tmp_path / "home", "doctor", "--json").document}["home"]
    assert "chmod" not in found["detail"]


@pytest.mark.slow
def test_a_home_that_cannot_be_addressed_is_refused_with_a_sentence(tmp_path: Path) -> None:
    refused = run_memstate(tmp_path / "what?", "status")
    assert refused.code == 2
    assert "Choose another folder" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert list(tmp_path.iterdir()) == []
