"""The `quarantine` commands: refused rows, and dealing with them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memstate_pipeline.cli.shared.options import Now, default_scope, moment
from memstate_pipeline.cli.shared.output import Json, note, show
from memstate_pipeline.cli.shared.progress import live_progress
from memstate_pipeline.cli.shared.terminal import one_line

if TYPE_CHECKING:
    import polars as pl

    from memstate_core.run.store import Store

_GROUPS_SHOWN = 5
app = typer.Typer(help="List refused rows, and replay or dismiss them.", invoke_without_command=True)

Ids = Annotated[list[str] | None, typer.Argument(metavar="ID", help="Ids of rows, or their beginnings.")]
Reason = Annotated[str | None, typer.Option(metavar="CODE", help="Only rows that were refused for this reason.")]
File = Annotated[str | None, typer.Option(metavar="NAME", help="Only rows of this file.")]
Every = Annotated[bool, typer.Option("--all", help="All open rows.")]


@app.callback()
def quarantine(context: typer.Context, as_json: Annotated[bool, Json] = False) -> None:
    """List refused rows, and replay or dismiss them."""
    if context.invoked_subcommand is None:
        _list(context.obj.existing_store, None, None, every=False, limit=50, as_json=as_json)
    elif as_json:
        command = context.invoked_subcommand
        raise typer.BadParameter(f"found --json before {command}, expected memstate quarantine {command} … --json")


@app.command("list")
def list_(
    context: typer.Context,
    reason: Reason = None,
    file: File = None,
    every: Annotated[bool, typer.Option("--all", help="Also rows that were dealt with.")] = False,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="How many rows to list.")] = 50,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """List refused rows that nobody has dealt with, the newest first."""
    _list(context.obj.existing_store, reason, file, every=every, limit=limit, as_json=as_json)


@app.command("show")
def show_(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="ID", help="Id of a row, or its beginning.")],
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Show a refused row with its bytes as they were found."""
    import polars as pl

    (row,) = _chosen(context.obj.existing_store, [name], pl.lit(True)).to_dicts()
    raw = bytes(row["raw"])
    document = _document(row) | {"raw": raw.decode("utf-8", "backslashreplace"), "raw_sha256": row["raw_sha256"]}
    kept = "" if len(raw) == row["raw_bytes"] else f", the first {len(raw):,} bytes of {row['raw_bytes']:,}"
    lines = [*_lines_of([document]), f"    read {document['imported_at']}{kept}", document["raw"]]
    show(document, as_json, lambda: lines)


@app.command()
def replay(
    context: typer.Context,
    ids: Ids = None,
    reason: Reason = None,
    file: File = None,
    every: Every = False,
    scope: Annotated[str | None, typer.Option(metavar="TYPE:ID", help="Scope of rows that name none.")] = None,
    now: Now = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Import refused rows again, as observations under today's settings.

    Rows that are refused again stay open. Exits with 1 if there are any.
    """
    from memstate_core.ingest import quarantine as rows_of
    from memstate_core.model.scope import GLOBAL_SCOPE
    from memstate_pipeline.writers import writing

    store: Store = context.obj.existing_store
    scope_of_rows = default_scope(scope) or GLOBAL_SCOPE
    with live_progress(doing="quarantine replay"), writing(store, "quarantine replay"):
        rows = _open(store, ids, reason, file, every=every)
        done = rows_of.replay(
            store.ledger, store.settings, rows, scope_of_rows, moment(now) or datetime.now(UTC), _run_id()
        )
    refused = done.refused.to_dicts()
    document = {"accepted": done.accepted, "duplicate": done.duplicate, "refused": refused}
    counts = f"replayed: {done.accepted:,} accepted, {done.duplicate:,} duplicate, {len(refused):,} refused again"
    again = (f"{row['quarantine_id']}  {row['reason']}: {one_line(row['detail'])}" for row in refused)
    show(document, as_json, lambda: [counts, *again])
    _note_no_match(store, rows, reason, file)
    if refused:
        raise typer.Exit(1)


@app.command()
def dismiss(
    context: typer.Context,
    ids: Ids = None,
    why: Annotated[str, typer.Option(metavar="TEXT", help="Reason to record.")] = "",
    reason: Reason = None,
    file: File = None,
    every: Every = False,
    now: Now = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Record that refused rows need nothing more. They are kept."""
    from memstate_core.ingest import quarantine as rows_of
    from memstate_pipeline.writers import writing

    if not why.strip():
        raise typer.BadParameter("expected --why TEXT: the reason is recorded")
    store: Store = context.obj.existing_store
    with writing(store, "quarantine dismiss"):
        rows = _open(store, ids, reason, file, every=every)
        count = rows_of.dismiss(store.ledger, rows, why, moment(now) or datetime.now(UTC), _run_id())
    show({"dismissed": count}, as_json, lambda: [f"dismissed: {count:,}"])
    _note_no_match(store, rows, reason, file)


def _list(store: Store, reason: str | None, file: str | None, *, every: bool, limit: int, as_json: bool) -> None:
    import polars as pl

    from memstate_core.ingest.quarantine import OPEN, quarantined

    rows = quarantined(store.ledger).drop("raw").filter(_criteria(reason, file)).collect()
    counts = dict(rows["state"].value_counts().iter_rows())
    still = rows.filter(pl.col("state") == OPEN)
    listed = (rows if every else still).head(limit)
    document = {
        "open": counts.get(OPEN, 0),
        "replayed": counts.get("replayed", 0),
        "dismissed": counts.get("dismissed", 0),
        "by_reason": dict(still["reason"].value_counts().sort("reason").iter_rows()),
        "rows": [_document(row) for row in listed.to_dicts()],
    }
    show(document, as_json, lambda: _list_lines(document))


def _list_lines(document: Mapping[str, Any]) -> Iterator[str]:
    yield from _lines_of(document["rows"])
    yield ", ".join(f"{document[state]:,} {state}" for state in ("open", "replayed", "dismissed"))


def _lines_of(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for row in rows:
        where = f"{row['file']}, line {row['line']}" if row["line"] else row["file"]
        why = f": {one_line(row['why'])}" if row["why"] else ""
        state = "" if row["state"] == "open" else f"  {row['state']}{why}"
        yield f"{row['quarantine_id']}  {one_line(where)}{state}"
        yield f"    {row['reason']}: {one_line(row['detail'])}"


def _document(row: Mapping[str, Any]) -> dict[str, Any]:
    from memstate_core.model.text import iso

    names = ("quarantine_id", "state", "file", "line", "reason", "detail", "raw_bytes", "run_id", "why")
    return {name: row[name] for name in names} | {"imported_at": iso(row["imported_at"])}


def _open(store: Store, ids: list[str] | None, reason: str | None, file: str | None, *, every: bool) -> pl.DataFrame:
    """The open rows that a command names.

    Raises:
        typer.BadParameter: it names none, or an id that is unknown, ambiguous, or of a row that was dealt with.
    """
    import polars as pl

    from memstate_core.ingest.quarantine import OPEN

    if not (ids or reason or file or every):
        raise typer.BadParameter("expected ids of rows, --reason CODE, --file NAME or --all")
    return _chosen(store, ids, _criteria(reason, file) & (pl.col("state") == OPEN))


def _note_no_match(store: Store, chosen: pl.DataFrame, reason: str | None, file: str | None) -> None:
    """Says which open rows there are if a command chose none of them."""
    import polars as pl

    from memstate_core.ingest.quarantine import OPEN, quarantined

    if chosen.height:
        return
    still = quarantined(store.ledger).filter(pl.col("state") == OPEN).select("reason", "file").collect()
    groups = still.group_by("file", "reason").len().sort("len", "file", "reason", descending=[True, False, False])
    named = [f"{count:,} {code} of {one_line(name)}" for name, code, count in groups.head(_GROUPS_SHOWN).iter_rows()]
    more = [f"{groups.height - len(named):,} more kinds"] if groups.height > len(named) else []
    asked = [f"{option} {value}" for option, value in (("--reason", reason), ("--file", file)) if value]
    note(f"no open row matches {' '.join(asked) or '--all'}; open are: {', '.join([*named, *more]) or 'none'}")


def _criteria(reason: str | None, file: str | None) -> pl.Expr:
    """The rows of a reason and a file.

    Raises:
        typer.BadParameter: there is no such reason.
    """
    import polars as pl

    from memstate_core.ingest.reasons import Reason as Code

    if reason and reason not in [*Code]:
        raise typer.BadParameter(f"{reason!r} is no reason: expected one of {', '.join(Code)}")
    given = {"reason": reason, "file": file}
    return pl.all_horizontal(pl.lit(True), *(pl.col(name) == value for name, value in given.items() if value))


def _chosen(store: Store, ids: Sequence[str] | None, criteria: pl.Expr) -> pl.DataFrame:
    import polars as pl

    from memstate_core.ingest.quarantine import quarantined

    rows = quarantined(store.ledger).filter(criteria)
    if not ids:
        return rows.collect()
    begins = pl.any_horizontal(pl.col("quarantine_id").str.starts_with(name) for name in ids)
    found = rows.filter(begins).collect()
    for name in ids:
        if (count := found["quarantine_id"].str.starts_with(name).sum()) != 1:
            problem = "no such row is open" if not count else f"{count} rows begin with it"
            raise typer.BadParameter(f"{name!r}: {problem}; `memstate quarantine list --all` shows the ids")
    return found


def _run_id() -> str:
    return f"quarantine-{uuid.uuid4()}"
