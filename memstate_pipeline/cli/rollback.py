"""`memstate rollback`: serves the state of an earlier snapshot."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memstate_pipeline.cli.shared.corrections import correcting
from memstate_pipeline.cli.shared.options import moment
from memstate_pipeline.cli.shared.output import Json, note, show

if TYPE_CHECKING:
    import polars as pl

    from memstate_core.night.rollback import RolledBack
    from memstate_core.run.store import Store


def rollback(
    context: typer.Context,
    number: Annotated[
        int | None,
        typer.Argument(
            metavar="N", min=1, help="The snapshot. Default: the newest one before the served one whose state differs."
        ),
    ] = None,
    shard: Annotated[
        str | None, typer.Option(metavar="NAME", help="The shard; required if the store has more than one.")
    ] = None,
    now: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Time of the decision, ISO 8601. Default: the machine's clock."),
    ] = None,
    why: Annotated[str, typer.Option(metavar="TEXT", help="The reason on record.")] = "rolled back manually",
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Serve the state of an earlier snapshot, as a new one.

    Undoes every decision since. Evidence and accesses stay, and belong to the next run. What merges had joined since is
    kept apart.
    """
    from memstate_pipeline.publication import publish_shard

    at, store = moment(now), context.obj.store
    document = _rolled_back(store, _shard(store, shard), number, at, why)
    problem = publish_shard(store, _shard(store, shard), {}).get("not_published")
    if problem is not None:
        document["not_published"] = problem
    show(document, as_json, lambda: _lines(document))
    if problem is not None:
        note(f"the rollback is done here, but not published: {problem}")
        raise typer.Exit(1)


def _shard(store: Store, name: str | None) -> str:
    shards = store.shards
    if name in shards:
        return str(name)
    if name is not None or len(shards) > 1:
        problem = "no --shard" if name is None else f"--shard {name}"
        raise typer.BadParameter(f"{problem}: expected one of {', '.join(shards)}")
    return shards[0]


def _rolled_back(store: Store, shard: str, number: int | None, at: datetime | None, why: str) -> dict[str, Any]:
    """The command's JSON; a rollback without N that a killed process had recorded is completed instead of another."""
    from memstate_core.model.errors import StoreNotFound
    from memstate_core.night.rollback import ROLLBACK, interrupted_rollback, roll_back

    completed = interrupted_rollback(store, shard) if number is None else None
    with correcting(store, "rollback") as shards:
        if shard not in shards:
            raise StoreNotFound(str(store.home.root), f"no snapshot of shard {shard}")
        served = shards[shard]
        manifest = served.snapshot.manifest
        if completed == manifest.number:
            return {"snapshot": served.snapshot.name, "state_hash": manifest.state_hash, "completed": True}
        when = at or max(datetime.now(UTC), manifest.now)
        done = roll_back(store, served, f"{ROLLBACK}{uuid.uuid4()}", when, number, why)
        return _document(done, len(store.shards) > 1)


def _document(done: RolledBack, several: bool) -> dict[str, Any]:
    from memstate_core.model.text import iso

    change, manifest = done.change, done.manifest
    return {
        "run_id": manifest.run_id if done.is_new else None,
        "snapshot": f"{manifest.shard}/{manifest.number}",
        "state_hash": manifest.state_hash,
        "state_of": {"snapshot": f"{done.to.shard}/{done.to.number}", "now": iso(done.to.now)},
        "before": f"{manifest.shard}/{done.before.number}",
        "undone": _counts(change.undone),
        "again": _counts(change.again),
        "runs": change.undone["run_id"].unique(maintain_order=True).to_list(),
        "verdicts": change.verdicts.to_dicts(),
        "evidence_left": done.evidence_left,
        "reverse": f"{done.before.number}" + f" --shard {manifest.shard}" * several,
        "completed": False,
    }


def _counts(rows: pl.DataFrame) -> dict[str, int]:
    return dict(rows["kind"].value_counts().sort("kind").iter_rows())


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    if document["completed"]:
        yield f"completed a rollback that was interrupted; serving {document['snapshot']}"
        yield f"state hash: {document['state_hash']}"
        return
    then = document["state_of"]
    if document["run_id"] is None:
        yield f"nothing to undo: {document['snapshot']} serves the state of {then['snapshot']} already"
        return
    yield from (f"undone: {count} {kind}" for kind, count in document["undone"].items())
    yield from (f"in effect again: {count} {kind}" for kind, count in document["again"].items())
    if document["verdicts"]:
        yield f"verdicts among them: {len(document['verdicts'])}; --json lists them for `memstate review --file`"
    if document["evidence_left"]:
        yield f"evidence: {document['evidence_left']} rows stay in the ledger, for the next run"
    yield f"published {document['snapshot']}, the state of {then['snapshot']} ({then['now']})"
    yield f"state hash: {document['state_hash']}"
    yield f"to reverse it, as long as {document['before']} is kept: memstate rollback {document['reverse']}"
