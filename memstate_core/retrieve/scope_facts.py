"""The current facts of one scope, prepared so that a question takes those of a few topics by their places.

Invariant: what is taken for some topics is what a filter of the scope's tables by these topics would find.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from memstate_core.retrieve.facts.facts import Facts, facts_from, shown_rows
from memstate_core.retrieve.scope_data import Rows, taken
from memstate_core.state.graph import EDGE, FIELD, REVIEW, REVISION


class Edge(NamedTuple):
    """What identifies an edge."""

    from_id: str
    to_id: str
    kind: str


class TopicRows:
    """Rows of a frame by the topic that one of its columns names."""

    def __init__(self, rows: pl.DataFrame, column: str) -> None:
        self._columns, ids = rows.get_columns(), rows[column]
        self._order = ids.arg_sort().to_numpy()
        runs = ids.gather(self._order).rle().struct.unnest()
        ends = np.cumsum(runs["len"].to_numpy())
        starts = ends - runs["len"].to_numpy()
        self._places = dict(zip(runs["value"], zip(starts.tolist(), ends.tolist(), strict=True), strict=True))

    def places(self, ids: Sequence[str]) -> Rows:
        """The numbers of the rows of some topics."""
        found = [self._order[slice(*self._places[topic])] for topic in ids if topic in self._places]
        return np.concatenate(found) if found else np.zeros(0, dtype=np.intp)

    def of(self, ids: Sequence[str]) -> list[tuple[Any, ...]]:
        """The rows of some topics."""
        return taken(self._columns, self.places(ids))


@dataclass(frozen=True)
class ScopeFacts:
    """The facts of one scope.

    Attributes:
        tables: the rows of `fields`, `revisions`, `reviews` and `edges` (`memstate_core.retrieve.index.facts_files`).
        later: the fields of which the newest value is not in force yet (columns topic_id, name).
    """

    tables: dict[str, pl.DataFrame]
    later: pl.DataFrame

    def facts(self, ids: Sequence[str]) -> Facts:
        """The current facts of some topics."""
        return facts_from(*(rows.of(ids) for rows in self._shown))

    def edges(self, ids: Sequence[str]) -> list[Edge]:
        """The edges that start or end at some topics, each once."""
        starts, ends = self._ends
        places = np.unique(np.concatenate([starts.places(ids), ends.places(ids)]))
        return [Edge(*row) for row in taken([self.tables["edges"][name] for name in EDGE.key], places)]

    @cached_property
    def _shown(self) -> tuple[TopicRows, ...]:
        return tuple(
            TopicRows(shown_rows(table, self.tables[name]), "topic_id")
            for name, table in (("fields", FIELD), ("revisions", REVISION), ("reviews", REVIEW))
        )

    @cached_property
    def _ends(self) -> tuple[TopicRows, TopicRows]:
        edges = self.tables["edges"]
        return TopicRows(edges, "from_id"), TopicRows(edges, "to_id")


def edges_of(rows: pl.DataFrame) -> list[Edge]:
    """The edges of a frame (columns EDGES)."""
    return [Edge(*row) for row in rows.select(EDGE.key).rows()]
