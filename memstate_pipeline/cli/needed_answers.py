"""What answers are still needed for nights to merge likely pairs, for `memstate review`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

    from memstate_core.run.served_state import Served
    from memstate_core.run.store import Store


def needed_answers(
    store: Store, shards: Mapping[str, Served], waits: Mapping[str, pl.DataFrame]
) -> list[dict[str, Any]]:
    """A document for each scope in which answers can confirm other pairs (columns `answers_needed.NEEDED`).

    Args:
        store: gives the probability from which a pair is likely.
        shards: the shards.
        waits: the suggested pairs of each.
    """
    from memstate_core.revise.answers_needed import answers_needed

    sure = store.settings.policy.merge_probability
    found = [answers_needed(shards[shard].transitions, rows, sure) for shard, rows in waits.items()]
    return [row for rows in found for row in rows.to_dicts()]


def needed_lines(scopes: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line for each scope."""
    return [_line(scope) for scope in scopes]


def _line(scope: Mapping[str, Any]) -> str:
    merged = f"{scope['others']} of the {scope['likely']} likely pairs that wait"
    if not scope["answers"]:
        return f"{scope['scope']}: your answers confirm up to {merged}; the next night merges them"
    more = f"after at least {scope['answers']} more answers `same` in the order of this list"
    return f"{scope['scope']}: {more}, nights merge up to {merged}"
