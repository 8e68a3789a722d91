"""The topics of one snapshot ranked for a question, over the scopes that were searched.

The structural stage: topics with edges to the best candidates get a share of their scores. A neighbour of a good
candidate may be what the question is about without sharing a word with it: the team that an incident is assigned to, a
part of a whole. Its score is raised part of the way to that of its best neighbour, never above it. Edges that only say
that two topics occur together lift nobody (`tests/benchmarks/edges.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from memstate_core.retrieve.scope_facts import Edge
from memstate_core.retrieve.scoring import highest
from memstate_core.retrieve.search import Found

DAMPING = 0.5
"""The share of the difference to its best neighbour's score that a topic gains."""

UNSPECIFIC = ("associated_with", "mentions")
"""Kinds of edges that name no relation; the segments of a conversation have no others."""


class Ranked(NamedTuple):
    """A topic with its score."""

    score: float
    id: str
    found: Found
    row: int


class Neighbor(NamedTuple):
    """An edge as seen from one of its topics."""

    id: str
    kind: str
    direction: str


@dataclass(frozen=True)
class Boost:
    """What edges add to the score of a topic."""

    found: Found
    row: int
    gain: float


class Ranking:
    """The visible topics of some scopes of one snapshot.

    Args:
        found: what each scope has.
        only: consider these topics only; all when empty.
        kind: return topics of this kind only; the others still lend their scores and are neighbours.
        apart: return no topics of this kind, which lend their scores and are neighbours, too.
    """

    def __init__(
        self, found: Sequence[Found], only: Collection[str] = (), kind: str | None = None, apart: str | None = None
    ) -> None:
        self.found, self._only, self._kind, self._apart = found, frozenset(only), kind, apart
        self._boosts: dict[str, Boost] = {}

    def best(self, count: int) -> list[Ranked]:
        """The topics with the highest scores, best first; ties by id."""
        ranked = [each for found in self.found for each in self._best_of(found, count)]
        ranked += [
            Ranked(float(boost.found.scores[boost.row]) + boost.gain, topic, boost.found, boost.row)
            for topic, boost in self._boosts.items()
            if (not self._only or topic in self._only) and self._is_wanted(boost.found, boost.row)
        ]
        return best_first(ranked)[:count]

    def gain(self, topic: str) -> float:
        """What edges add to the score of a topic."""
        return self._boosts[topic].gain if topic in self._boosts else 0.0

    def boost(self, best: Iterable[Ranked], edges: Iterable[Edge]) -> None:
        """Raises the scores of topics with edges to the best candidates."""
        parents = {each.id: each.score for each in best}
        offered: dict[str, float] = {}
        for topic, neighbor in both_ways(edge for edge in edges if edge.kind not in UNSPECIFIC):
            if topic in parents:
                offered[neighbor.id] = max(parents[topic], offered.get(neighbor.id, -np.inf))
        for topic, parent in offered.items():
            if (place := self.place(topic)) is not None:
                found, row = place
                self._boosts[topic] = Boost(found, row, max(0.0, DAMPING * (parent - float(found.scores[row]))))

    def place(self, topic: str) -> tuple[Found, int] | None:
        """Where a visible topic is; None if there is none with this id."""
        for found in self.found:
            row = found.topics.places.get(topic)
            if row is not None and found.visible[row]:
                return found, row
        return None

    def neighbors(self, topics: Collection[str], edges: Iterable[Edge], limit: int) -> dict[str, list[dict[str, str]]]:
        """The neighbours of some topics that are visible, the most salient first.

        Args:
            topics: whose neighbours are listed.
            edges: their edges.
            limit: the most neighbours of a topic.

        Returns:
            By topic: `title`, `kind`, `direction` and `topic_id` (the neighbour).
        """
        listed: dict[str, list[tuple[float, Neighbor, Found, int]]] = {}
        for topic, neighbor in both_ways(edges):
            if topic in topics and (place := self.place(neighbor.id)) is not None:
                found, row = place
                listed.setdefault(topic, []).append((found.topics.descending_salience[row], neighbor, found, row))
        return {
            topic: [
                {
                    "title": found.topics.columns["title"][row],
                    "kind": neighbor.kind,
                    "direction": neighbor.direction,
                    "topic_id": neighbor.id,
                }
                for _, neighbor, found, row in sorted(near, key=itemgetter(0, 1))[:limit]
            ]
            for topic, near in listed.items()
        }

    def _is_wanted(self, found: Found, row: int) -> bool:
        if self._kind is None and self._apart is None:
            return True
        kind = found.topics.columns["topic_kind"][row]
        return (self._kind is None or kind == self._kind) and (self._apart is None or kind != self._apart)

    def _best_of(self, found: Found, count: int) -> Iterator[Ranked]:
        """The best topics of a scope that edges have not raised."""
        rows = np.flatnonzero(found.visible)
        if self._kind is not None:
            rows = rows[(found.topics.frame["topic_kind"] == self._kind).fill_null(False).to_numpy()[rows]]
        if self._apart is not None:
            rows = rows[found.topics.frame["topic_kind"].ne_missing(self._apart).to_numpy()[rows]]
        if self._only:
            rows = np.array([row for row in rows if found.topics.ids[row] in self._only], dtype=np.intp)
        for row in highest(found.scores, rows, count + len(self._boosts)).tolist():
            if (topic := found.topics.ids[row]) not in self._boosts:
                yield Ranked(float(found.scores[row]), topic, found, row)


def best_first(ranked: Iterable[Ranked]) -> list[Ranked]:
    """Topics by descending score; ties by id, so that the order is deterministic."""
    return sorted(ranked, key=lambda each: (-each.score, each.id))


def both_ways(edges: Iterable[Edge]) -> Iterator[tuple[str, Neighbor]]:
    """Edges seen from either end: the topic and its neighbour."""
    for edge in edges:
        if edge.from_id != edge.to_id:
            yield edge.from_id, Neighbor(edge.to_id, edge.kind, "out")
            yield edge.to_id, Neighbor(edge.from_id, edge.kind, "in")
