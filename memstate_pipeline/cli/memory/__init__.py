"""The group `memstate memory`: memory items one at a time. One module a subcommand; each is registered here."""

from __future__ import annotations

from collections.abc import Callable

import typer

from memstate_pipeline.cli.memory import add_relation, probe_relations, verify

app = typer.Typer(help="Write and browse single memory items.", no_args_is_help=True)

SUBCOMMANDS: dict[str, Callable[..., None]] = {
    "add-relation": add_relation.add_relation,
    "probe-relations": probe_relations.probe_relations,
    "verify": verify.verify,
}
for _name, _command in SUBCOMMANDS.items():
    app.command(_name)(_command)
