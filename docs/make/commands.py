"""The reference of the command line, read from the Typer application."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from docs.make.markdown import code, one_line, paragraphs, slug, table
from memstate_pipeline.cli.main import app


def commands() -> str:
    """An overview of all commands, then each with its usage, arguments and options."""
    found = list(named_commands())
    overview = table(
        ("Command", "Does"),
        [(f"[`memstate {name}`](#{slug('memstate ' + name)})", _first_line(command)) for name, command in found],
    )
    return paragraphs(overview, *(_section(name, command) for name, command in found))


def global_options() -> str:
    """The options that come before the command."""
    return _options(typer.main.get_command(app), "memstate")


def named_commands() -> Iterator[tuple[str, Any]]:
    """Each command with the words that call it; of a group, each of its commands."""
    root: Any = typer.main.get_command(app)
    for name, command in root.commands.items():
        inner = getattr(command, "commands", None)
        if inner is None:
            yield name, command
        else:
            yield from ((f"{name} {part}", subcommand) for part, subcommand in inner.items())


def _section(name: str, command: Any) -> str:
    context = typer.Context(command, info_name=f"memstate {name}")
    usage = one_line(command.get_usage(context)).removeprefix("Usage: ")
    return paragraphs(
        f"### memstate {name}", f"```text\n{usage}\n```", _prose(command.help), _options(command, f"memstate {name}")
    )


def _options(command: Any, called: str) -> str:
    context = typer.Context(command, info_name=called)
    records = [parameter.get_help_record(context) for parameter in command.params]
    return table(("Argument or option", "Meaning"), [(code(record[0]), record[1]) for record in records if record])


def _first_line(command: Any) -> str:
    return one_line((command.help or "").split("\n\n")[0])


def _prose(text: str | None) -> str:
    return "\n\n".join(one_line(part) for part in (text or "").split("\n\n"))
