"""`memstate undo --run`: undoes the merges and the steps of forgetting of one run, with one snapshot a shard."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memstate_pipeline.cli.shared.corrections import correcting, publish, published_lines
from memstate_pipeline.cli.shared.output import show

if TYPE_CHECKING:
    from memstate_core.run.store import Store


def undo_run(store: Store, run_id: str, at: datetime | None, as_json: bool) -> None:
    """Undoes what can be undone of a run.

    Args:
        store: the store.
        run_id: the run, in whichever shards it decided something.
        at: the time of the decisions.
        as_json: print one JSON document: `run` (the id given), `undone` (counts by kind), `left` (kind, count,
            why), and `run_id`, `snapshot`, `state_hash` if any was undone.

    Raises:
        RunUnknown: no decision of such a run is on record; nothing was undone.
    """
    from memstate_core.revise.undo_run import undo_run as found_of
    from memstate_core.revise.undo_run import why_left

    with correcting(store, "undo") as shards:
        found = found_of(shards, run_id)
        rows = {shard: each.decisions for shard, each in found.items() if each.decisions.height}
        published = publish(store, shards, rows, at, "undone manually") if rows else {}
    undone, left = Counter[str](), Counter[str]()
    for each in found.values():
        undone.update(each.undone)
        left.update(each.left)
    stays = [{"kind": kind, "count": count, "why": why_left(kind)} for kind, count in sorted(left.items())]
    document = {**published, "run": run_id, "undone": dict(sorted(undone.items())), "left": stays}
    show(document, as_json, lambda: _lines(document))


def _lines(document: dict[str, Any]) -> list[str]:
    undone = [f"undone: {count} {kind}" for kind, count in document["undone"].items()]
    left = [f"not undone: {row['count']} {row['kind']}: {row['why']}" for row in document["left"]]
    last = published_lines(document) if undone else [f"nothing of run {document['run']} is left to undo"]
    return [*undone, *left, *last]
