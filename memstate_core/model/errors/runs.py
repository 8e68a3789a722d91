"""The store, a run or a model is not in a state in which the work can be done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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


class StagingMissing(MemstateError):
    """A step was started on its own, without the run whose working copy it requires."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} does not exist: this step belongs to a run that has ended or was discarded. "
            "Start the whole nightly_maintenance job.",
            path=path,
        )


class StagingOfAnotherRun(MemstateError):
    """A step was started on its own, on the working copy of another run."""

    def __init__(self, path: str, found: str, expected: str) -> None:
        super().__init__(
            f"{path} belongs to run {found}, expected run {expected}: a step never goes on with what another run left, "
            "since that may be half written. Start the whole nightly_maintenance job; it does what was not published.",
            path=path,
            found=found,
            expected=expected,
        )


class HistoryUnreadable(MemstateError):
    """Dagster's record of runs, or its settings, cannot be read."""

    def __init__(self, folder: str, problem: str) -> None:
        super().__init__(
            f"Dagster's history in {folder} cannot be read: {problem}. Move the folder away to begin a new one; "
            "the store itself does not need it.",
            folder=folder,
            problem=problem,
        )


class HistoryUnreachable(MemstateError):
    """Dagster's record of runs is in a database that does not answer, or that this machine cannot ask."""

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"Dagster's record of runs cannot be reached: {problem}. The store itself is sound, and a run that had "
            "not published has no effect. `memstate doctor` looks for the cause; then run this command again.",
            problem=problem,
        )


class ModelUnavailable(MemstateError):
    """The embedding model cannot be loaded."""

    def __init__(self, model: str, problem: str) -> None:
        super().__init__(
            f"embedding model {model!r} cannot be loaded: {problem}. Expected a model on this machine: "
            "its folder, which a relative path names from the home, or its name in the local cache of the Hugging Face "
            "Hub; the packaged default is 'all-MiniLM-L6-v2'. Set embedding.model in memstate.toml.",
            model=model,
            problem=problem,
        )


class EncoderEndpointFailed(ModelUnavailable):
    """The endpoint of the embedding model gives no vectors."""

    def __init__(self, model: str, endpoint: str, problem: str) -> None:
        MemstateError.__init__(
            self,
            f"the embedding model {model!r} at {endpoint} gives no vectors: {problem}. What it gave so far is kept, so "
            "run the same again when that has changed, or set another embedding.endpoint in memstate.toml.",
            model=model,
            endpoint=endpoint,
            problem=problem,
        )


class DimensionMismatch(MemstateError):
    """An embedding model gives vectors of another dimension than expected."""

    def __init__(self, model: str, found: int, expected: int, where: str) -> None:
        super().__init__(
            f"embedding model {model!r} gives vectors of {found} dimensions, expected {expected} as in {where}. "
            "If the model at this place was replaced, give the new one a name of its own (another folder) and set "
            "embedding.model to it; the next run embeds every topic again.",
            model=model,
            found=found,
            expected=expected,
            where=where,
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
    """A step of a run failed for a reason without a class of its own.

    Args:
        shard: the shard.
        problem: what failed.
        published: the snapshot that the run had published before it failed; None if it had not.
    """

    def __init__(self, shard: str, problem: str, published: str | None = None) -> None:
        state = (
            "Nothing was published and the previous snapshot still serves"
            if published is None
            else f"{published} was published before and is served; what came after it, such as the report, is missing"
        )
        super().__init__(
            f"the run of shard {shard} failed: {problem}. {state}; the run's log is in the Dagster UI (`memstate ui`). "
            "Running again is safe.",
            shard=shard,
            problem=problem,
            published=published,
        )


class ShardsFailed(MemstateError):
    """The runs of some shards failed while those of others published."""

    def __init__(self, failed: Mapping[str, MemstateError], published: Sequence[str]) -> None:
        alike: dict[str, list[str]] = {}
        for shard, error in failed.items():
            alike.setdefault(f"({type(error).__name__}): {error.message.removesuffix('.')}", []).append(shard)
        reasons = "; ".join(f"{', '.join(shards)} {reason}" for reason, shards in alike.items())
        super().__init__(
            f"{len(failed)} of {len(failed) + len(published)} shards failed and serve their previous snapshots, "
            f"{reasons}. Published: {', '.join(published) or 'none'}.",
            failed={shard: type(error).__name__ for shard, error in failed.items()},
            published=[*published],
        )
        self.exit_code = max(error.exit_code for error in failed.values())


class EvidenceSetAside(MemstateError):
    """A step failed with some evidence or accesses, which the next run leaves out."""

    def __init__(
        self, shard: str, step: str, evidence_ids: Sequence[str], access_ids: Sequence[str], problem: str
    ) -> None:
        named = (("pieces of evidence", evidence_ids), ("accesses", access_ids))
        rows = " and ".join(f"{len(ids)} {what}, first {ids[0]}" for what, ids in named if ids)
        super().__init__(
            f"step {step} of shard {shard} failed with {rows}: {problem}. They are set aside and listed in the "
            "quarantine; nothing was published. Run again, which leaves them out (`memstate undo ID` readmits one).",
            shard=shard,
            step=step,
            evidence_ids=[*evidence_ids],
            access_ids=[*access_ids],
            problem=problem,
        )


class CheckRefused(MemstateError):
    """A correctness condition failed, so nothing was published."""

    exit_code = 4

    def __init__(self, failed: list[str], details: dict[str, Any] | None = None) -> None:
        found = "; ".join(f"{name} found {', '.join(map(str, rows[0]))}" for name, rows in (details or {}).items())
        where = found or "the rows are with the check in the Dagster UI (`memstate ui`)"
        super().__init__(
            f"nothing was published: {', '.join(failed)} failed. The previous snapshot still serves; {where}. Keep the "
            "ledger and report it.",
            failed=failed,
            details=details or {},
        )


class GateRefused(MemstateError):
    """A gate failed, so nothing was published until its cause is gone or a person accepts it."""

    exit_code = 4

    def __init__(self, shard: str, refusals: Sequence[Mapping[str, str]]) -> None:
        named = [refusal["name"] for refusal in refusals]
        found = " ".join(
            f"Gate {refusal['name']}: found {refusal['found']}; expected {refusal['expected']}. {refusal['look_at']}."
            for refusal in refusals
        )
        accepted = " ".join(f"--accept {name}" for name in named)
        super().__init__(
            f"nothing was published in shard {shard}. {found} The previous snapshot still serves, no evidence is lost, "
            f"and the next night is judged again. To let it through once: `memstate maintain {accepted} --why TEXT`.",
            shard=shard,
            refused=named,
            refusals=[dict(refusal) for refusal in refusals],
        )
