"""Every exception that memstate raises to its callers.

    MemstateError
    ├── SettingsError        a key of memstate.toml or a MEMSTATE_* variable is not allowed
    ├── UnreadableDump       a file that cannot be read at all
    ├── HomeUnknown          the home is below the home directory of an unknown user
    ├── HomeUnsupported      the path of a home has a character that a library cannot address
    ├── StoreLocked          another run holds the store
    ├── StoreNotFound        nothing was published here yet
    ├── TopicNotFound        no topic, tombstone or alias has this id
    ├── TopicAmbiguous       several topics have this topic_key or title
    ├── NothingToUndo        no merge and no archived topic has this id
    ├── MergeUndone          the merge is undone already
    ├── MergesUnknown        some ids name no merge
    ├── RunUnknown           the ledger records no decision of a run of this id
    ├── VerdictRefused       a verdict on two topics contradicts recorded ones
    ├── NotStale             the topic is not queued for review
    ├── SnapshotDamaged      a published file differs from its manifest
    │   └── SnapshotAbsent   a snapshot of a store at a URL is not on this machine
    ├── SnapshotRemoved      a snapshot was removed while it was read
    ├── FrameMismatch        a table has not exactly the declared columns
    ├── LedgerDamaged        the ledger lacks rows, or holds other bytes than were written
    ├── ChainNotBegun        the chain of the ledger was not begun anew; nothing was changed
    ├── CompactionRefused    joined files of the ledger have other rows; nothing was changed
    ├── DiskFull             the disk has too little space; nothing was published
    ├── HistoryUnreadable    Dagster's record of runs, or its settings, cannot be read
    ├── HistoryUnreachable   Dagster's record of runs is in a database that does not answer
    ├── StagingMissing       a step was started without the run it belongs to
    ├── StagingOfAnotherRun  a step was started on the working copy of another run
    ├── ModelUnavailable     the embedding model cannot be loaded
    ├── EncoderEndpointFailed the endpoint of the embedding model gives no vectors
    ├── DimensionMismatch    an embedding model gives vectors of another dimension
    ├── ExtractorUnavailable the configured language model cannot be used
    ├── RebuildMismatch      folding the ledger again gave another state
    ├── ReshardRefused       the number of shards cannot be changed now
    ├── ReshardMismatch      scopes would have another state, or other answers, in their new shards
    ├── ShardRetired         a run was asked for a shard that the store no longer has
    ├── RollbackRefused      there is no such snapshot to roll back to
    ├── PlanInvalid          a file is not a plan, or was modified
    ├── PlanStale            the state changed after planning, or the run decided differently
    ├── EvidenceSetAside     a step failed with some rows, which the next run leaves out
    ├── StepFailed           a step of a run failed for another reason
    ├── ShardsFailed         the runs of some shards failed, those of others published
    ├── NotAllowed           the caller's key does not permit this
    ├── KeysDamaged          the key file is not as `memstate keys` writes it
    ├── KeyRefused           a key cannot be made, or there is none of that name
    ├── BackupRefused        a folder or URL cannot take a backup
    ├── BackupNotFound       a folder holds no backup, or none of this number
    ├── BackupDamaged        a backup lacks something, or holds other bytes than were written
    ├── BackupUnreachable    object storage with backups does not answer, or refuses
    ├── CloudUnavailable     the package for object storage is missing
    ├── PublicationRefused   a folder or URL cannot take published snapshots
    ├── PublicationUnreachable object storage does not answer, so a snapshot was not published there
    ├── PublicationConflict  another publisher, or another copy of the store, was there first
    ├── SourceUnreachable    the source of a replica does not answer, or lacks what it names
    ├── InboxUnreachable     the inbox at a URL, which replicas write to, does not answer
    ├── NotOnReplica         a request needs the store that writes
    ├── StoreUrlRefused      a URL cannot hold the store of this home, or holds another one
    ├── ConditionalPutsIgnored the storage of a URL would let two writers overwrite each other
    ├── StoreUnreachable     the storage of a store at a URL does not answer
    ├── LeaseLost            another writer took the lease of a store at a URL
    ├── RemoteStoreDamaged   a store at a URL lacks something, or holds other bytes than were written
    ├── RestoreRefused       a backup cannot be restored into a folder
    ├── ErasureNotRepeated   a backup is older than an erasure, which cannot be made again in it
    ├── EraseRefused         an erasure could not be complete, so it was not begun
    ├── RunHistoryShared     Dagster's record of runs is outside the home, and nobody said if an erasure clears it
    ├── SubjectAmbiguous     several scopes have the observation or session of an erasure
    ├── SubjectNotFound      nothing in the store belongs to the subject of an erasure
    ├── CheckRefused         a correctness condition failed, nothing was published
    ├── GateRefused          a gate failed, nothing was published until a person accepts it
    ├── AcceptanceInvalid    what was accepted is no gate, or has no reason
    └── ApiError             a request to a memstate server failed
        ├── RequestInvalid       the request is invalid
        ├── AccessDenied         no key, a wrong one, or one without permission
        ├── NotFound             there is nothing with this id or address
        ├── RateLimited          too many requests for now
        ├── ServerFailed         the server failed
        └── ServerUnreachable    no answer came

Each carries its facts in `facts` and survives pickling, because errors cross worker processes.
`exit_code` is the exit status of the command line.
"""

from __future__ import annotations

from memstate_core.model.errors.api import (
    AccessDenied,
    ApiError,
    NotFound,
    RateLimited,
    RequestInvalid,
    ServerFailed,
    ServerUnreachable,
)
from memstate_core.model.errors.backups import (
    BackupDamaged,
    BackupNotFound,
    BackupRefused,
    BackupUnreachable,
    CloudUnavailable,
    RestoreRefused,
)
from memstate_core.model.errors.base import MemstateError
from memstate_core.model.errors.erasure import (
    EraseRefused,
    ErasureNotRepeated,
    RunHistoryShared,
    SubjectAmbiguous,
    SubjectNotFound,
)
from memstate_core.model.errors.inputs import (
    AcceptanceInvalid,
    HomeUnknown,
    HomeUnsupported,
    KeyRefused,
    KeysDamaged,
    MergesUnknown,
    MergeUndone,
    NotAllowed,
    NothingToUndo,
    NotStale,
    PlanInvalid,
    RunUnknown,
    SettingsError,
    TopicAmbiguous,
    TopicNotFound,
    UnreadableDump,
    VerdictRefused,
)
from memstate_core.model.errors.models import (
    DimensionMismatch,
    EncoderEndpointFailed,
    ExtractorUnavailable,
    ModelUnavailable,
)
from memstate_core.model.errors.publication import (
    InboxUnreachable,
    NotOnReplica,
    PublicationConflict,
    PublicationRefused,
    PublicationUnreachable,
    SourceUnreachable,
)
from memstate_core.model.errors.remote_store import (
    ConditionalPutsIgnored,
    LeaseLost,
    RemoteStoreDamaged,
    StoreUnreachable,
    StoreUrlRefused,
)
from memstate_core.model.errors.reshard import ReshardMismatch, ReshardRefused, ShardRetired
from memstate_core.model.errors.runs import (
    CheckRefused,
    EvidenceSetAside,
    GateRefused,
    HistoryUnreachable,
    HistoryUnreadable,
    PlanStale,
    ShardsFailed,
    StagingMissing,
    StagingOfAnotherRun,
    StepFailed,
)
from memstate_core.model.errors.store import (
    ChainNotBegun,
    CompactionRefused,
    DiskFull,
    FrameMismatch,
    LedgerDamaged,
    RebuildMismatch,
    RollbackRefused,
    SnapshotAbsent,
    SnapshotDamaged,
    SnapshotRemoved,
    StoreLocked,
    StoreNotFound,
)

__all__ = [
    "AcceptanceInvalid",
    "AccessDenied",
    "ApiError",
    "BackupDamaged",
    "BackupNotFound",
    "BackupRefused",
    "BackupUnreachable",
    "ChainNotBegun",
    "CheckRefused",
    "CloudUnavailable",
    "CompactionRefused",
    "ConditionalPutsIgnored",
    "DimensionMismatch",
    "DiskFull",
    "EncoderEndpointFailed",
    "EraseRefused",
    "ErasureNotRepeated",
    "EvidenceSetAside",
    "ExtractorUnavailable",
    "FrameMismatch",
    "GateRefused",
    "HistoryUnreachable",
    "HistoryUnreadable",
    "HomeUnknown",
    "HomeUnsupported",
    "InboxUnreachable",
    "KeyRefused",
    "KeysDamaged",
    "LeaseLost",
    "LedgerDamaged",
    "MemstateError",
    "MergeUndone",
    "MergesUnknown",
    "ModelUnavailable",
    "NotAllowed",
    "NotFound",
    "NotOnReplica",
    "NotStale",
    "NothingToUndo",
    "PlanInvalid",
    "PlanStale",
    "PublicationConflict",
    "PublicationRefused",
    "PublicationUnreachable",
    "RateLimited",
    "RebuildMismatch",
    "RemoteStoreDamaged",
    "RequestInvalid",
    "ReshardMismatch",
    "ReshardRefused",
    "RestoreRefused",
    "RollbackRefused",
    "RunHistoryShared",
    "RunUnknown",
    "ServerFailed",
    "ServerUnreachable",
    "SettingsError",
    "ShardRetired",
    "ShardsFailed",
    "SnapshotAbsent",
    "SnapshotDamaged",
    "SnapshotRemoved",
    "SourceUnreachable",
    "StagingMissing",
    "StagingOfAnotherRun",
    "StepFailed",
    "StoreLocked",
    "StoreNotFound",
    "StoreUnreachable",
    "StoreUrlRefused",
    "SubjectAmbiguous",
    "SubjectNotFound",
    "TopicAmbiguous",
    "TopicNotFound",
    "UnreadableDump",
    "VerdictRefused",
]
