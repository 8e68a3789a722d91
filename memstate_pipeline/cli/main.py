"""The `memstate` command: global options, the commands, and exit codes.

Exit codes: 0 done, 1 failed, 2 usage, 3 the store is locked by another run, 4 a check refused to
publish or the ledger is damaged, 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from memstate_core import __version__
from memstate_core.state.files import PRIVATE_UMASK
from memstate_core.state.process.interrupts import delayed_interrupts
from memstate_pipeline.cli import (
    backup,
    compact,
    conformance,
    context,
    demo,
    erase,
    eval,
    export,
    facts,
    feedback,
    fetch_inbox,
    forget,
    import_,
    init,
    keys,
    maintain,
    mcp,
    memory,
    notify,
    operate,
    plan,
    publish,
    pull,
    quarantine,
    query,
    reembed,
    reshard,
    retention,
    revise,
    rollback,
    serve,
    simulate,
    topic,
    ui,
)
from memstate_pipeline.cli.shared.errors import INTERRUPTED, Boundary
from memstate_pipeline.cli.shared.output import Context

app = typer.Typer(
    name="memstate",
    help="The night shift for the memory of AI agents: ingest, merge, forget, publish.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"memstate {__version__}")
        raise typer.Exit


@app.callback()
def root(
    given: typer.Context,
    home: Annotated[
        str | None,
        typer.Option(
            "--home", metavar="DIR|URL", help="Folder or URL of the store. Default: $MEMSTATE_HOME, else ~/.memstate."
        ),
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Sets the options that all commands share."""
    del version  # handled by its callback
    options = given.ensure_object(Context)
    options.home, options.debug = home, debug


COMMANDS: dict[str, Callable[..., None]] = {
    "demo": demo.demo,
    "import": import_.import_,
    "maintain": maintain.maintain,
    "plan": plan.plan,
    "apply": plan.apply,
    "rebuild": operate.rebuild,
    "rollback": rollback.rollback,
    "reembed": reembed.reembed,
    "reshard": reshard.reshard,
    "query": query.query,
    "context": context.context,
    "topic": topic.topic,
    "facts": facts.facts,
    "eval": eval.eval_,
    "conformance": conformance.conformance,
    "feedback": feedback.feedback,
    "export": export.export,
    "merges": revise.merges,
    "undo": revise.undo,
    "review": revise.review,
    "confirm": revise.confirm,
    "restore": forget.restore,
    "pin": forget.pin,
    "erase": erase.erase,
    "retention": retention.retention,
    "compact": compact.compact,
    "simulate": simulate.simulate,
    "init": init.init,
    "status": operate.status,
    "doctor": operate.doctor,
    "verify": operate.verify,
    "backup": backup.backup,
    "publish": publish.publish,
    "fetch-inbox": fetch_inbox.fetch_inbox,
    "pull": pull.pull,
    "restore-backup": backup.restore_backup,
    "report": operate.report,
    "notify": notify.notify,
    "serve": serve.serve,
    "mcp": mcp.mcp,
    "ui": ui.ui,
}
for _name, _command in COMMANDS.items():
    app.command(_name)(_command)
app.add_typer(keys.app, name="keys")
app.add_typer(memory.app, name="memory")
app.add_typer(quarantine.app, name="quarantine")


def main() -> None:
    """Runs the command line and exits with its code."""
    os.umask(PRIVATE_UMASK)
    options = Context()
    with Boundary(options, as_json="--json" in sys.argv), delayed_interrupts():
        code = app(obj=options, prog_name="memstate", standalone_mode=False)
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        sys.exit(code)
