"""As-of answers of random histories are those of a world that ended at the moment."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import polars as pl

from memstate_core.state.graph import open_graph
from tests.core import reference
from tests.core.retrieve.test_past import (
    MERGED_FROM,
    SCOPE,
    as_block,
    known_by,
    parts,
    parts_of,
    past_of,
    without_forms,
)
from tests.core.strategies import TITLES, accessed, day, field, merge_decisions, observation


def _stream(random: Random) -> list[dict[str, Any]]:
    """Observations, a third of which write core blocks."""
    said = [
        observation(
            number,
            scope=SCOPE,
            observed_at=day(random.randrange(7)),
            topic_key=random.choice((None, "acme", "plan")),
            title=random.choice(TITLES),
            summary=random.choice((None, "Won", "Lost again")),
            topic_kind=random.choice((None, "deal")),
            fields=[field(random.choice(("owner", "stage")), random.choice(('"Aya"', "1", "null")))],
        )
        for number in range(random.randrange(3, 12))
    ]
    return [as_block(each, random.choice(TITLES)) if random.random() < 1 / 3 else each for each in said]


def attack(random: Random, folder: Path, count: int = 6) -> int:
    """Random histories with merges, each looked at on every day."""
    with open_graph(folder / "graph.kuzu", buffer_mib=64) as no_reviews:
        for _ in range(count):
            stream = _stream(random)
            world = reference.fold(stream)
            topics = without_forms(world.topics)
            merges = [(topics[1], topics[0])] if len(topics) > 1 else []
            at = pl.Series("at", [day(MERGED_FROM)] * len(merges), pl.Datetime("us", "UTC"))
            decisions = merge_decisions(merges, world).with_columns(at)
            for moment in range(MERGED_FROM + 2):
                past = past_of(no_reviews, stream, decisions, accessed(), moment)
                known = reference.fold(known_by(stream, moment), merges if moment >= MERGED_FROM else [])
                assert parts_of(past) == {name: parts(topic) for name, topic in known.topics.items()}, (moment, stream)
    return count * (MERGED_FROM + 2)
