"""Options that several commands share, and their parsing."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from memstate_core.embed.encoder import Encoder
    from memstate_core.embed.token_counters import Counter
    from memstate_core.night.gates.acceptance import Acceptance
    from memstate_core.retrieve.routing import Policy

Now = Annotated[
    str | None, typer.Option(metavar="TIME", help="Logical time of the run, ISO 8601. Default: the machine's clock.")
]
AsOf = Annotated[str | None, typer.Option(metavar="TIME", help="Answer from the state at this time, ISO 8601.")]
Scopes = Annotated[
    list[str] | None,
    typer.Option("--scope", metavar="TYPE:ID", help="Scope to search; may be repeated. Default: all scopes."),
]


def not_blank(text: str) -> str:
    """A question that asks something.

    Raises:
        typer.BadParameter: it is empty or blank.
    """
    if not text.strip():
        raise typer.BadParameter("found a blank question, expected words, such as 'Who owns the Acme renewal?'")
    return text


QuestionText = Annotated[str, typer.Argument(metavar="TEXT", help="The question.", callback=not_blank)]
Stages = Annotated[str, typer.Option(metavar="LIST", help="Comma-separated stages of retrieval.")]
PackPolicy = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="What to read: auto, task (core blocks and active sessions) or workspace (core blocks and resources).",
    ),
]
PackTokenizer = Annotated[
    str,
    typer.Option(
        metavar="FILE",
        help="What counts tokens: a tokenizer.json, model (that of the embedding model) or characters (a quarter).",
    ),
]
Accept = Annotated[
    list[str] | None,
    typer.Option("--accept", metavar="CHECK", help="Gate to let through in this run only; may be repeated."),
]
Why = Annotated[str | None, typer.Option("--why", metavar="TEXT", help="Reason for --accept, which is recorded.")]
ALL_STAGES = "semantic,structural,temporal"


def moment(text: str | None) -> datetime | None:
    """A time from the command line, in UTC; None where the option is absent.

    Raises:
        typer.BadParameter: the text is not ISO 8601.
    """
    from memstate_core.model.text import parse_moment

    try:
        return None if text is None else parse_moment(text)
    except (ValueError, OverflowError) as error:
        raise typer.BadParameter(f"{text!r} is not a time: expected ISO 8601, such as 2026-03-01T00:00:00Z") from error


def user_name() -> str:
    """The user of this process, for the record."""
    from getpass import getuser

    try:
        return getuser()
    except (KeyError, OSError):
        return "a user without a name"


def accepted_gates(gates: list[str] | None, why: str | None) -> Acceptance | None:
    """What `--accept` and `--why` accept, by the user of this process; None where both are absent.

    Raises:
        typer.BadParameter: a name is no gate, or one of the two options lacks the other.
    """
    from memstate_core.model.errors import AcceptanceInvalid
    from memstate_core.night.gates.acceptance import acceptance

    if not gates and why is None:
        return None
    try:
        return acceptance(gates or [], why, user_name())
    except AcceptanceInvalid as error:
        raise typer.BadParameter(error.message) from error


def parsed_scopes(given: list[str] | None) -> tuple[str, ...] | None:
    """The scopes of `--scope`; None where the option is absent.

    Raises:
        typer.BadParameter: one is not TYPE:ID.
    """
    from memstate_core.model.scope import parse_scope

    try:
        return tuple(parse_scope(scope) for scope in given) if given else None
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def default_scope(given: str | None) -> str | None:
    """The scope of `--scope` for rows that name none; None where the option is absent.

    Raises:
        typer.BadParameter: it is not TYPE:ID, or longer than the scope of a row may be.
    """
    from memstate_core.ingest.validation.limits import limited_scope

    try:
        return None if given is None else limited_scope(given)
    except ValueError as error:
        raise typer.BadParameter(f"--scope: {error}") from error


def parsed_policy(given: str) -> Policy:
    """The policy of `--policy`.

    Raises:
        typer.BadParameter: there is none of this name.
    """
    from memstate_core.retrieve.routing import POLICIES

    for policy in POLICIES:
        if given == policy:
            return policy
    raise typer.BadParameter(f"--policy is {given!r}, expected one of {', '.join(POLICIES)}")


def parsed_counter(given: str, encoder: Encoder) -> Counter:
    """The counter of `--tokenizer`.

    Raises:
        typer.BadParameter: the file is no tokenizer.
    """
    from memstate_core.embed.token_counters import counter_of

    try:
        return counter_of(given, encoder.model, encoder.base)
    except ValueError as error:
        raise typer.BadParameter(f"--tokenizer: {error}") from error


def parsed_stages(given: str) -> frozenset[str]:
    """The stages of `--stages`.

    Raises:
        typer.BadParameter: a stage does not exist.
    """
    from memstate_core.retrieve.query import STAGES

    wanted = frozenset(stage.strip() for stage in given.split(",") if stage.strip())
    if wanted - STAGES:
        raise typer.BadParameter(f"unknown stage in {given!r}: expected some of {', '.join(sorted(STAGES))}")
    return wanted


def numbered_lines(file: Path) -> list[tuple[str, str]]:
    """The lines of a file that are not blank, each without white space around it and with where it is.

    Raises:
        typer.BadParameter: the file cannot be read.
    """
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{file} cannot be read: {error}") from error
    return [(line.strip(), f"{file}, line {number}") for number, line in enumerate(lines, start=1) if line.strip()]
