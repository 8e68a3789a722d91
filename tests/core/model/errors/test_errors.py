"""The exception tree: drawn in full, and every error survives pickling unchanged."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from memstate_core.model import errors
from memstate_core.model.errors import (
    AcceptanceInvalid,
    AccessDenied,
    ApiError,
    BackupDamaged,
    BackupNotFound,
    BackupRefused,
    BackupUnreachable,
    ChainNotBegun,
    CheckRefused,
    CloudUnavailable,
    CompactionRefused,
    ConditionalPutsIgnored,
    DimensionMismatch,
    DiskFull,
    EncoderEndpointFailed,
    EraseRefused,
    ErasureNotRepeated,
    EvidenceSetAside,
    ExtractorUnavailable,
    FrameMismatch,
    GateRefused,
    HistoryUnreachable,
    HistoryUnreadable,
    HomeUnknown,
    HomeUnsupported,
    InboxUnreachable,
    KeyRefused,
    KeysDamaged,
    LeaseLost,
    LedgerDamaged,
    MemstateError,
    MergesUnknown,
    MergeUndone,
    ModelUnavailable,
    NotAllowed,
    NotFound,
    NothingToUndo,
    NotOnReplica,
    NotStale,
    PlanInvalid,
    PlanStale,
    PublicationConflict,
    PublicationRefused,
    PublicationUnreachable,
    RateLimited,
    RebuildMismatch,
    RemoteStoreDamaged,
    RequestInvalid,
    ReshardMismatch,
    ReshardRefused,
    RestoreRefused,
    RollbackRefused,
    RunHistoryShared,
    RunUnknown,
    ServerFailed,
    ServerUnreachable,
    SettingsError,
    ShardRetired,
    ShardsFailed,
    SnapshotAbsent,
    SnapshotDamaged,
    SnapshotRemoved,
    SourceUnreachable,
    StagingMissing,
    StagingOfAnotherRun,
    StepFailed,
    StoreLocked,
    StoreNotFound,
    StoreUnreachable,
    StoreUrlRefused,
    SubjectAmbiguous,
    SubjectNotFound,
    TopicAmbiguous,
    TopicNotFound,
    UnreadableDump,
    VerdictRefused,
)

EXAMPLES: list[tuple[MemstateError, int, list[str]]] = [
    (MemstateError("something happened", where="here"), 1, ["something happened"]),
    (SettingsError("a.toml", "store.shards", 0, "at least 1"), 2, ["a.toml", "store.shards", "0", "at least 1"]),
    (UnreadableDump("dump.jsonl.gz", "it breaks off", 7), 1, ["dump.jsonl.gz", "line 7", "it breaks off"]),
    (UnreadableDump("dump.zip", "it is not a zip"), 1, ["dump.zip", "it is not a zip"]),
    (HomeUnsupported("/home/a?b", "?"), 2, ["/home/a?b", "'?'", "Choose another folder"]),
    (BackupRefused("ftp://b", "it is no URL"), 2, ["ftp://b", "it is no URL", "empty", "Nothing was written"]),
    (BackupUnreachable("s3://b/x", "no route"), 1, ["s3://b/x", "no route", "credentials", "again"]),
    (CloudUnavailable("s3://b/x"), 1, ["s3://b/x", "obstore", "pip install 'memstate[cloud]'"]),
    (PublicationRefused("ftp://b", "it is no URL"), 2, ["ftp://b", "it is no URL", "memstate publish"]),
    (PublicationUnreachable("s3://b/x", "no route"), 1, ["s3://b/x", "no route", "credentials", "memstate publish"]),
    (PublicationConflict("s3://b/x", "s0/4 is newer"), 1, ["s3://b/x", "s0/4 is newer", "--take-over"]),
    (SourceUnreachable("s3://b/x", "no route"), 1, ["s3://b/x", "no route", "asks again"]),
    (InboxUnreachable("s3://b/x", "no route"), 1, ["s3://b/x", "no route", "is not lost", "memstate fetch-inbox"]),
    (StoreUrlRefused("s3://b/x", "a store is there"), 2, ["s3://b/x", "a store is there", "store.url"]),
    (ConditionalPutsIgnored("s3://b/x", "2 succeeded"), 2, ["s3://b/x", "2 succeeded", "`If-Match`", "doctor"]),
    (StoreUnreachable("s3://b/x", "no route"), 1, ["s3://b/x", "no route", "credentials", "the same command again"]),
    (LeaseLost("s3://b/x", 7, 8, "process 1 on ben"), 3, ["number 7", "number 8", "process 1 on ben", "is lost"]),
    (RemoteStoreDamaged("s3://b/x", ["data/1 is missing"]), 4, ["s3://b/x", "data/1 is missing", "backup"]),
    (NotOnReplica("takes no feedback", "https://w"), 1, ["takes no feedback", "https://w"]),
    (BackupNotFound("/b", [1, 3], 2), 1, ["/b", "no backup 2", "1, 3", "--list"]),
    (BackupDamaged("backup 2 in /b", ["objects/ab/cd is missing"]), 4, ["backup 2", "objects/ab/cd", "another backup"]),
    (RestoreRefused("/home/aya", "it holds a store"), 2, ["/home/aya", "a store", "another --home"]),
    (EraseRefused("2 dumps wait in the inbox"), 1, ["nothing was erased", "2 dumps wait", "memstate maintain"]),
    (ErasureNotRepeated("backup 2 in /b", 1, "x quotes it"), 1, ["backup 2 in /b", "x quotes it", "--erasures DIR"]),
    (RunHistoryShared("/srv/dagster", 7), 2, ["/srv/dagster", "7 runs", "--run-history clear", "--run-history leave"]),
    (SubjectAmbiguous("session", "s-1", list("abcdef")), 1, ["6 scopes", "'s-1'", "a, b, c, d, e and more", "--scope"]),
    (SubjectNotFound("actor", "aya"), 1, ["actor 'aya'", "memstate export"]),
    (SubjectNotFound("topic", "boat"), 1, ["no topic has the id or topic_key 'boat'", "memstate maintain"]),
    (StoreLocked("/home/aya", "memstate maintain (42)"), 3, ["/home/aya", "memstate maintain (42)"]),
    (StoreNotFound("/home/aya"), 1, ["/home/aya", "no snapshot"]),
    (StoreNotFound("/home/aya", "no inbox"), 1, ["/home/aya", "no inbox"]),
    (HomeUnknown("~aya/x", "~aya"), 2, ["home '~aya/x'", "no home directory '~aya'", "the whole path"]),
    (TopicNotFound("t-1", "s0/3"), 1, ["t-1", "s0/3"]),
    (TopicNotFound("yard", "s0/3", [("Old yard", "t-2")]), 1, ["Similar titles: Old yard [t-2]."]),
    (
        TopicAmbiguous("yard", "s0/3", [("Yard", "t-1", "user:a"), ("Yard", "t-2", "user:b")]),
        1,
        ["'yard' is ambiguous in snapshot s0/3", "2 topics", "(t-1 in scope user:a, t-2 in scope user:b)", "the id"],
    ),
    (TopicAmbiguous("yard", "s0/3", [("Yard", f"t-{n}", "user:a") for n in range(11)]), 1, ["t-9 in", "and more"]),
    (NothingToUndo("m-1", "s0/3"), 1, ["m-1", "s0/3", "memstate merges"]),
    (MergeUndone("m-1", "t-1", "2026-01-01"), 1, ["m-1", "t-1", "2026-01-01", "memstate merges"]),
    (MergesUnknown(["m-1", "m-2"], "s0/3"), 1, ["'m-1', 'm-2'", "s0/3", "memstate merges --all"]),
    (VerdictRefused("t-1", "t-2", "they are one topic"), 1, ["t-1", "t-2", "they are one topic"]),
    (NotStale("t-1"), 1, ["t-1", "memstate confirm"]),
    (
        LedgerDamaged("/home/aya/ledger", [f"evidence: part-{n}" for n in range(7)]),
        4,
        ["/home/aya/ledger", "part-4", "2 more", "from a backup", "inbox/processed"],
    ),
    (DiskFull("/home/aya", 1 << 20, 2 << 20), 1, ["/home/aya", "1 MiB free", "2 MiB", "Nothing was published"]),
    (SnapshotAbsent("s0/7"), 1, ["s0/7", "not on this machine", "memstate pull"]),
    (SnapshotDamaged("s0/3", ["graph.kuzu: missing", "index: too long"]), 1, ["s0/3", "missing", "too long"]),
    (SnapshotRemoved("s0/3"), 1, ["s0/3", "a newer one is served", "Run the command again"]),
    (FrameMismatch(["a", "x"], ["a", "b"], ["b"], ["x"]), 1, ["lacks b and has unknown x", "expected a, b"]),
    (HistoryUnreadable("/store/dagster", "not a database"), 1, ["/store/dagster", "not a database", "Move the folder"]),
    (HistoryUnreachable("connection refused"), 1, ["connection refused", "store itself is sound", "memstate doctor"]),
    (StagingMissing("/store/s0"), 1, ["/store/s0"]),
    (StagingOfAnotherRun("/store/s0", "r1", "r2"), 1, ["/store/s0", "r1", "r2", "nightly_maintenance"]),
    (ModelUnavailable("tiny", "no such file"), 1, ["tiny", "no such file"]),
    (EncoderEndpointFailed("tiny", "http://x/v1", "denied: no"), 1, ["tiny", "http://x/v1", "denied: no", "is kept"]),
    (DimensionMismatch("tiny", 96, 384, "the graph"), 1, ["tiny", "96", "expected 384", "the graph", "another folder"]),
    (ExtractorUnavailable("no openai", "Run pip"), 1, ["[extractor]", "no openai", "Run pip"]),
    (ChainNotBegun("/l", ["evidence: part-1 is missing"]), 4, ["/l", "part-1", "memstate verify", "restore-backup"]),
    (CompactionRefused("accesses", "/l"), 4, ["accesses", "/l", "memstate verify"]),
    (RebuildMismatch("s0", "aaa", "bbb"), 4, ["s0", "aaa", "bbb"]),
    (ReshardRefused("/srv/m", "it has 4 already", "Name another number."), 1, ["/srv/m", "it has 4", "Name another"]),
    (ReshardMismatch("/srv/m", "another state", ["user:a"]), 4, ["/srv/m", "1 scopes", "another state", "user:a"]),
    (ShardRetired("s0", ["r1s0of2", "r1s1of2"]), 1, ["s0", "r1s0of2", "r1s1of2", "memstate ui"]),
    (RollbackRefused("s0", "s0/2 is no longer kept", [3, 4]), 1, ["s0/2", "no longer kept", "s0/3, s0/4"]),
    (RunUnknown("night-9", "s0/3"), 1, ["night-9", "s0/3", "Nothing was undone"]),
    (PlanInvalid("plan.json", "it was changed"), 1, ["plan.json", "it was changed"]),
    (PlanStale("3f2a", "s0", ["inbox/a: gone", "policy: new"]), 1, ["3f2a", "s0", "inbox/a: gone", "policy: new"]),
    (StepFailed("s0", "disk full"), 1, ["s0", "disk full"]),
    (ShardsFailed({"s1": CheckRefused(["C1"])}, ["s0/3"]), 4, ["1 of 2", "s1 (CheckRefused)", "Published: s0/3"]),
    (EvidenceSetAside("s0", "topics", ["e1"], ["a1"], "too large"), 1, ["topics", "e1", "a1", "too large", "undo"]),
    (NotAllowed("a key for read", "one for write"), 1, ["a key for read", "one for write"]),
    (KeysDamaged("keys.json", "no JSON"), 1, ["keys.json", "no JSON"]),
    (KeyRefused("bot", "it exists"), 1, ["bot", "it exists"]),
    (CheckRefused(["C1", "C4"], {"C1": [("t-1", "rank")]}), 4, ["C1", "C4"]),
    (CheckRefused(["C1"]), 4, ["C1"]),
    (
        GateRefused("s0", [{"name": "growth", "found": "9", "expected": "5", "look_at": "`memstate plan`"}]),
        4,
        ["growth", "found 9", "expected 5", "`memstate plan`", "--accept growth --why"],
    ),
    (AcceptanceInvalid("'C1' is no gate", ["growth"]), 2, ["'C1' is no gate", "one of growth", "C1 to C6"]),
    (ApiError("the answer was odd", 302), 1, ["the answer was odd"]),
    (RequestInvalid("q is missing", 422, "invalid-request", "r-1", None, errors=[]), 1, ["q is missing"]),
    (AccessDenied("the key is not the right one", 401, "unauthorized"), 1, ["the key is not the right one"]),
    (NotFound("no topic has the id 't-1'", 404, topic_id="t-1"), 1, ["t-1"]),
    (RateLimited("too many requests", 429, retry_after=2.0), 1, ["too many requests"]),
    (ServerFailed("no snapshot", 503, "store-not-found"), 1, ["no snapshot"]),
    (ServerUnreachable("http://x did not answer"), 1, ["http://x did not answer"]),
]  # fmt: skip
NAMES = [type(error).__name__ for error, _, _ in EXAMPLES]


def tree() -> set[type[MemstateError]]:
    found = vars(errors).values()
    return {kind for kind in found if inspect.isclass(kind) and issubclass(kind, BaseException)}


def test_every_class_of_the_tree_has_an_example_here() -> None:
    assert {type(error) for error, _, _ in EXAMPLES} == tree()


def test_the_tree_drawn_in_the_docstring_is_the_tree() -> None:
    drawn = re.findall(r"^ +(?:│ +)?(?:[├└]── )?(\w+) *.*$", errors.__doc__ or "", re.MULTILINE)
    assert sorted(drawn) == sorted(kind.__name__ for kind in tree())


def test_every_class_stands_below_the_root_and_says_what_it_is_for() -> None:
    for kind in tree():
        assert issubclass(kind, MemstateError)
        assert kind.__doc__


@pytest.mark.parametrize(("error", "exit_code", "said"), EXAMPLES, ids=NAMES)
def test_the_sentence_names_the_facts(error: MemstateError, exit_code: int, said: list[str]) -> None:
    assert all(fact in str(error) for fact in said)
    assert error.exit_code == exit_code
    assert error.facts


@pytest.mark.parametrize("error", [error for error, _, _ in EXAMPLES], ids=NAMES)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_it_survives_pickling_with_its_facts(error: MemstateError, protocol: int) -> None:
    assert_same(pickle.loads(pickle.dumps(error, protocol)), error)
    assert_same(copy.copy(error), error)


def test_it_crosses_to_another_process_and_back() -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        for error, _, _ in EXAMPLES:
            future = pool.submit(raise_again, error)
            assert_same(future.exception(timeout=60), error)


def raise_again(error: MemstateError) -> None:
    raise error


def assert_same(found: BaseException | None, error: MemstateError) -> None:
    assert type(found) is type(error)
    assert isinstance(found, MemstateError)
    assert (str(found), found.args, found.message, found.facts) == (str(error), error.args, error.message, error.facts)
    assert found.exit_code == error.exit_code
