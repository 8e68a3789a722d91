"""The `memory context-pack` command: a cited text for a prompt, as `memstate context` makes it."""

from __future__ import annotations

from typing import Annotated

import typer

from memstate_pipeline.cli.context import context as print_context
from memstate_pipeline.cli.shared.options import ALL_STAGES, AsOf, PackPolicy, PackTokenizer, QuestionText, Scopes
from memstate_pipeline.cli.shared.output import Json


def context_pack(
    context: typer.Context,
    text: QuestionText,
    budget: Annotated[int, typer.Option(min=0, metavar="N", help="Maximum size of the text, in tokens.")] = 2_000,
    scope: Scopes = None,
    policy: PackPolicy = "auto",
    tokenizer: PackTokenizer = "model",
    as_of: AsOf = None,
    root: Annotated[str | None, typer.Option(metavar="PATH", help="Workspace that you ask from.")] = None,
    branch: Annotated[str | None, typer.Option(metavar="NAME", help="Branch that you ask from.")] = None,
    commit: Annotated[str | None, typer.Option(metavar="HASH", help="Commit that you ask from.")] = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Print a cited context pack for a prompt, as `memstate context` does."""
    how = {"policy": policy, "tokenizer": tokenizer}
    print_context(context, text, budget, scope, ALL_STAGES, as_of, **how, root=root, branch=branch, commit=commit,
                  as_json=as_json)  # fmt: skip
