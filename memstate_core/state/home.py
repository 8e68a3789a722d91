"""Paths under $MEMSTATE_HOME. Nothing here reads or writes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

LAYOUT = "layout.json"
"""The file below `snapshots` that says how many shards there are, once their number was changed."""


@dataclass(frozen=True)
class Home:
    """The folder of one store."""

    root: Path

    @property
    def inbox(self) -> Path:
        """Dumps dropped here are picked up by the next run."""
        return self.root / "inbox"

    @property
    def processed(self) -> Path:
        """Dumps from the inbox that were read; kept unless `retention.processed_days` is set."""
        return self.inbox / "processed"

    @property
    def failed(self) -> Path:
        """Dumps from the inbox that could not be read at all."""
        return self.inbox / "failed"

    @property
    def imports(self) -> Path:
        """Reports of imports between nights, kept until the page of a run covers them."""
        return self.root / "imports"

    @property
    def accesses(self) -> Path:
        """The access journal; the next run collects its complete segments."""
        return self.root / "accesses"

    @property
    def collected(self) -> Path:
        """Segments of the journal that were collected; kept, never deleted."""
        return self.accesses / "processed"

    @property
    def failed_accesses(self) -> Path:
        """Segments of the journal that could not be read to their end."""
        return self.accesses / "failed"

    @property
    def recorded_questions(self) -> Path:
        """Questions that were recorded for the gate on answers, a file for each day."""
        return self.root / "recall"

    @property
    def ledger(self) -> Path:
        """The Delta tables, the source of truth."""
        return self.root / "ledger"

    @property
    def cache(self) -> Path:
        """Embeddings by text hash and model; safe to delete, slow to recompute."""
        return self.root / "cache" / "embeddings.sqlite"

    @property
    def answers(self) -> Path:
        """Answers of language models by hash of the prompt; safe to delete, costly to recompute."""
        return self.cache.with_name("answers.sqlite")

    @property
    def reports(self) -> Path:
        """One page per run."""
        return self.root / "reports"

    @property
    def dagster(self) -> Path:
        """Run history and settings of Dagster."""
        return self.root / "dagster"

    @property
    def deploy(self) -> Path:
        """Units and timers that `memstate init` wrote; nothing reads them here."""
        return self.root / "deploy"

    @property
    def keys(self) -> Path:
        """API keys with their permissions; hashes only."""
        return self.root / "keys.json"

    @property
    def inbox_key(self) -> Path:
        """The secret that signs the files which servers write into the inbox."""
        return self.root / "inbox.key"

    @property
    def last_backup(self) -> Path:
        """A note on the last backup of the home."""
        return self.root / "last_backup.json"

    @property
    def last_publication(self) -> Path:
        """A note on what was published to a URL."""
        return self.root / "last_publication.json"

    @property
    def last_fetch(self) -> Path:
        """A note on what was fetched from the inbox at a URL, where replicas leave what they accept."""
        return self.root / "last_fetch.json"

    @property
    def replica(self) -> Path:
        """The note that marks the folder of a replica, which has snapshots alone."""
        return self.root / "replica.json"

    @property
    def checkout(self) -> Path:
        """The note of a checkout of a store at a URL: which state of it is here."""
        return self.root / "checkout.json"

    @property
    def discarded(self) -> Path:
        """Files of the ledger that a checkout had and the store at the URL never got; nothing reads them."""
        return self.root / "discarded"

    @property
    def local_only(self) -> Path:
        """The mark of a clone or a temporary store, which is kept at no URL, whatever the settings name."""
        return self.root / ".local"

    def cloned_from(self) -> Path | None:
        """The home that a clone was made of, as its mark names it; None for a home that is no clone."""
        named = self.local_only.read_text() if self.local_only.is_file() else ""
        return Path(named) if named else None

    @property
    def erasures(self) -> Path:
        """Certificates of erasures."""
        return self.root / "erasures"

    @property
    def begun_erasure(self) -> Path:
        """The marker of an erasure that was begun; hidden, so that no backup takes it."""
        return self.erasures / ".begun.json"

    @property
    def notifications(self) -> Path:
        """Faults that notifications were sent of, and what could not be delivered."""
        return self.root / "notifications.json"

    @property
    def lock(self) -> Path:
        """The lock that one writer holds."""
        return self.root / "run.lock"

    @property
    def verified_evidence(self) -> Path:
        """A note on the evidence in which the checkers of memory items found nothing last; safe to delete."""
        return self.root / "work" / "verified-evidence"

    def shard_lock(self, shard: str) -> Path:
        """The lock that the night of a shard holds, where nights run side by side."""
        return self.work(shard).with_suffix(".lock")

    def begun_night(self, shard: str) -> Path:
        """The mark of a night that holds its shard and has begun, so its notes here are the newest."""
        return self.work(shard).with_suffix(".begun")

    def snapshots(self, shard: str) -> Path:
        """The published versions of a shard."""
        return self.root / "snapshots" / shard

    @property
    def layout(self) -> Path:
        """The number of shards, once it was changed (`memstate_core.state.layout`)."""
        return self.root / "snapshots" / LAYOUT

    @property
    def begun_reshard(self) -> Path:
        """The marker of a change of the number of shards that was begun; hidden, so that no backup takes it."""
        return self.root / ".reshard.json"

    def work(self, shard: str) -> Path:
        """Scratch folder of the shard's run; safe to delete between runs."""
        return self.root / "work" / shard
