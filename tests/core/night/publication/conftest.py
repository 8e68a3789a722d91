"""Small snapshots written by hand, and what lies at a URL."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from msgspec import json as msgjson

from memstate_core.policy.settings import PublishSettings, Settings, StoreSettings
from memstate_core.run.store import Store
from memstate_core.state.current import move_current
from memstate_core.state.home import Home
from memstate_core.state.snapshots import MANIFEST, SCHEMA_VERSION, Manifest, file_digests
from memstate_core.storage.published import read_current, shard_storage
from memstate_core.storage.purpose import PUBLICATION
from memstate_core.storage.storage import OBJECTS, object_name

COMMON = b"the same in all snapshots"


def new_store(root: Path, shards: int = 1, url: str = "", writer: str = "") -> Store:
    settings = Settings(store=StoreSettings(shards=shards), publish=PublishSettings(url=url, writer_url=writer))
    return Store(Home(root), settings)


def snapshot(store: Store, number: int, text: str, shard: str = "s0") -> Path:
    """Publishes a snapshot of three files locally; it need not be one that can be searched."""
    folder = store.home.snapshots(shard) / str(number)
    (folder / "index").mkdir(parents=True)
    (folder / "graph").write_text(f"{text} of {shard}")
    (folder / "index" / "words").write_bytes(COMMON)
    (folder / "empty").touch()
    manifest = Manifest(
        schema_version=SCHEMA_VERSION,
        shard=shard,
        number=number,
        run_id=f"run-{number}",
        now=datetime(2026, 1, number, tzinfo=UTC),
        embedding_model="none",
        policy_hash="",
        policy={},
        evidence_version=number,
        counts={},
        state_hash=text,
        graph_fresh_bytes=0,
        files=file_digests(folder),
    )
    (folder / MANIFEST).write_bytes(msgjson.encode(manifest))
    move_current(store.home, shard, number)
    return folder


@dataclass(frozen=True)
class There:
    """What lies at a URL for a shard: the numbers that CURRENT names, the contents of their graphs, and orphans."""

    numbers: list[int]
    graphs: list[str]
    unnamed: set[str]


def there(where: str, shard: str = "s0") -> There:
    """Reads everything that CURRENT names; fails if anything is missing or has another digest."""
    place = shard_storage(where, shard, PUBLICATION)
    current = read_current(place, PUBLICATION)
    if current is None:
        return There([], [], set(place.sizes(OBJECTS)))
    named, graphs = set[str](), []

    def content(digest: str) -> bytes:
        named.add(object_name(digest))
        found = b"".join(place.blocks(object_name(digest)))
        assert hashlib.sha256(found).hexdigest() == digest
        return found

    for entry in current[0].snapshots:
        manifest = msgjson.decode(content(entry.manifest), type=Manifest)
        assert (manifest.shard, manifest.number) == (shard, entry.number)
        files = {name: content(digest) for name, digest in manifest.files.items()}
        graphs.append(files.get("graph", b"").decode())
    return There([entry.number for entry in current[0].snapshots], graphs, set(place.sizes(OBJECTS)) - named)
