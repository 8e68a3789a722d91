"""The store is not in a state in which the work can be done: it is locked, damaged, empty, or has no room."""

from __future__ import annotations

from collections.abc import Sequence

from memstate_core.model.errors.base import MemstateError


class StoreLocked(MemstateError):
    """Another process writes to this store.

    Attributes:
        brief: whether the holder needs it for a part of its work alone, as nights do that run side by side.
    """

    exit_code = 3
    brief = False

    def __init__(self, home: str, holder: str, *, brief: bool = False) -> None:
        super().__init__(
            f"{home} is locked by {holder}. Wait for it to end and run this command again.",
            home=home,
            holder=holder,
        )
        self.brief = brief


class StoreNotFound(MemstateError):
    """Nothing has been published in this home, or in this shard of it."""

    def __init__(self, home: str, what: str = "no snapshot") -> None:
        super().__init__(
            f"{home} holds {what}. Run `memstate import PATH` and `memstate maintain` first, or pass --home.",
            home=home,
            what=what,
        )


class SnapshotDamaged(MemstateError):
    """A published file differs from its manifest."""

    def __init__(self, snapshot: str, problems: list[str]) -> None:
        super().__init__(
            f"snapshot {snapshot} is damaged: {'; '.join(problems)}. Run `memstate rebuild` to fold the ledger again.",
            snapshot=snapshot,
            problems=problems,
        )


class SnapshotAbsent(SnapshotDamaged):
    """A snapshot of a store at a URL is not on this machine, whose checkout has those of some shards alone.

    A kind of `SnapshotDamaged`, since a read does the same for both: it answers from the other shards and names this.
    """

    def __init__(self, snapshot: str) -> None:
        problem = "its files are at the URL alone"
        MemstateError.__init__(
            self,
            f"snapshot {snapshot} is not on this machine, whose checkout has those of some shards alone "
            "(store.checkout_mib). The store at the URL has it: run `memstate pull` to fetch all of it, then the same "
            "command again.",
            snapshot=snapshot,
            problems=[problem],
        )


class SnapshotRemoved(MemstateError):
    """A snapshot was removed while it was read: a newer one is served, and the settings do not keep it."""

    def __init__(self, snapshot: str) -> None:
        super().__init__(
            f"snapshot {snapshot} was removed while this command read it, since a newer one is served. Run the command "
            "again.",
            snapshot=snapshot,
        )


class FrameMismatch(MemstateError):
    """A table has not exactly the declared columns."""

    def __init__(self, found: list[str], expected: list[str], missing: list[str], unknown: list[str]) -> None:
        parts = [("lacks", missing), ("has unknown", unknown)]
        problem = " and ".join(f"{what} {', '.join(names)}" for what, names in parts if names)
        super().__init__(
            f"a table {problem}: found the columns {', '.join(found) or 'none'}, expected {', '.join(expected)}. If it "
            "is a file of a snapshot, run `memstate rebuild`; otherwise this is a defect, so please report it.",
            found=found,
            expected=expected,
            missing=missing,
            unknown=unknown,
        )


class LedgerDamaged(MemstateError):
    """The ledger lacks something that was acknowledged, or holds other bytes than were written."""

    exit_code = 4
    _SHOWN = 5

    def __init__(self, ledger: str, problems: list[str]) -> None:
        shown = [*problems[: self._SHOWN], *([f"{len(problems) - self._SHOWN} more"] * (len(problems) > self._SHOWN))]
        super().__init__(
            f"the ledger {ledger} is damaged: {'; '.join(shown)}. Nothing was written, and the served snapshot still "
            f"answers. `memstate verify` lists all damage. {self._way_out(problems)}"
            "Restore the store from a backup (`memstate restore-backup`); "
            "without a backup, import the dumps kept in inbox/processed into a new home.",
            ledger=ledger,
            problems=problems,
        )

    @staticmethod
    def _way_out(problems: list[str]) -> str:
        if not all(problem.startswith("chain.jsonl") for problem in problems):
            return ""
        return "If nothing but the chain is lost, `memstate rebuild --new-chain --why TEXT` begins it anew. "


class ChainNotBegun(MemstateError):
    """The chain of the ledger was not begun anew, since it is whole, or the ledger is not proven without it."""

    exit_code = 4

    def __init__(self, ledger: str, problems: list[str]) -> None:
        super().__init__(
            f"the chain of the ledger {ledger} was not begun anew: {'; '.join(problems)}. Expected were a chain "
            "that is lost or cut, a ledger of which nothing else is damaged, and a fold of it that gives the served "
            "state. Nothing was changed. `memstate verify` lists all damage; restore the store from a backup "
            "(`memstate restore-backup`).",
            ledger=ledger,
            problems=problems,
        )


class CompactionRefused(MemstateError):
    """The joined data files of a table have other rows than the files that they were made of."""

    exit_code = 4

    def __init__(self, table: str, ledger: str) -> None:
        super().__init__(
            f"the joined data files of {table} in {ledger} have other rows than the files that they were made of. They "
            "were set aside, and the table is as it was; nothing was removed. Run `memstate verify`, check the disk "
            "and the memory of this machine, and report this.",
            table=table,
            ledger=ledger,
        )


class DiskFull(MemstateError):
    """The disk has too little space for what a command would write."""

    def __init__(self, folder: str, free: int, needed: int) -> None:
        super().__init__(
            f"the disk of {folder} has {free / (1 << 20):,.0f} MiB free, expected {needed / (1 << 20):,.0f} MiB or "
            "more. Nothing was published, and the previous snapshot still serves. Free some space and run this "
            "command again.",
            folder=folder,
            free=free,
            needed=needed,
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


class RollbackRefused(MemstateError):
    """There is no such snapshot to roll back to."""

    def __init__(self, shard: str, problem: str, kept: Sequence[int]) -> None:
        listed = ", ".join(f"{shard}/{number}" for number in kept) or "none"
        super().__init__(
            f"shard {shard} was not rolled back: {problem}. Expected one of the snapshots that are kept: {listed}. "
            "`store.keep_snapshots` sets how many are kept; `memstate undo --run ID` undoes the decisions of a run "
            "without its snapshot.",
            shard=shard,
            problem=problem,
            kept=[*kept],
        )
