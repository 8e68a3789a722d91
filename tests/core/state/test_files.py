"""Files are replaced in one step, for their owner alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from memstate_core.state.files import replace_file


def test_a_file_is_its_owners_alone_and_no_draft_stays(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        replace_file(tmp_path / "a", b"one")
        replace_file(tmp_path / "a", b"two")
    finally:
        os.umask(before)
    assert (tmp_path / "a").read_bytes() == b"two"
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_the_draft_of_a_killed_writer_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / ".a.part").write_bytes(b"a longer draft than the content")
    replace_file(tmp_path / "a", b"one")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a", b"one")]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failed_write_leaves_the_old_content_and_no_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    replace_file(tmp_path / "a", b"one")
    monkeypatch.setattr(*((os, "fsync") if step == "fsync" else (Path, "replace")), full)
    with pytest.raises(OSError, match="No space left"):
        replace_file(tmp_path / "a", b"two")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a", b"one")]
