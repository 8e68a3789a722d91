"""What a caller handed over cannot be used: settings, files, ids, plans, keys."""

from __future__ import annotations

from collections.abc import Sequence

from memstate_core.model.errors.base import MemstateError


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
            " with control characters, bytes that are not UTF-8, any of ? [ ] | ^ \\, or a % before two hex digits."
            " Choose another folder.",
            home=home,
            found=found,
        )


class HomeUnknown(MemstateError):
    """The path of a home begins with the home directory of a user that the system does not know."""

    exit_code = 2

    def __init__(self, home: str, user: str) -> None:
        super().__init__(
            f"the home {home!r} cannot be found: this system knows no home directory {user!r}. Check the name, "
            "or give the whole path, beginning with /.",
            home=home,
            user=user,
        )


class TopicNotFound(MemstateError):
    """No topic, tombstone or alias has this id.

    Args:
        topic_id: the id that was asked for.
        snapshot: where.
        candidates: topics with a similar title, as title and id.
        since: since when the topic exists, if it did not yet at the time that was asked for.

    Where topics are listed differs between interfaces, so each adds that to the message.
    """

    def __init__(
        self, topic_id: str, snapshot: str, candidates: Sequence[tuple[str, str]] = (), since: str | None = None
    ) -> None:
        similar = ", ".join(f"{title} [{name}]" for title, name in candidates)
        advice = f" Similar titles: {similar}." if similar else ""
        message = f"no topic has the id {topic_id!r} in snapshot {snapshot}.{advice}"
        if since is not None:
            message = (
                f"topic {topic_id!r} did not exist in snapshot {snapshot}: it exists since {since}. "
                "Ask for that time or a later one."
            )
        self.needs_list = since is None and not similar
        super().__init__(
            message,
            topic_id=topic_id,
            snapshot=snapshot,
            candidates=[{"title": title, "topic_id": name} for title, name in candidates],
            since=since,
        )


class TopicAmbiguous(MemstateError):
    """Several topics have this topic_key or title.

    Args:
        name: the topic_key or title that was asked for.
        snapshot: where.
        candidates: the topics that have it, as title, id and scope.
    """

    def __init__(self, name: str, snapshot: str, candidates: Sequence[tuple[str, str, str]]) -> None:
        listed = ", ".join(f"{topic_id} in scope {scope}" for _, topic_id, scope in candidates[:10])
        more = " and more" if len(candidates) > 10 else ""
        super().__init__(
            f"{name!r} is ambiguous in snapshot {snapshot}: {len(candidates)} topics have this topic_key or title "
            f"({listed}{more}). Give the id of the one that you mean.",
            name=name,
            snapshot=snapshot,
            candidates=[{"title": title, "topic_id": each, "scope": scope} for title, each, scope in candidates],
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


class MergesUnknown(MemstateError):
    """Some ids name no merge, so none of the merges was undone."""

    def __init__(self, names: Sequence[str], snapshot: str) -> None:
        super().__init__(
            f"no merge has the id {', '.join(map(repr, names))} in snapshot {snapshot}, and no topic of that id was "
            "merged away. Nothing was undone. `memstate merges --all` lists every merge.",
            names=list(names),
            snapshot=snapshot,
        )


class RunUnknown(MemstateError):
    """The ledger records no decision of this run."""

    def __init__(self, run_id: str, snapshot: str) -> None:
        super().__init__(
            f"the ledger of snapshot {snapshot} records no decision of a run {run_id!r}. Nothing was undone. "
            "`memstate report` and `memstate merges --json` name the runs.",
            run_id=run_id,
            snapshot=snapshot,
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


class PlanInvalid(MemstateError):
    """A file is not a plan that can be applied."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(
            f"{path} is not a plan that can be applied: {problem}. Expected an unmodified file of `memstate plan`; "
            "run `memstate plan` again and apply the new file. Nothing was changed.",
            path=path,
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


class AcceptanceInvalid(MemstateError):
    """What was accepted is no gate, or was accepted without a reason."""

    exit_code = 2

    def __init__(self, problem: str, gates: list[str]) -> None:
        super().__init__(
            f"{problem}: expected --accept with one of {', '.join(gates)}, and --why with the reason. Correctness "
            "checks (C1 to C6), the fold of the ledger (L3) and damage cannot be accepted.",
            problem=problem,
            gates=gates,
        )
