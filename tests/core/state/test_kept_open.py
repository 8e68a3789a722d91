"""Databases that stay open between uses: opened once, always the file that the path names, all closed at the end."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pytest

from memstate_core.model.graph_tables import TOPICS
from memstate_core.state import kept_open as module
from memstate_core.state.graph import TOPIC, leftovers, open_graph
from memstate_core.state.kept_open import MOST_OPEN, close_kept, kept_open
from tests.core.frames import filled


class Files:
    """Opens files as a database would, and knows which are open."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.opened: list[str] = []
        self.open: list[str] = []

    def write(self, name: str, text: str = "") -> Path:
        path = self.folder / name
        path.write_text(text or name)
        return path

    def use(self, name: str, writes: bool = False) -> str:
        with module.opened(self.folder / name, writes, lambda: self._open(name)) as found:
            return str(found)

    @contextmanager
    def _open(self, name: str) -> Iterator[str]:
        self.opened.append(name)
        self.open.append(name)
        try:
            yield (self.folder / name).read_text()
        finally:
            self.open.remove(name)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    """Files in a folder, outside the block that every test is in."""
    monkeypatch.setattr(module._REGISTRY, "kept", None)
    files = Files(tmp_path)
    for name in ("a", "b"):
        files.write(name)
    return files


def test_a_file_is_opened_once_within_the_block_and_for_each_use_outside(files: Files) -> None:
    for _ in range(2):
        assert files.use("a") == "a"
    assert files.opened == ["a", "a"]
    with kept_open():
        assert [files.use(name) for name in "abab"] == ["a", "b", "a", "b"]
        assert files.opened == ["a", "a", "a", "b"]
        assert files.open == ["a", "b"]
    assert files.open == []


def test_a_reader_is_served_by_what_is_open_for_writing_and_not_the_other_way_round(files: Files) -> None:
    with kept_open():
        files.use("a")
        files.use("a", writes=True)
        assert files.opened == ["a", "a"]
        assert files.open == ["a"]
        files.use("a")
        assert files.opened == ["a", "a"]


def test_a_file_that_was_written_or_replaced_since_is_opened_again(files: Files) -> None:
    with kept_open():
        files.use("a")
        files.write("a", "changed")
        assert files.use("a") == "changed"
        files.write("new", "another")
        (files.folder / "new").replace(files.folder / "a")
        assert files.use("a") == "another"
        assert files.open == ["a"]


def test_a_file_stays_open_when_its_folder_is_renamed(files: Files) -> None:
    (files.folder / "draft").mkdir()
    files.write("draft/a")
    with kept_open():
        files.use("draft/a")
        (files.folder / "draft").rename(files.folder / "final")
        assert files.use("final/a") == "draft/a"
        assert files.opened == ["draft/a"]


def test_what_failed_while_it_was_used_is_closed(files: Files) -> None:
    with kept_open():
        with pytest.raises(KeyError), module.opened(files.folder / "a", True, lambda: files._open("a")):
            raise KeyError
        assert files.open == []


def test_a_file_that_is_removed_while_it_is_used_is_closed_and_missing_afterwards(files: Files) -> None:
    with kept_open():
        with module.opened(files.folder / "a", False, lambda: files._open("a")):
            (files.folder / "a").unlink()
        assert files.open == []
        with pytest.raises(FileNotFoundError):
            files.use("a")


def test_a_file_that_is_not_small_is_closed_after_each_use(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SMALL", 3)
    files.write("large", "four")
    with kept_open():
        files.use("large")
        files.use("a")
        assert files.open == ["a"]


def test_what_was_used_longest_ago_is_closed_when_too_many_are_open(files: Files) -> None:
    names = [f"f{number}" for number in range(MOST_OPEN + 1)]
    for name in names:
        files.write(name)
    with kept_open():
        for name in [*names[:MOST_OPEN], names[0], names[-1]]:
            files.use(name)
        assert files.open == [names[0], *names[2:]]


def test_a_folder_is_closed_before_it_is_removed(files: Files) -> None:
    (files.folder / "scratch").mkdir()
    files.write("scratch/a")
    with kept_open():
        files.use("scratch/a", writes=True)
        files.use("b")
        close_kept(files.folder / "scratch")
        assert files.open == ["b"]


def test_another_thread_keeps_nothing_open(files: Files) -> None:
    with kept_open():
        files.use("a")
        other = threading.Thread(target=lambda: files.use("a"))
        other.start()
        other.join()
        assert files.opened == ["a", "a"]
        assert files.open == ["a"]


@pytest.mark.slow
def test_a_graph_that_stays_open_is_whole_in_its_file(files: Files) -> None:
    """What a killed process leaves, and what a copy of the file has: all that was written before the block ended."""
    path, copy = files.folder / "graph", files.folder / "copy"
    with kept_open():
        for number in range(3):
            topics = filled(pl.DataFrame({"id": [f"t{number}"], "title": ["A"]}), TOPICS)
            with open_graph(path) as graph:
                graph.insert(TOPIC, topics)
            with open_graph(path, read_only=True) as graph:
                assert graph.read(TOPIC, ["id"]).height == number + 1
            shutil.copyfile(path, copy)
            with open_graph(copy, read_only=True) as graph:
                assert graph.read(TOPIC, ["id"]).height == number + 1
    assert leftovers(path) == []
