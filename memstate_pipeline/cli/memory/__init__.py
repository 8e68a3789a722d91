"""The group `memstate memory`: memory items one at a time. One module a subcommand; each is registered here."""

from __future__ import annotations

from collections.abc import Callable

import typer

from memstate_pipeline.cli.memory import (
    add_relation,
    browse_resources,
    context_pack,
    probe_relations,
    remember,
    search,
    upsert_resource,
    upsert_session_state,
    verify,
)

app = typer.Typer(help="Write and browse single memory items.", no_args_is_help=True)

SUBCOMMANDS: dict[str, Callable[..., None]] = {
    "remember": remember.remember,
    "search": search.search,
    "context-pack": context_pack.context_pack,
    "upsert-session-state": upsert_session_state.upsert_session_state,
    "upsert-resource": upsert_resource.upsert_resource,
    "browse-resources": browse_resources.browse_resources,
    "add-relation": add_relation.add_relation,
    "probe-relations": probe_relations.probe_relations,
    "verify": verify.verify,
}
for _name, _command in SUBCOMMANDS.items():
    app.command(_name)(_command)
