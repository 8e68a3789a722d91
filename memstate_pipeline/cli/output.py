"""What commands say, and where: one JSON document or a few lines on stdout, all else on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.progress import Progress

    from memstate_core.run.store import Store


@dataclass(frozen=True)
class Context:
    """What every command gets: the home as given."""

    home: str | None

    @property
    def store(self) -> Store:
        """The store that the command works on.

        Raises:
            SettingsError: its settings are not allowed.
        """
        from memstate_core.run.store import home_path, open_store

        return open_store(home_path(self.home))


Json = typer.Option("--json", help="Print one JSON document on stdout.")


def show(document: Any, as_json: bool, lines: Callable[[], Sequence[str]]) -> None:
    """Prints a document as JSON, or the lines that say the same to people."""
    text = json.dumps(document, ensure_ascii=False, default=str) if as_json else "\n".join(lines())
    sys.stdout.write(text + "\n")


def note(message: str) -> None:
    """Says something beside the answer, on stderr."""
    sys.stderr.write(message + "\n")


def fail(error: Exception, exit_code: int, as_json: bool) -> None:
    """Says what went wrong, on stderr and, where JSON was asked for, as a document on stdout."""
    note(f"memstate: {error}")
    if as_json:
        _show_error(error, str(error), exit_code, getattr(error, "facts", {}))


def show_usage_error(end: SystemExit) -> None:
    """Prints wrong usage as a document on stdout; typer has said it to people before it ended the process."""
    problem = end.__context__
    if problem is not None and hasattr(problem, "format_message"):
        _show_error(problem, problem.format_message(), end.code, {})


def _show_error(error: BaseException, message: str, exit_code: Any, facts: Mapping[str, Any]) -> None:
    document = {"error": {"type": type(error).__name__, "message": message, "exit_code": exit_code, **facts}}
    sys.stdout.write(json.dumps(document, ensure_ascii=False, default=str) + "\n")


@contextmanager
def progress_bar() -> Iterator[Progress | None]:
    """A progress display on stderr, on a terminal only."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield bar


def as_uri(path: Path) -> str:
    """A file as a link that terminals open."""
    return path.absolute().as_uri()
