"""The copies in a home of what was fetched from the inbox at its URL: files named after the digest of an object.

Invariant: a file leaves the inbox, or the access journal, for its folder `processed` once its rows are in the ledger or
the quarantine. So its place says whether an object may be removed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from memstate_core.ingest.api_files import file_name, make_key, signed
from memstate_core.state.files import make_folder, replace_file
from memstate_core.state.home import Home
from memstate_core.storage.remote_inbox import ACCESSES, WaitingObject

_SEGMENT = "remote-"
_OBSERVATIONS = re.compile(r"api-\d{20}-([0-9a-f]{64})[._]").match
_ACCESSES = re.compile(rf"{_SEGMENT}([0-9a-f]{{64}})\.").match


@dataclass(frozen=True)
class LocalCopies:
    """The digests of the objects that a home has copies of.

    Attributes:
        waiting: of copies with rows that are not in the ledger yet, or could not be read.
        processed: of copies that were read to their end.
    """

    waiting: frozenset[str]
    processed: frozenset[str]

    @property
    def committed(self) -> frozenset[str]:
        """What is in the ledger or the quarantine, to the last row; a file may have been divided."""
        return self.processed - self.waiting

    @property
    def held(self) -> frozenset[str]:
        """What is in the home at all."""
        return self.processed | self.waiting


def local_copies(home: Home) -> LocalCopies:
    """The copies that a home has now."""
    waiting = (home.inbox, home.failed, home.accesses, home.failed_accesses)
    return LocalCopies(_digests(waiting), _digests((home.processed, home.collected)))


def keep_copy(home: Home, fetched: WaitingObject, content: bytes) -> None:
    """Writes the copy of an object, complete and durable, where the next run reads it.

    Observations become a file as a server of this home writes it, named by the time when they were stored. If the bytes
    are not those that were accepted, the file says so, and a run moves it to `inbox/failed`.
    """
    if fetched.name.startswith(f"{ACCESSES}/"):
        folder, name, kept = home.accesses, f"{_SEGMENT}{fetched.sha256}.jsonl", content
    else:
        at = int(fetched.written_at.timestamp()) * 10**9 + fetched.written_at.microsecond * 1000
        folder, name = home.inbox, file_name(at, fetched.sha256)
        kept = signed(content, make_key(home.inbox_key), fetched.sha256)
    make_folder(folder)
    replace_file(folder / name, kept)


def _digests(folders: Iterable[Path]) -> frozenset[str]:
    names = (path.name for folder in folders if folder.is_dir() for path in folder.iterdir())
    return frozenset(found[1] for name in names if (found := _OBSERVATIONS(name) or _ACCESSES(name)))
