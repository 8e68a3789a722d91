"""`memstate erase`: removes a subject for good, with a certificate."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memstate_pipeline.cli.shared.options import moment, user_name
from memstate_pipeline.cli.shared.output import Json, show
from memstate_pipeline.cli.shared.progress import live_progress
from memstate_pipeline.cli.shared.terminal import visible

if TYPE_CHECKING:
    from memstate_core.night.erasure.certificate import Certificate
    from memstate_core.night.erasure.subject import Subject
    from memstate_core.run.store import Store


class RunHistoryChoice(StrEnum):
    """What becomes of a record of runs that may be that of other homes as well."""

    CLEAR = "clear"
    LEAVE = "leave"


def erase(
    context: typer.Context,
    scope: Annotated[str | None, typer.Option(metavar="TYPE:ID", help="Erase a scope.")] = None,
    topic: Annotated[
        str | None, typer.Option(metavar="ID", help="Erase a topic (id or topic_key) and what it merged.")
    ] = None,
    actor: Annotated[str | None, typer.Option(metavar="NAME", help="Erase what an actor said or recorded.")] = None,
    observation: Annotated[str | None, typer.Option(metavar="ID", help="Erase an observation.")] = None,
    session: Annotated[str | None, typer.Option(metavar="ID", help="Erase a session.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count what would be removed; change nothing.")] = False,
    history: Annotated[
        RunHistoryChoice | None,
        typer.Option(
            "--run-history",
            help="What becomes of Dagster's record of all runs in a $DAGSTER_HOME outside the home: clear or leave.",
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask on a terminal.")] = False,
    now: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Time on the certificate, ISO 8601. Default: the machine's clock."),
    ] = None,
    why: Annotated[str, typer.Option(metavar="TEXT", help="Reason on the certificate.")] = "asked for",
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Erase a subject for good, with a certificate.

    Takes --scope, --topic, --actor, --observation or --session; --scope beside --actor, --observation or --session
    erases these in that scope alone. Nothing brings it back; importing it again is refused.
    """
    given = {"topic": topic, "actor": actor, "observation": observation, "session": session}
    subject, store = _subject(given, scope), context.obj.store
    at = moment(now) or datetime.now(UTC)
    if not dry_run and (completed := _completed(store, subject)) is not None:
        show(completed, as_json, lambda: _lines(completed))
        return
    clears = None if history is None else history is RunHistoryChoice.CLEAR
    with live_progress(doing="look through the store"):
        if not dry_run:
            _fetch_waiting(store)
        removed = _survey(store, subject, clears)
    if dry_run:
        show({"dry_run": True, **removed}, as_json, lambda: _counted(removed, "would remove"))
        return
    if not yes and sys.stdin.isatty():
        typer.confirm(f"Erase {subject.kind} {visible(subject.value)} for good?", abort=True, err=True)
    document = _erased(store, subject, clears, at, why)
    show(document, as_json, lambda: _lines(document))


def _subject(given: Mapping[str, str | None], scope: str | None) -> Subject:
    from memstate_core.model.scope import parse_scope
    from memstate_core.night.erasure.subject import SCOPE, TOPIC, Subject

    named = [(kind, value) for kind, value in given.items() if value is not None]
    try:
        within = None if scope is None else parse_scope(scope)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    if not named and within is not None:
        return Subject(SCOPE, within)
    if len(named) != 1 or not named[0][1].strip() or (within is not None and named[0][0] == TOPIC):
        raise typer.BadParameter(
            "expected --scope, --topic, --actor, --observation or --session, or --scope beside one of the last three"
        )
    return Subject(*named[0], within)


def _fetch_waiting(store: Store) -> None:
    from memstate_core.night.erasure.erase import fetch_waiting
    from memstate_pipeline.writers import refresh

    refresh(store, "erase")
    if store.home.root.is_dir():
        fetch_waiting(store, datetime.now(UTC))


def _survey(store: Store, subject: Subject, clears: bool | None) -> dict[str, Any]:
    from memstate_core.model.errors import StoreNotFound
    from memstate_core.night.erasure.erase import survey
    from memstate_pipeline.writers import run_history

    if not store.home.root.is_dir():
        raise StoreNotFound(str(store.home.root), "nothing")
    removed, derived_again = survey(store, run_history(store.home, clears), subject)
    return {"removed": removed, "derived_again": derived_again}


def _completed(store: Store, subject: Subject) -> dict[str, Any] | None:
    """Completes an interrupted erasure; its certificate if it was that of this subject, which needs no other."""
    from memstate_core.night.erasure.certificate import marked
    from memstate_pipeline.writers import complete_erasure

    begun = marked(store)
    certificate = complete_erasure(store)
    same = begun is not None and begun.subject == subject
    return _document(store, certificate) if certificate is not None and same else None


def _erased(store: Store, subject: Subject, clears: bool | None, at: datetime, why: str) -> dict[str, Any]:
    from memstate_core.night.erasure.erase import erase as erase_subject
    from memstate_pipeline.writers import holding, run_history

    with live_progress(doing="erase"), holding(store, f"process {os.getpid()} (memstate erase)"):
        certificate = erase_subject(store, run_history(store.home, clears), subject, at, user_name(), why)
    return _document(store, certificate)


def _document(store: Store, certificate: Certificate) -> dict[str, Any]:
    from memstate_core.night.erasure.certificate import document

    path = store.home.erasures / f"{certificate.number}.json"
    return {**document(certificate), "certificate": str(path)}


def _counted(found: Mapping[str, Any], verb: str) -> Iterator[str]:
    yield from (f"{verb}: {count:,} {what.replace('_', ' ')}" for what, count in found["removed"].items() if count)
    if found["derived_again"]:
        yield f"topics derived again without it: {', '.join(found['derived_again'])}"


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    yield from _counted(document, "removed")
    yield f"state hash: {document['state_hash_after'] or 'nothing is served'}"
    yield from (f"out of reach: {place}" for place in document["out_of_reach"])
    yield f"certificate: {document['certificate']}"
