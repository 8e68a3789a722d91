"""A clone of a store for trial runs: it reads the same bytes, and its writes do not reach the original.

Files that are never rewritten in place are hard links, so a clone of a large store takes little time and
space: the data and log files of Delta tables, and published snapshots. Files that may be rewritten are copies: the
settings, the dumps in the inbox, which their writer may still change, journal segments that wait to be collected, the
notes on files with which processes died, and evidence that failed runs set aside for the next one. The embedding cache
is shared, since it only saves time.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from memstate_core.ingest.accesses.journal_segments import waiting_segments
from memstate_core.ingest.begun_files import INBOX, JOURNAL, notes_of
from memstate_core.ingest.dumps import dumps_in
from memstate_core.model.errors import StoreNotFound
from memstate_core.policy.settings import FILE_NAME
from memstate_core.run.run import pending_path
from memstate_core.run.store import Store, open_store
from memstate_core.state.absent import require_here
from memstate_core.state.files import link_or_copy
from memstate_core.state.home import Home
from memstate_core.state.ledger.chain import CHAIN
from memstate_core.state.lock import exclusive

_NAME = "plan"
_REWRITTEN = ("CURRENT", ".CURRENT.part", "_last_checkpoint", CHAIN)
_OF_A_PROCESS = ("*.lock", "*.holder.json")


@contextmanager
def cloned(store: Store) -> Iterator[Store]:
    """A clone of the store for the length of the block, in its work folder; there is one at a time.

    The store's locks are held while the clone is made, so that no write intervenes, and released while it is
    used. Remains of an earlier clone, left by a killed process, are removed first.

    Raises:
        StoreNotFound: the home does not exist.
        StoreLocked: a run or another clone holds the store, or an import held the ledger's lock for too long.
        SnapshotAbsent: a bounded checkout has not all of them, since a night began after it was brought up to date.
    """
    if not store.home.root.is_dir():
        raise StoreNotFound(str(store.home.root), "nothing")
    root, holder = store.home.work(_NAME), f"process {os.getpid()} (memstate plan)"
    with exclusive(root.with_suffix(".lock"), holder):
        shutil.rmtree(root, ignore_errors=True)
        try:
            _clone(store, Home(root), holder)
            yield open_store(root)
        finally:
            shutil.rmtree(root, ignore_errors=True)


def _clone(store: Store, clone: Home, holder: str) -> None:
    home = store.home
    clone.inbox.mkdir(parents=True)
    clone.accesses.mkdir()
    clone.imports.mkdir()
    clone.local_only.write_text(str(store.models_base.absolute()))
    pending = [pending_path(home.work(shard)) for shard in store.shards]
    set_aside = clone.work(_NAME).parent
    set_aside.mkdir(parents=True, exist_ok=True)
    home.cache.parent.mkdir(parents=True, exist_ok=True)
    clone.cache.parent.symlink_to(home.cache.parent.absolute(), target_is_directory=True)
    with ExitStack() as locks:
        locks.enter_context(exclusive(home.lock, holder))
        if home.ledger.is_dir():
            locks.enter_context(store.ledger.writing(holder))
        require_here(home, store.shards)
        for folder in (home.ledger, home.root / "snapshots"):
            _link_tree(folder, clone.root / folder.name)
        copies = [(home.root / FILE_NAME, clone.root)]
        copies += [(dump, clone.inbox) for dump in (dumps_in(home.inbox) if home.inbox.is_dir() else [])]
        copies += [(segment, clone.accesses) for segment in waiting_segments(home.accesses)]
        copies += [(file, set_aside) for file in pending]
        copies += [(file, clone.imports) for name in (INBOX, JOURNAL) for file in notes_of(home.imports, name)]
        for file, target in copies:
            with suppress(FileNotFoundError):
                shutil.copy2(file, target / file.name)


def _link_tree(source: Path, target: Path) -> None:
    if source.is_dir():
        ignored = shutil.ignore_patterns(*_OF_A_PROCESS)
        shutil.copytree(source, target, copy_function=_link, ignore=ignored)


def _link(source: str, target: str) -> None:
    """Links a file; copies it if it may be rewritten or if the file system has no links."""
    if Path(source).name in _REWRITTEN:
        shutil.copy2(source, target)
    else:
        link_or_copy(Path(source), Path(target))
