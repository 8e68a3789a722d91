"""The chain of the ledger: the SHA-256 of every file that a commit wrote, each entry with the digest of the one before.

A Delta table does not notice when its last commits are lost or when bytes of its files change. `chain.jsonl` beside
the tables has a line for each commit, and a snapshot's manifest names the last line it was made of. A ledger from
before the chain gets it at the first write: its files are recorded as they are found.

Invariant: a line is written after the files it names are on disk and before the commit is acknowledged. So a commit
without a line was never acknowledged, and a named file that is missing or differs is damage, unless a later line says
that it was removed because nothing reads it any more (`vacuum`). A chain that was lost and begun anew says so in
its first line (`beginning`).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import MsgspecError, Struct
from msgspec import json as msgjson

from memstate_core.state.files import PRIVATE_FILE, sync_path
from memstate_core.state.ledger.beginning import Beginning
from memstate_core.state.ledger.commits import version_of
from memstate_core.state.ledger.read_once import digest_once

CHAIN = "chain.jsonl"


class Entry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line.

    Attributes:
        table: the table that was written; empty for a line that only says that the chain was begun anew.
        files: SHA-256 by path below the table's folder: commits, checkpoints and data.
        previous: SHA-256 of the line before, without its line feed; empty for the first.
        removed: data files, named by earlier lines, that a vacuum removes after this line is written.
        begun: for the first line of a chain that was begun anew, each time that this happened.
    """

    table: str
    files: dict[str, str]
    previous: str
    removed: tuple[str, ...] = ()
    begun: tuple[Beginning, ...] = ()


@dataclass
class Chain:
    """What the file holds.

    Attributes:
        size: bytes of whole lines; what follows was cut short by a kill and was never acknowledged.
        heads: the digest of each line, oldest first.
        files: SHA-256 by table and path, without those that were removed.
        removed: paths that were removed, by table.
        versions: the last commit of each table.
        problems: lines that are not what the next line or the format says.
        begun: each time that the chain was begun anew.
    """

    size: int = 0
    heads: list[str] = field(default_factory=list)
    files: dict[str, dict[str, str]] = field(default_factory=dict)
    removed: dict[str, set[str]] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    begun: list[Beginning] = field(default_factory=list)

    @property
    def head(self) -> str | None:
        """The digest of the last line; None for an empty chain."""
        return self.heads[-1] if self.heads else None

    def knows(self, head: str) -> bool:
        """Whether it has an entry, or was begun anew in the place of a chain that had it."""
        return head in self.heads or any(head in beginning.heads for beginning in self.begun)

    def add(self, line: bytes) -> None:
        """Takes in the next whole line."""
        self.size += len(line) + 1
        expected = self.head or ""
        self.heads.append(hashlib.sha256(line).hexdigest())
        try:
            entry = msgjson.decode(line, type=Entry)
        except MsgspecError as error:
            self.problems.append(f"{CHAIN}, line {len(self.heads)}: {error}")
            return
        if entry.previous != expected:
            self.problems.append(f"{CHAIN}, line {len(self.heads)}: it does not follow the line before it")
        self.begun += entry.begun
        if not entry.table:
            return
        recorded = self.files.setdefault(entry.table, {})
        recorded.update(entry.files)
        for name in entry.removed:
            recorded.pop(name, None)
        self.removed.setdefault(entry.table, set()).update(entry.removed)
        found = [version for name in entry.files if (version := version_of(name)) is not None]
        self.versions[entry.table] = max([self.versions.get(entry.table, -1), *found])


def read_chain(ledger: Path, head: str | None = None) -> Chain:
    """The chain of a ledger, up to an entry if one is named; an empty one where it has none yet."""
    try:
        return parsed_chain((ledger / CHAIN).read_bytes(), head)
    except FileNotFoundError:
        return Chain()


def parsed_chain(content: bytes, head: str | None = None) -> Chain:
    """The chain that a file's bytes hold, up to an entry if one is named.

    A last line without a line feed was cut short and is left out.
    """
    chain = Chain()
    *lines, _cut_short = content.split(b"\n")
    for line in lines:
        chain.add(line)
        if head is not None and chain.head == head:
            break
    return chain


def beginning_line(begun: Iterable[Beginning]) -> bytes:
    """The first line of a chain that was begun anew."""
    return msgjson.encode(Entry(table="", files={}, previous="", begun=tuple(begun)))


def next_line(chain: Chain, table: str, files: Mapping[str, str], removed: Iterable[str] = ()) -> bytes:
    """The line that follows the last one of a chain."""
    return msgjson.encode(Entry(table=table, files=dict(files), previous=chain.head or "", removed=tuple(removed)))


def extend(ledger: Path, chain: Chain, table: str, files: Mapping[str, str], removed: Iterable[str] = ()) -> None:
    """Writes the next line and flushes it; the files that it names are on disk already, and so are those to remove."""
    path = ledger / CHAIN
    is_new = not path.exists()
    line = next_line(chain, table, files, removed)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, PRIVATE_FILE), "wb") as file:
        file.truncate(chain.size)
        file.seek(chain.size)
        file.write(line + b"\n")
        file.flush()
        os.fsync(file.fileno())
    if is_new:
        sync_path(ledger)
    chain.add(line)


def changed_files(ledger: Path, table: str, recorded: Mapping[str, str]) -> list[str]:
    """What became of a table's recorded files, one sentence each; empty if every byte is as it was written."""
    return [
        f"{table}: {name} {problem}"
        for name, digest in sorted(recorded.items())
        if (problem := _difference(ledger / table / name, digest))
    ]


def _difference(path: Path, expected: str) -> str | None:
    try:
        found = digest_once(path)
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return None if found == expected else f"has SHA-256 {found}, written was {expected}"
