"""A run cannot begin, go on or publish."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memstate_core.model.errors.base import MemstateError


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
