"""`memstate review --merged`: the automatic merges in force that today's model would not make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memstate_pipeline.cli.shared.output import show
from memstate_pipeline.cli.shared.terminal import cut, width
from memstate_pipeline.cli.shared.text import number

if TYPE_CHECKING:
    from memstate_core.run.store import Store

_NEXT = (
    "undo them all with one snapshot:",
    "  memstate review --merged --json | jq -c '.merged[]' > merges.jsonl",
    "  memstate undo --file merges.jsonl",
)


def review_merged(store: Store, limit: int | None, as_json: bool) -> None:
    """Lists merges in force that today's model would not make, the least probable first.

    Args:
        store: the store.
        limit: the largest number to list; None for all.
        as_json: print one JSON document: `merged`, `refused` (how many there are), `judged` (how many merges were
            judged) and `unjudged` (how many were not, since a topic is archived).
    """
    from memstate_core.night.rejudge import rejudge
    from memstate_core.run.served_state import read_served

    found = [rejudge(store, served) for served in read_served(store).values()]
    refused = [merge for each in found for merge in each.refused]
    refused.sort(key=lambda merge: (merge["today"] is not None, merge["today"] or 0.0))
    counts = {
        "refused": len(refused),
        "judged": sum(each.judged for each in found),
        "unjudged": sum(each.unjudged for each in found),
    }
    shown = refused[:limit]
    show({"merged": shown, **counts}, as_json, lambda: _lines(shown, counts))


def _lines(merges: Sequence[Mapping[str, Any]], counts: Mapping[str, int]) -> Iterator[str]:
    for merge in merges:
        yield from [*_merge(merge), ""]
    yield f"merges judged: {counts['judged']}; today's model would not make {counts['refused']} of them"
    if counts["unjudged"]:
        yield f"merges not judged, since a topic is archived: {counts['unjudged']}"
    if merges:
        yield from _NEXT


def _merge(merge: Mapping[str, Any]) -> Iterator[str]:
    """Id and time; both topics, each on a line that fits the terminal; the probabilities then and today; the reason."""
    into, apart = merge["into"], merge["apart"]
    yield f"{merge['id']}  {merge['at'][:16]}"
    yield _topic("", apart["dropped"], merge["dropped"]["id"])
    yield _topic("into ", apart["survivor"], merge["survivor"]["id"])
    if into["id"] != merge["survivor"]["id"]:
        yield _topic("now in ", into["title"], into["id"])
    today = "" if merge["today"] is None else f", today {number(merge['today'])}"
    yield f"    probability {number(merge['probability'])}{today}"
    yield f"    {merge['why']}"


def _topic(label: str, title: str | None, name: str) -> str:
    """A topic's title, cut so that its id fits on the line, and its id."""
    begin, end = f"    {label}", f"  [{name}]"
    return f"{begin}{cut(title or '', width() - len(begin) - len(end))}{end}"
