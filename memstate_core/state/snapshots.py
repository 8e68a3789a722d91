"""Snapshots: immutable published versions of a shard. Which of them is served is the matter of `current`.

A folder `snapshots/<shard>/<n>/` is complete before it gets its name, and never changes afterwards.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec import json as msgjson

from memstate_core.model.errors import SnapshotDamaged
from memstate_core.state.files import file_digest
from memstate_core.state.home import Home

SCHEMA_VERSION = 3
MANIFEST = "manifest.json"


class Manifest(Struct, frozen=True, kw_only=True):
    """What a snapshot is, and the digest of each of its files.

    `ledger_head` is the last entry of the ledger's chain when the run began; None in manifests from before the chain.
    `made_by` is the version of memstate that folded the state; empty in manifests from before it was recorded.
    `checked_by` is the version by whose conditions C1 to C6 the state was checked before it was published; empty where
    it was not, as after a rebuild.
    """

    schema_version: int
    shard: str
    number: int
    run_id: str
    now: datetime
    embedding_model: str
    policy_hash: str
    policy: dict[str, Any]
    evidence_version: int | None
    accesses_version: int | None = None
    ledger_head: str | None = None
    counts: dict[str, int]
    state_hash: str
    graph_fresh_bytes: int
    files: dict[str, str]
    made_by: str = ""
    checked_by: str = ""


@dataclass(frozen=True)
class Snapshot:
    """A published version."""

    path: Path
    manifest: Manifest

    @property
    def name(self) -> str:
        """Its name in answers: `<shard>/<n>`."""
        return f"{self.manifest.shard}/{self.manifest.number}"

    @property
    def home(self) -> Home:
        """The store that it belongs to."""
        return Home(self.path.parents[2])

    def has(self, name: str) -> bool:
        """Whether the version was published with a file of this name; older ones lack some."""
        return name in self.manifest.files

    def written_at(self) -> datetime:
        """When it was written, by the machine's clock."""
        return datetime.fromtimestamp((self.path / MANIFEST).stat().st_mtime, UTC)

    @property
    def size(self) -> int:
        """Bytes of its files."""
        return sum((self.path / name).stat().st_size for name in self.manifest.files)

    def is_removed(self) -> bool:
        """Whether it is no longer kept; what is open of it can still be read."""
        return not (self.path / MANIFEST).exists()

    def missing(self) -> list[str]:
        """The files that the manifest names and that are not there."""
        return sorted(name for name in self.manifest.files if not (self.path / name).is_file())

    def damage(self) -> list[str]:
        """Differences between its files and the manifest; empty if it is intact."""
        found = file_digests(self.path)
        names = sorted(set(found) | set(self.manifest.files))
        return [
            f"{name}: SHA-256 is {found.get(name, 'missing')}, expected {self.manifest.files.get(name, 'no such file')}"
            for name in names
            if found.get(name) != self.manifest.files.get(name)
        ]


def file_digests(folder: Path, base: Snapshot | None = None) -> dict[str, str]:
    """SHA-256 of every file below a folder except its manifest, by relative path.

    Args:
        folder: the folder.
        base: a snapshot that was compared with its manifest; files shared with it are not read again.
    """
    files = sorted(file for file in folder.rglob("*") if file.is_file() and file.name != MANIFEST)
    named = {str(file.relative_to(folder)): file for file in files}
    return {name: _shared_digest(base, name, file) or file_digest(file) for name, file in named.items()}


def _shared_digest(base: Snapshot | None, name: str, file: Path) -> str | None:
    """The recorded digest of a file that is one with a snapshot's, None where it is not."""
    known = None if base is None else base.manifest.files.get(name)
    return known if base is not None and known and file.samefile(base.path / name) else None


def load_snapshot(home: Home, shard: str, number: int) -> Snapshot:
    """One published version.

    Raises:
        SnapshotDamaged: its manifest is missing, unreadable, of another schema or of another snapshot.
    """
    path = home.snapshots(shard) / str(number)
    try:
        manifest = msgjson.decode((path / MANIFEST).read_bytes(), type=Manifest)
    except (OSError, ValueError) as error:
        raise SnapshotDamaged(f"{shard}/{number}", [f"{MANIFEST}: {error}"]) from None
    if manifest.schema_version != SCHEMA_VERSION:
        found = f"schema {manifest.schema_version}, expected {SCHEMA_VERSION}"
        raise SnapshotDamaged(f"{shard}/{number}", [found])
    if (manifest.shard, manifest.number) != (shard, number):
        problem = f"{MANIFEST} is that of {manifest.shard}/{manifest.number}"
        raise SnapshotDamaged(f"{shard}/{number}", [problem])
    return Snapshot(path, manifest)


def numbers(home: Home, shard: str) -> list[int]:
    """The kept versions of a shard, oldest first."""
    folder = home.snapshots(shard)
    return sorted(int(entry.name) for entry in folder.iterdir() if entry.name.isdigit()) if folder.exists() else []


def combined_state_hash(hashes: Mapping[str, str]) -> str:
    """One hash for all shards: the hash itself where there is one, else SHA-256 over `shard:hash` lines."""
    if len(hashes) == 1:
        return next(iter(hashes.values()))
    lines = "\n".join(f"{shard}:{value}" for shard, value in sorted(hashes.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


COMPRESSED_FILE = "compressed.parquet"
"""File beside the index: the revisions that summaries replace."""
PROBLEMS_FILE = "problems.parquet"
"""File beside the index: what the fold left out or could not resolve."""
