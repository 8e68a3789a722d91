"""Examinations of the installation: packages, disk, home, lock, settings and language model."""

from __future__ import annotations

import importlib.metadata
import os
import shlex
import shutil
from contextlib import closing
from pathlib import Path

from memstate_core.model.errors import ExtractorUnavailable, StoreLocked
from memstate_core.run.shard_count import other_count
from memstate_core.run.store import Store
from memstate_core.state.lock import exclusive
from memstate_pipeline.doctor.finding import PATIENCE_SECONDS, Finding
from memstate_pipeline.writers import nights_in_progress

PACKAGES = ("dagster", "kuzu", "polars", "deltalake", "sentence-transformers", "torch", "scikit-learn")
LOW_DISK_BYTES = 2 << 30


def packages() -> Finding:
    """The versions of the packages that memstate needs."""
    missing = [name for name in PACKAGES if not _version(name)]
    found = ", ".join(f"{name} {_version(name)}" for name in PACKAGES if name not in missing)
    return Finding("packages", not missing, f"missing: {', '.join(missing)}" if missing else found)


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def disk(root: Path) -> Finding:
    """Whether the disk of the home has enough free space."""
    existing = next(path for path in (root, *root.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    return Finding(
        "disk",
        free > LOW_DISK_BYTES,
        f"{free / (1 << 30):.1f} GiB free at {existing}; 2 GiB or more are recommended",
    )


def settings(store: Store) -> Finding:
    """The settings in force, which loaded."""
    digest = store.settings.policy.digest()[:12]
    named, count = store.settings.store.shards, other_count(store)
    if count is not None:
        advice = f"set it back, then `memstate reshard {named}` changes their number"
        has = f"the store has {count} shard{'s' * (count != 1)}"
        return Finding("settings", False, f"store.shards is {named}, {has}: {advice}")
    return Finding("settings", True, f"valid; policy {digest}…, {named} shard{'s' * (named != 1)}")


def extractor(store: Store) -> Finding:
    """Lists the models of a configured endpoint; a server without such a list counts as reachable."""
    settings = store.settings.extractor
    if not settings.configured:
        return Finding("extractor", True, "no language model configured; turns are processed without one")
    from memstate_core.llm.endpoint import Endpoint
    from memstate_core.remote.connection import RequestFailed

    patient = settings.model_copy(update={"timeout_seconds": min(settings.timeout_seconds, PATIENCE_SECONDS)})
    name = f"{settings.model} at {settings.base_url}"
    try:
        with closing(Endpoint(patient)) as endpoint:
            models = endpoint.models()
    except ExtractorUnavailable as error:
        return Finding("extractor", False, str(error))
    except RequestFailed as failed:
        listless = failed.status in (404, 405, 501)
        advice = "it lists no models" if listless else "runs work without it until it answers"
        return Finding("extractor", listless, f"{name}: {failed}; {advice}")
    known = "" if settings.model in models else f"; it does not list that model, but {', '.join(models[:5]) or 'none'}"
    return Finding("extractor", True, f"{name}: reachable{known}")


def writable(store: Store) -> Finding:
    """Whether the home can be written, and by whom entered."""
    root = store.home.root
    existing = next(path for path in (root, *root.parents) if path.exists())
    if not os.access(existing, os.W_OK):
        return Finding("home", False, f"{existing} is not writable; pass --home DIR")
    is_shared = root.exists() and root.stat().st_mode & 0o077
    advice = f", and others can enter it: `chmod 700 {shlex.quote(str(root))}` keeps it to its owner"
    return Finding("home", True, f"{root} is writable{advice if is_shared else ''}")


def lock(store: Store) -> Finding:
    """Who writes to the store now."""
    if not store.home.root.exists():
        return Finding("lock", True, "free")
    try:
        with exclusive(store.home.lock, "memstate doctor"):
            return Finding("lock", True, "; ".join(nights_in_progress(store)) or "free")
    except StoreLocked as error:
        return Finding("lock", True, str(error))
    except OSError as error:
        return Finding("lock", True, f"not examined, since the home cannot be written: {error.strerror}")
