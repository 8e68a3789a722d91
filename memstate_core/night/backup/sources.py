"""The files of a backup, where each is read from, and the digests that are known without reading.

Not among them: caches, Dagster's run history, scratch, and files in the `processed` folders that memstate wrote itself,
whose rows the ledger holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from memstate_core.ingest.api_files import written_at
from memstate_core.ingest.dumps import shown
from memstate_core.model.errors import LedgerDamaged, MemstateError, SnapshotDamaged
from memstate_core.night.backup.capture import Captured, files_below
from memstate_core.policy.settings import FILE_NAME
from memstate_core.state.home import Home
from memstate_core.state.ledger.chain import read_chain
from memstate_core.state.ledger.commits import LAST_CHECKPOINT
from memstate_core.state.ledger.erased_observations import ERASED
from memstate_core.state.ledger.keeper import replaced_chains

LEDGER = "the ledger"


@dataclass(frozen=True)
class Source:
    """One file of a backup.

    Attributes:
        path: its place below the home.
        file: where it is read.
        sha256: the digest that was recorded when it was written; None if there is no record.
        owner: `LEDGER`, or the name of a served snapshot, where a file with another digest is damage.
    """

    path: Path
    file: Path
    sha256: str | None = None
    owner: str | None = None

    def damage(self, home: Home, problem: str) -> MemstateError:
        """The error that says that the file is not as it was written."""
        if self.owner == LEDGER:
            return LedgerDamaged(str(home.ledger), [f"{self.path.relative_to(home.ledger.name)} {problem}"])
        return SnapshotDamaged(str(self.owner), [f"{self.path.name} {problem}"])


def sources(home: Home, found: Captured) -> Iterator[Source]:
    """The files of a backup; what is left out is added to the capture.

    Args:
        home: the home of the store.
        found: the moment that was captured of it.
    """
    yield from _captured(found)
    yield from _ledger(home, found.home)
    single = (home.root / FILE_NAME, home.keys, home.inbox_key, home.ledger / ERASED)
    for file in (*single, *replaced_chains(home.ledger)):
        if file.is_file():
            yield Source(file.relative_to(home.root), file)
    for folder in (home.processed, home.failed, home.failed_accesses, home.reports, home.erasures):
        yield from _kept(home, folder, found)


def _captured(found: Captured) -> Iterator[Source]:
    served = {snapshot.path: snapshot.name for snapshot in found.served}
    known = {
        snapshot.path / name: (digest, served.get(snapshot.path))
        for snapshot in found.snapshots
        for name, digest in snapshot.manifest.files.items()
    }
    for file in files_below(found.home.root):
        yield Source(file.relative_to(found.home.root), file, *known.get(file, (None, None)))


def _ledger(home: Home, captured: Home) -> Iterator[Source]:
    """Data and commits, which never change; the chain was captured and names them."""
    for table, files in read_chain(captured.ledger).files.items():
        for name, digest in files.items():
            if name != LAST_CHECKPOINT:
                file = home.ledger / table / name
                yield Source(file.relative_to(home.root), file, digest, LEDGER)


def _kept(home: Home, folder: Path, found: Captured) -> Iterator[Source]:
    """Files that nothing rewrites; drafts and symbolic links are left out."""
    for file in files_below(folder):
        path = file.relative_to(home.root)
        if file.is_symlink():
            found.left_out.append(f"{shown(path)}: it is a symbolic link")
        elif not file.name.startswith(".") and not (folder == home.processed and written_at(file.name) is not None):
            yield Source(path, file)
