"""What a server acknowledged is on disk: the file, and every folder that leads to it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memstate_core.serve.inbox_writer import InboxWriter


def test_the_first_write_flushes_its_file_and_all_folders_that_it_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The entries of new folders in their parents were not flushed."""
    flushed: list[Path] = []
    flush = os.fsync

    def recording(handle: int) -> None:
        flushed.append(Path(f"/proc/self/fd/{handle}").readlink())
        flush(handle)

    monkeypatch.setattr(os, "fsync", recording)
    home = tmp_path / "home"
    name = InboxWriter(home / "inbox", home / "inbox.key").append(b'{"text": "a"}\n')
    draft = flushed.index(home / "inbox" / f".{name}.part")
    assert home / "inbox" in flushed[draft:]
    assert {tmp_path, home} <= set(flushed[:draft])
    assert (home / "inbox").stat().st_mode & 0o777 == 0o700
