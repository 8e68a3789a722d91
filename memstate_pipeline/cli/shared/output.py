"""Output of commands: one JSON document or a few lines on stdout, everything else on stderr."""

from __future__ import annotations

import errno
import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from memstate_pipeline.cli.shared.terminal import visible, visible_json

if TYPE_CHECKING:
    from memstate_core.run.store import Store


@dataclass
class Context:
    """The options that stand before a command's name.

    Attributes:
        home: the store's folder or URL as given; None for $MEMSTATE_HOME or ~/.memstate.
        debug: whether errors show their traceback.
    """

    home: str | None = None
    debug: bool = False

    @property
    def store(self) -> Store:
        """The store that the command works on; one that a URL names is fetched if nothing of it is here yet.

        Raises:
            SettingsError: a setting of it is not allowed.
            StoreUrlRefused: the URL is none of a store.
            StoreUnreachable: the storage of the URL does not answer.
        """
        from memstate_core.run.home_path import home_path, is_url, named_home
        from memstate_core.run.store import open_store

        store = open_store(home_path(self.home))
        if is_url(named_home(self.home)) and not store.home.checkout.exists():
            from memstate_core.night.checkout.pull import pull

            pull(store)
        return store

    @property
    def existing_store(self) -> Store:
        """The store, for commands that only read.

        Raises:
            StoreNotFound: there is no such folder, for example because its name is mistyped.
        """
        from memstate_core.model.errors import StoreNotFound

        store = self.store
        if not store.home.root.is_dir():
            raise StoreNotFound(str(store.home.root), "no store")
        return store

    @property
    def begun_store(self) -> Store:
        """The store, for commands that write but begin none; a checkout begins with what is at the URL.

        Raises:
            StoreNotFound: there is no such folder, for example because its name is mistyped.
        """
        store = self.store
        return store if store.settings.store.url else self.existing_store


Json = typer.Option("--json", help="Print one JSON document on stdout.")


def show(document: Any, as_json: bool, lines: Callable[[], Iterable[str]]) -> None:
    """Prints a document as JSON, or lines of text with the same content."""
    if as_json:
        show_json(document)
    else:
        show_lines(lines())


def show_lines(lines: Iterable[str]) -> None:
    """Prints lines of text on stdout."""
    _write(sys.stdout, "".join(f"{_line(line)}\n" for line in lines))


def show_json(document: Any) -> None:
    """Prints a document as JSON on stdout."""
    _write(sys.stdout, visible_json(json.dumps(document, ensure_ascii=False, default=str)) + "\n")


def note(message: str) -> None:
    """Prints a message on stderr, where it does not mix with the answer."""
    _write(sys.stderr, visible(message) + "\n")


def as_uri(path: Path) -> str:
    """A file as a link that terminals open."""
    return path.absolute().as_uri()


def _line(text: str) -> str:
    """One line of output: a line feed inside it, as in a hostile title, must not begin another."""
    return visible(text).replace("\n", "\\n")


def _write(stream: Any, text: str) -> None:
    if stream is None:
        raise OSError(errno.EBADF, "The output is closed")
    # Lone surrogates, from file names that are no UTF-8, have no encoding; in JSON the escape is the same.
    stream.write(text.encode("utf-8", "backslashreplace").decode())
    stream.flush()
