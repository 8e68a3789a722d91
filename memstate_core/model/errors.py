"""Every exception that memstate raises to its callers.

    MemstateError
    ├── SettingsError        a key of memstate.toml or a MEMSTATE_* variable is not allowed
    ├── UnreadableDump       a file that cannot be read at all
    ├── HomeUnsupported      the path of a home has a character that a library cannot address
    ├── StoreLocked          another run holds the store
    ├── StoreNotFound        nothing was published here yet
    ├── TopicNotFound        no topic, tombstone or alias has this id
    ├── NothingToUndo        no merge and no archived topic has this id
    ├── MergeUndone          the merge is undone already
    ├── VerdictRefused       a verdict on two topics contradicts recorded ones
    ├── NotStale             the topic is not queued for review
    ├── SnapshotDamaged      a published file differs from its manifest
    ├── StagingMissing       a step was started without the run it belongs to
    ├── ModelUnavailable     the embedding model cannot be loaded
    ├── ExtractorUnavailable the configured language model cannot be used
    ├── RebuildMismatch      folding the ledger again gave another state
    ├── PlanInvalid          a file is not a plan, or was modified
    ├── PlanStale            the state changed after planning, or the run decided differently
    ├── StepFailed           a step of a run failed for another reason
    ├── NotAllowed           the caller's key does not permit this
    ├── KeysDamaged          the key file is not as `memstate keys` writes it
    ├── KeyRefused           a key cannot be made, or there is none of that name
    ├── CheckRefused         a correctness condition failed, nothing was published
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

from typing import Any


class MemstateError(Exception):
    """The base class.

    Subclasses take their facts in `__init__` and build the message from them: what was found, what was expected, what
    to do next.
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

    `line` and `column` are the position of the value in the file, counted from 1, if it is known.
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
    """A dump that cannot be read at all, or whose container is truncated."""

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
    """No topic, tombstone or alias has this id."""

    def __init__(self, topic_id: str, snapshot: str) -> None:
        super().__init__(
            f"no topic has the id {topic_id!r} in snapshot {snapshot}. `memstate export` lists every id.",
            topic_id=topic_id,
            snapshot=snapshot,
        )


class NothingToUndo(MemstateError):
    """No merge, and no topic that was archived, detached or summarised, has this id."""

    def __init__(self, name: str, snapshot: str) -> None:
        super().__init__(
            f"{name!r} names nothing to undo in snapshot {snapshot}: expected the id of a merge, of a topic that "
            "was merged away, or of one that was archived, detached or summarised. `memstate merges` lists the "
            "merges in force.",
            name=name,
            snapshot=snapshot,
        )


class MergeUndone(MemstateError):
    """The merge is undone already."""

    def __init__(self, merge_id: str, dropped: str, undone_at: str) -> None:
        super().__init__(
            f"merge {merge_id} of topic {dropped} was undone at {undone_at}; there is nothing left to undo. "
            "`memstate merges` lists the merges in force, `memstate merges --all` those undone too.",
            merge_id=merge_id,
            dropped=dropped,
            undone_at=undone_at,
        )


class VerdictRefused(MemstateError):
    """A verdict on two topics contradicts recorded ones."""

    def __init__(self, a: str, b: str, problem: str) -> None:
        super().__init__(
            f"no verdict on {a} and {b} was recorded: {problem}. Nothing was published.", a=a, b=b, problem=problem
        )


class NotStale(MemstateError):
    """The topic is not queued for review."""

    def __init__(self, topic_id: str) -> None:
        super().__init__(
            f"{topic_id!r} is not the id of a topic that is queued for review. "
            "`memstate confirm` without an id lists them.",
            topic_id=topic_id,
        )


class SnapshotDamaged(MemstateError):
    """A published file differs from its manifest."""

    def __init__(self, snapshot: str, problems: list[str]) -> None:
        super().__init__(
            f"snapshot {snapshot} is damaged: {'; '.join(problems)}. Run `memstate rebuild` to fold the ledger again.",
            snapshot=snapshot,
            problems=problems,
        )


class StagingMissing(MemstateError):
    """A step was started on its own, without the run whose working copy it requires."""

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
    """A language model is configured that this installation cannot use."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(
            f"the language model of [extractor] cannot be used: {problem}. {remedy}, or remove the section from "
            "memstate.toml to run without it.",
            problem=problem,
            remedy=remedy,
        )


class RebuildMismatch(MemstateError):
    """Folding the ledger again resulted in another state than the published one."""

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
    """A file is not a plan that can be applied."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(
            f"{path} is not a plan that can be applied: {problem}. Expected an unmodified file of `memstate plan`; "
            "run `memstate plan` again and apply the new file. Nothing was changed.",
            path=path,
            problem=problem,
        )


class PlanStale(MemstateError):
    """A plan no longer matches the store, so it was not applied."""

    def __init__(self, plan: str, shard: str, differences: list[str]) -> None:
        super().__init__(
            f"plan {plan} no longer matches the store: {'; '.join(differences)}. Shard {shard} was not published "
            "and serves its previous snapshot; run `memstate plan` again and apply the new file.",
            plan=plan,
            shard=shard,
            differences=differences,
        )


class StepFailed(MemstateError):
    """A step of a run failed for a reason without a class of its own."""

    def __init__(self, shard: str, problem: str) -> None:
        super().__init__(
            f"the run of shard {shard} failed: {problem}. Nothing was published and the previous snapshot still "
            "serves; the run's log is in the Dagster UI (`memstate ui`). Running again is safe.",
            shard=shard,
            problem=problem,
        )


class NotAllowed(MemstateError):
    """The caller's key is valid but does not permit the request."""

    def __init__(self, found: str, expected: str) -> None:
        super().__init__(
            f"found {found}, expected {expected}. `memstate keys add` makes keys; ask who keeps the store for one.",
            found=found,
            expected=expected,
        )


class KeysDamaged(MemstateError):
    """The key file is not as `memstate keys` writes it."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(
            f"{path} is not a valid key file: {problem}. None of its keys is accepted; restore the file, or remove it "
            "and create the keys again with `memstate keys add`.",
            path=path,
            problem=problem,
        )


class KeyRefused(MemstateError):
    """A key cannot be created as requested, or there is none of that name."""

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
    """A request to a memstate server failed.

    The message is the server's; further members of the problem document are in `facts`.
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
        """The HTTP status; None if there was no response."""
        status: int | None = self.facts["status"]
        return status

    @property
    def kind(self) -> str | None:
        """The last segment of the problem document's type; None if there was none."""
        kind: str | None = self.facts["kind"]
        return kind

    @property
    def request_id(self) -> str | None:
        """The id of the request in the server's log, if the response has it."""
        request_id: str | None = self.facts["request_id"]
        return request_id

    @property
    def retry_after(self) -> float | None:
        """Seconds until the request may be repeated, if the server states it."""
        retry_after: float | None = self.facts["retry_after"]
        return retry_after


class RequestInvalid(ApiError):
    """The request is invalid."""


class AccessDenied(ApiError):
    """No key, a wrong one, or one without permission."""


class NotFound(ApiError):
    """There is nothing with this id or address."""


class RateLimited(ApiError):
    """Too many requests; `retry_after` says when to repeat."""


class ServerFailed(ApiError):
    """The server failed, temporarily or not."""


class ServerUnreachable(ApiError):
    """There was no response: the connection was refused, lost, or timed out."""
