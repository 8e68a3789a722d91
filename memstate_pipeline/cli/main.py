"""The `memstate` command: its global options, its commands, and how errors become exit codes.

Exit codes: 0 done, 1 failed, 2 usage, 3 the store is locked by another run, 4 a check refused to publish.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated

import typer

from memstate_core import __version__
from memstate_core.model.errors import MemstateError
from memstate_pipeline.cli import (
    care,
    context,
    demo,
    feedback,
    forget,
    keys,
    mcp,
    plan,
    read,
    revise,
    serve,
    simulate,
    ui,
    write,
)
from memstate_pipeline.cli.output import Context, fail, show_usage_error

app = typer.Typer(
    name="memstate",
    help="The night shift for the memory of AI agents: ingest, merge, forget, publish.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"memstate {__version__}")
        raise typer.Exit


@app.callback()
def root(
    given: typer.Context,
    home: Annotated[
        str | None, typer.Option("--home", metavar="DIR", help="The store; $MEMSTATE_HOME, else ~/.memstate.")
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Keeps the store to work on for the command that follows."""
    del version  # its callback has answered
    given.obj = Context(home)


COMMANDS: dict[str, Callable[..., None]] = {
    "demo": demo.demo,
    "import": write.import_,
    "maintain": write.maintain,
    "plan": plan.plan,
    "apply": plan.apply,
    "rebuild": write.rebuild,
    "query": read.query,
    "context": context.context,
    "topic": read.topic,
    "feedback": feedback.feedback,
    "export": read.export,
    "merges": revise.merges,
    "undo": revise.undo,
    "review": revise.review,
    "confirm": revise.confirm,
    "restore": forget.restore,
    "pin": forget.pin,
    "simulate": simulate.simulate,
    "status": care.status,
    "doctor": care.doctor,
    "verify": care.verify,
    "report": care.report,
    "serve": serve.serve,
    "mcp": mcp.mcp,
    "ui": ui.ui,
}
for _name, _command in COMMANDS.items():
    app.command(_name)(_command)
app.add_typer(keys.app, name="keys")


def main() -> None:
    """Runs the command line and exits with its code."""
    as_json = "--json" in sys.argv
    try:
        app()
    except MemstateError as error:
        fail(error, error.exit_code, as_json)
        sys.exit(error.exit_code)
    except SystemExit as end:
        if as_json:
            show_usage_error(end)
        raise
