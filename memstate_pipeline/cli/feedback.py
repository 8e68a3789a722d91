"""The `feedback` command: records whether a topic was useful."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from memstate_pipeline.cli.shared.accesses import AccessTime, record_accesses, recorded_lines
from memstate_pipeline.cli.shared.options import moment
from memstate_pipeline.cli.shared.output import Json, show

if TYPE_CHECKING:
    from memstate_core.retrieve.views.topic import Resolved


def feedback(
    context: typer.Context,
    topic_id: Annotated[
        str, typer.Argument(metavar="TOPIC", help="A topic, an alias, a topic merged away, or a topic_key.")
    ],
    used: Annotated[bool, typer.Option("--used/--failed", help="The topic was useful, or it was not.")],
    field: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Field that is meant. Default: the whole topic.")
    ] = None,
    now: AccessTime = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Record whether a topic was useful.

    The next run counts it.
    """
    from contextlib import ExitStack

    from memstate_core.retrieve.views.topic import resolve
    from memstate_core.retrieve.views.topic_keys import topic_id_of
    from memstate_pipeline.cli.shared.readers import open_readers
    from memstate_pipeline.writers import complete_erasure

    at, store = moment(now), context.obj.store
    complete_erasure(store)
    with ExitStack() as stack:
        readers = open_readers(store, stack)
        found = resolve(readers, topic_id_of(readers, topic_id))
        _require_fields(found, field or [])
        named = {"topic_id": found.topic["id"][0], "scope": found.topic["scope"][0]}
    answer = {"recorded": record_accesses(store, [named], at, fields=field or None, failed=not used)}
    show(answer, as_json, lambda: recorded_lines(answer))


def _require_fields(found: Resolved, names: list[str]) -> None:
    """Looks the fields up in the graph, which also holds detached ones.

    Raises:
        typer.BadParameter: the topic has no such field.
    """
    from memstate_core.state.graph import FIELD

    topic_id = found.topic["id"][0]
    known = found.reader.graph.read(FIELD, ["name"], where="r.topic_id = $id", id=topic_id)["name"].sort().to_list()
    unknown = [name for name in names if name not in known]
    if unknown:
        raise typer.BadParameter(f"topic {topic_id} has no field {unknown[0]!r}: expected some of {', '.join(known)}")
