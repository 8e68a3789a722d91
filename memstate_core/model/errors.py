"""Every exception of memstate that a caller may meet.

    MemstateError
    ├── SettingsError        a key of memstate.toml or a MEMSTATE_* variable is not allowed
    ├── UnreadableDump       a file that cannot be read at all
    ├── HomeUnsupported      the path of a home has a character that a library cannot address
    ├── StoreLocked          another run holds the store
    ├── StoreNotFound        nothing was published here yet
    ├── TopicNotFound        no topic, tombstone or alias answers to this id
    ├── NothingToUndo        no merge and no archived topic answers to this id
    ├── MergeUndone          the merge was taken back already
    ├── VerdictRefused       a verdict on two topics contradicts what holds
    ├── NotStale             the topic does not wait for review
    ├── SnapshotDamaged      a published file is not what its manifest says
    ├── StagingMissing       a step was started without the run it belongs to
    ├── ModelUnavailable     the embedding model cannot be loaded
    ├── ExtractorUnavailable the language model that the settings ask for cannot be asked at all
    ├── RebuildMismatch      folding the ledger again gave another state
    ├── PlanInvalid          a file is no plan, or was changed after it was written
    ├── PlanStale            the state moved after it was planned for, or the run decided otherwise
    ├── StepFailed           a step of a run failed for another reason
    ├── NotAllowed           the key that a caller showed is not for this
    ├── KeysDamaged          the file of keys is not what `memstate keys` writes
    ├── KeyRefused           a key cannot be made, or there is none of that name
    ├── CheckRefused         a correctness condition failed, nothing was published
    └── ApiError             a memstate server did not do what its client asked for
        ├── RequestInvalid       the request is not as the server expects it
        ├── AccessDenied         no key, a wrong one, or one that may not do this
        ├── NotFound             nothing answers to this id or address
        ├── RateLimited          too many requests for now
        ├── ServerFailed         the server could not answer, now or at all
        └── ServerUnreachable    no answer came

Each carries its facts in `facts` and survives pickling, because errors cross worker processes.
`exit_code` is what the command line answers with.
"""

from __future__ import annotations

from typing import Any


class MemstateError(Exception):
    """The root of the tree.

    Subclasses name their facts in `__init__` and build one sentence from them: what was found, what
    was expected, what to do next.
    """

    exit_code = 1

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__(message)
        self.message = message
        self.facts = facts

    def __reduce__(self) -> tuple[Any, ...]:
        return _revive, (type(self), self.message, self.facts)


def _revive(kind: type[MemstateError], message: str, facts: dict[str, Any]) -> MemstateError:
    error = kind.__new__(kind)
    MemstateError.__init__(error, message, **facts)
    return error


class SettingsError(MemstateError):
    """A setting is not allowed; names the file (or variable), the key, the value and what is allowed.

    `line` and `column` say where the value stands in the file, both counted from 1, where that is known.
    """

    exit_code = 2

    def __init__(
        self, source: str, key: str, value: object, allowed: str, line: int | None = None, column: int | None = None
    ) -> None:
        where = f"{source}: line {line}, column {column}" if line else source
        super().__init__(
            f"{where}: {key} = {value!r} is not allowed: {allowed}",
            source=source,
            key=key,
            value=value,
            allowed=allowed,
            line=line,
            column=column,
        )


class UnreadableDump(MemstateError):
    """A dump that cannot be read at all, or whose container breaks off in the middle."""

    def __init__(self, path: str, problem: str, line: int | None = None) -> None:
        where = f"{path}, after line {line}" if line else path
        super().__init__(
            f"{where}: cannot be read: {problem}. Check the file, or export it again, and import it once more.",
            path=path,
            problem=problem,
            line=line,
        )


class HomeUnsupported(MemstateError):
    """The path of a home has a character that the libraries below cannot address."""

    exit_code = 2

    def __init__(self, home: str, found: str) -> None:
        super().__init__(
            f"the home {home!r} cannot be used: its path has {found!r}, and Delta Lake and SQLite cannot address paths"
            f" with control characters or any of ? [ ] | ^ \\ or a % before two hex digits. Choose another folder.",
            home=home,
            found=found,
        )


class StoreLocked(MemstateError):
    """Another process writes to this store."""

    exit_code = 3

    def __init__(self, home: str, holder: str) -> None:
        super().__init__(
            f"{home} is locked by {holder}. Wait for it to end and run this command again.",
            home=home,
            holder=holder,
        )


class StoreNotFound(MemstateError):
    """Nothing has been published in this home, or in this shard of it."""

    def __init__(self, home: str, what: str = "no snapshot") -> None:
        super().__init__(
            f"{home} holds {what}. Run `memstate import PATH` and `memstate maintain` first, or pass --home.",
            home=home,
            what=what,
        )


class TopicNotFound(MemstateError):
    """No topic, tombstone or alias answers to this id."""

    def __init__(self, topic_id: str, snapshot: str) -> None:
        super().__init__(
            f"no topic answers to {topic_id!r} in snapshot {snapshot}. `memstate export` lists every id.",
            topic_id=topic_id,
            snapshot=snapshot,
        )


class NothingToUndo(MemstateError):
    """No merge and no topic that left default answers has this id."""

    def __init__(self, name: str, snapshot: str) -> None:
        super().__init__(
            f"{name!r} names nothing to take back in snapshot {snapshot}: expected the id of a merge, of a topic that "
            "was merged away, or of one that was archived, detached or summarised. `memstate merges` lists the "
            "merges in force.",
            name=name,
            snapshot=snapshot,
        )


class MergeUndone(MemstateError):
    """The merge was taken back already."""

    def __init__(self, merge_id: str, dropped: str, undone_at: str) -> None:
        super().__init__(
            f"merge {merge_id} of topic {dropped} was taken back at {undone_at}; nothing is left to undo. "
            "`memstate merges` lists the merges in force, `memstate merges --all` those taken back too.",
            merge_id=merge_id,
            dropped=dropped,
            undone_at=undone_at,
        )


class VerdictRefused(MemstateError):
    """A verdict on two topics contradicts what holds."""

    def __init__(self, a: str, b: str, problem: str) -> None:
        super().__init__(
            f"no verdict on {a} and {b} was recorded: {problem}. Nothing was published.", a=a, b=b, problem=problem
        )


class NotStale(MemstateError):
    """The topic does not wait for review."""

    def __init__(self, topic_id: str) -> None:
        super().__init__(
            f"{topic_id!r} names no topic that waits for review: expected the id of a stale topic. "
            "`memstate confirm` without an id lists them.",
            topic_id=topic_id,
        )


class SnapshotDamaged(MemstateError):
    """A published file is not what its manifest says."""

    def __init__(self, snapshot: str, problems: list[str]) -> None:
        super().__init__(
            f"snapshot {snapshot} is damaged: {'; '.join(problems)}. Run `memstate rebuild` to fold the ledger again.",
            snapshot=snapshot,
            problems=problems,
        )


class StagingMissing(MemstateError):
    """A step was started on its own, without the run whose working copy it needs."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} does not exist: this step belongs to a run that has ended or was discarded. "
            "Start the whole nightly_maintenance job.",
            path=path,
        )


class ModelUnavailable(MemstateError):
    """The embedding model cannot be loaded."""

    def __init__(self, model: str, problem: str) -> None:
        super().__init__(
            f"embedding model {model!r} cannot be loaded: {problem}. Expected the name of a model on this machine; "
            "the packaged default is 'all-MiniLM-L6-v2'. Set embedding.model in memstate.toml.",
            model=model,
            problem=problem,
        )


class ExtractorUnavailable(MemstateError):
    """The settings ask for a language model, and this installation cannot ask any."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(
            f"the language model of [extractor] cannot be asked: {problem}. {remedy}, or take the section out of "
            "memstate.toml to do without it.",
            problem=problem,
            remedy=remedy,
        )


class RebuildMismatch(MemstateError):
    """Folding the ledger again gave another state than the one that was published."""

    exit_code = 4

    def __init__(self, shard: str, published: str, rebuilt: str) -> None:
        super().__init__(
            f"shard {shard}: the ledger folds to state {rebuilt}, but {published} was published. The published "
            "snapshot was left in place; keep the ledger and report this.",
            shard=shard,
            published=published,
            rebuilt=rebuilt,
        )


class PlanInvalid(MemstateError):
    """A file is no plan that can be applied."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(
            f"{path} is no plan that can be applied: {problem}. Expected a file as `memstate plan` wrote it; "
            "run `memstate plan` again and apply the new file. Nothing was changed.",
            path=path,
            problem=problem,
        )


class PlanStale(MemstateError):
    """A plan no longer fits the store, so it was not applied."""

    def __init__(self, plan: str, shard: str, differences: list[str]) -> None:
        super().__init__(
            f"plan {plan} does not fit the store any more: {'; '.join(differences)}. Shard {shard} was not published "
            "and serves what it served; run `memstate plan` again and apply the new file.",
            plan=plan,
            shard=shard,
            differences=differences,
        )


class StepFailed(MemstateError):
    """A step of a run failed for a reason that is not one of the above."""

    def __init__(self, shard: str, problem: str) -> None:
        super().__init__(
            f"the run of shard {shard} failed: {problem}. Nothing was published and the previous snapshot still "
            "serves; the run's log is in the Dagster UI (`memstate ui`). Running again is safe.",
            shard=shard,
            problem=problem,
        )


class NotAllowed(MemstateError):
    """The key that a caller showed is good, but not for what was asked."""

    def __init__(self, found: str, expected: str) -> None:
        super().__init__(
            f"found {found}, expected {expected}. `memstate keys add` makes keys; ask who keeps the store for one.",
            found=found,
            expected=expected,
        )


class KeysDamaged(MemstateError):
    """The file of keys is not what `memstate keys` writes."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(
            f"{path} is no file of keys: {problem}. Nobody is let in by it; restore the file, or remove it and make "
            "the keys again with `memstate keys add`.",
            path=path,
            problem=problem,
        )


class KeyRefused(MemstateError):
    """A key cannot be made as asked, or there is none of that name."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"key {name!r}: {problem}. `memstate keys list` shows every key.", name=name, problem=problem)


class CheckRefused(MemstateError):
    """A correctness condition failed, so nothing was published."""

    exit_code = 4

    def __init__(self, failed: list[str], details: dict[str, Any] | None = None) -> None:
        super().__init__(
            f"nothing was published: {', '.join(failed)} failed. The previous snapshot still serves; "
            "the rows are with the check in the Dagster UI (`memstate ui`).",
            failed=failed,
            details=details or {},
        )


class ApiError(MemstateError):
    """A memstate server did not do what its client asked for.

    Its message is the server's own sentence; further members of the problem document are in `facts`.
    """

    def __init__(
        self,
        message: str,
        status: int | None = None,
        kind: str | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
        **facts: Any,
    ) -> None:
        named = {"status": status, "kind": kind, "request_id": request_id, "retry_after": retry_after}
        super().__init__(message, **named, **facts)

    @property
    def status(self) -> int | None:
        """The status of the answer; None if there was none."""
        status: int | None = self.facts["status"]
        return status

    @property
    def kind(self) -> str | None:
        """The last word of the problem document's type; None if there was none."""
        kind: str | None = self.facts["kind"]
        return kind

    @property
    def request_id(self) -> str | None:
        """How the server's log names the request, where it said so."""
        request_id: str | None = self.facts["request_id"]
        return request_id

    @property
    def retry_after(self) -> float | None:
        """Seconds after which the server wants to be asked again, where it said so."""
        retry_after: float | None = self.facts["retry_after"]
        return retry_after


class RequestInvalid(ApiError):
    """The request is not as the server expects it."""


class AccessDenied(ApiError):
    """No key, a wrong one, or one that may not do this."""


class NotFound(ApiError):
    """Nothing answers to this id or address."""


class RateLimited(ApiError):
    """Too many requests for now; `retry_after` says when to ask again."""


class ServerFailed(ApiError):
    """The server could not answer, now or at all."""


class ServerUnreachable(ApiError):
    """No answer came: the connection was refused, broke off, or took too long."""
