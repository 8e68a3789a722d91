"""The section `[store]` of `memstate.toml`: shards, snapshots, memory, priority and where the store is kept."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from memstate_core.policy.loading import Section, form

STORE_URL = r"(s3|gs|az|file)://[^@?#]+"
STORE_URL_FORM = "an address such as s3://bucket/prefix, gs://…, az://… or file://…, without credentials or options"
"""What the URL of a store looks like: no credentials, no options."""


class StoreSettings(Section):
    """Shards, retention, memory and priority of the store."""

    shards: Annotated[int, Field(ge=1, le=256)] = 1
    """Number of shards of a store that begins. Scopes are hashed to shards; each has its own graph and is one Dagster
    partition. Once something is published, `memstate reshard N` changes the number, here too; after such a change runs
    and corrections refuse another value."""
    keep_snapshots: Annotated[int, Field(ge=1, le=1000)] = 7
    """Number of published snapshots that each shard keeps for rollback and as-of queries; older ones are deleted."""
    keep_snapshot_days: Annotated[float, Field(ge=0, le=36_500)] = 0.0
    """Age in days beyond which a published snapshot is deleted as well, by the logical times of the nights; 0 keeps any
    age. The served snapshot always stays."""
    keep_snapshot_mib: Annotated[int, Field(ge=0, le=16_777_216)] = 0
    """Total size of the snapshots of a shard, in MiB, beyond which the oldest are deleted as well; 0 sets no limit. The
    served snapshot always stays."""
    graph_buffer_mib: Annotated[int, Field(ge=64, le=1_048_576)] = 2048
    """Size of the graph database's buffer pool, in MiB, for each graph that a run opens."""
    memory_mib: Annotated[int, Field(ge=0, le=16_777_216)] = 0
    """Memory that a run, an import or a correction may allocate beyond what its process holds at the beginning, in MiB
    (Linux). A run that needs more finds the evidence that takes it and sets it aside; other commands fail and change
    nothing. 0 stands for four fifths of the machine's memory."""
    lock_wait_seconds: Annotated[float, Field(ge=0, le=3600)] = 30.0
    """Seconds that a writer waits for the ledger's lock before it fails with exit code 3."""
    nights_at_once: Annotated[int, Field(ge=1, le=256)] = 1
    """Number of shards that have their night at the same time, each in a process of its own with memory of its own.
    With 1 they have it one after another. Machines of a store at a URL need the same value, or 1."""
    search_processes: Annotated[int, Field(ge=0, le=256)] = 0
    """Number of processes in which a night searches scopes for duplicates, each with memory of its own, where there are
    so many to search that it saves time. 0 stands for the cores of the machine, divided by `nights_at_once`, and at
    most 8. Results do not depend on it."""
    niceness: Annotated[int, Field(ge=0, le=19)] = 5
    """Scheduling priority of maintenance, in steps of nice(1); at 0 it competes with a server on the same machine."""
    url: Annotated[str, Field(pattern=rf"^$|^{STORE_URL}$"), form(STORE_URL_FORM)] = ""
    """Address at which the store is kept, so that any machine may write it next: s3://, gs://, az:// or file://. This
    home is a checkout of it then. Credentials come from the environment. Empty: the store is this home."""
    lease_seconds: Annotated[float, Field(ge=1, le=86_400)] = 60.0
    """Seconds after its last renewal at which the lease of a store at a URL may be taken by another machine, by the
    clock of the storage. A writer renews it three times as often."""
    checkout_mib: Annotated[int, Field(ge=0, le=16_777_216)] = 0
    """Total size of the snapshots in a checkout, in MiB, where machines have nights of shards at once
    (`nights_at_once`). A night fetches those of its shard alone, and those of shards that had no night here for longest
    are removed from this machine, never from the URL. Commands that need the whole store fetch the rest. 0: a checkout
    is the whole store."""
