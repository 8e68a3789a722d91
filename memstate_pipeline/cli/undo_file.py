"""`memstate undo --file`: undoes the merges that a file names, all with one snapshot a shard."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from memstate_pipeline.cli.shared.corrections import correcting, publish, published_lines
from memstate_pipeline.cli.shared.options import numbered_lines
from memstate_pipeline.cli.shared.output import show

if TYPE_CHECKING:
    from memstate_core.run.store import Store


def undo_file(store: Store, file: Path, at: datetime | None, as_json: bool) -> None:
    """Undoes the merges that a file names; those that are undone already are passed over.

    Args:
        store: the store.
        file: JSON Lines with an `id` each, or plain ids, one a line: of merges, or of topics that were merged away.
        at: the time of the decisions.
        as_json: print one JSON document: `undone` (id, dropped topic, topic that it was part of), `undone_before`
            (ids of the file that name no merge in force), and `run_id`, `snapshot`, `state_hash` if any was undone.

    Raises:
        typer.BadParameter: the file cannot be read, or a line of it names no id.
        MergesUnknown: ids of the file name no merge; nothing was undone.
    """
    from memstate_core.revise.unmerge import merge_ends, named_merges, unmerge_decisions

    names = [_name(line, where) for line, where in numbered_lines(file)]
    with correcting(store, "undo") as shards:
        named = named_merges(shards, names)
        rows = {shard: unmerge_decisions(shards[shard], undone) for shard, undone in named.in_force.items()}
        published = publish(store, shards, rows, at, "undone manually") if rows else {}
    undone = [merge for rows in named.in_force.values() for merge in merge_ends(rows)]
    document = {**published, "undone": undone, "undone_before": named.undone}
    show(document, as_json, lambda: _lines(document))


def _lines(document: dict[str, Any]) -> list[str]:
    lines = [f"unmerged: {merge['dropped']['title']}  [{merge['dropped']['id']}]" for merge in document["undone"]]
    lines.append(f"merges undone: {len(document['undone'])}; undone before: {len(document['undone_before'])}")
    return [*lines, *published_lines(document)] if document["undone"] else lines


def _name(line: str, where: str) -> str:
    """The id of a line: the line itself, unless it is JSON."""
    if line[0] not in '{["':
        return line
    try:
        document = json.loads(line)
        name = document if isinstance(document, str) else document["id"]
    except (ValueError, KeyError, TypeError) as error:
        raise typer.BadParameter(f'{where}: found {line!r}, expected an id, or {{"id": ID}}') from error
    if not isinstance(name, str):
        raise typer.BadParameter(f"{where}: the id is {name!r}, expected text")
    return name
