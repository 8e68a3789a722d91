"""Clusters probable pairs into groups to merge, without chaining.

Average linkage (Sokal and Michener, 1958) on the pairs' probabilities: two groups join only while the mean
probability between their members is high enough, so that a chain of likely pairs does not join unlikely ends.
Pairs that are kept apart (cannot-link constraints) keep their groups apart.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from memstate_core.revise.matching.arrays import Ints
from memstate_core.revise.matching.candidates.blocking import Candidates

Reals = NDArray[np.float64]

MEAN = 0.7
"""The mean probability at which two groups join: records of one thing differ in how much they state."""
LEAST_MEAN = 0.5
"""The mean probability of a topic with the others of its group, below which it leaves the group (condition C2)."""
MAX_COMPONENT = 2048
"""Most topics that sure pairs may connect; larger components are not groups of duplicates and stay unmerged."""
APART = 1e6
"""Distance of a pair that is kept apart: no mean over a group brings it below the cut."""


def group(
    pairs: Candidates,
    probability: Reals,
    recorded: Reals,
    apart: NDArray[np.bool_],
    *,
    topics: int,
    sure: float,
) -> Ints:
    """Groups of duplicates.

    Args:
        pairs: scored pairs; within a group those that were not scored count as impossible.
        probability: of a match, as far as it counts (pairs,).
        recorded: of a match, as it is recorded with a merge; its mean keeps each topic in its group (pairs,).
        apart: pairs that must never end in one group (pairs,).
        topics: how many topics there are.
        sure: the probability from which a pair can start a group.

    Returns:
        A group's number for each topic; topics without duplicates have one of their own (topics,).
    """
    start = (probability >= sure) & ~apart
    links = coo_array((start[start], (pairs.a[start], pairs.b[start])), shape=(topics, topics))
    component = connected_components(links, directed=False)[1].astype(np.int64)
    inside = np.flatnonzero(component[pairs.a] == component[pairs.b])
    groups = _split(component, pairs, np.where(apart, -APART, probability), inside)
    return _with_start(_held_together(groups, pairs, recorded), pairs, start)


def in_group(a: NDArray[Any], b: NDArray[Any], probability: Reals) -> Reals:
    """The probability of merged pairs, given their groups (pairs,).

    Single pairs differ in how much they state, and average linkage joins topics on the mean of their pairs. So a pair
    is at least as likely as the less certain of its topics is to belong to the group, which is its mean with the
    others. It is also at least as likely as both being the same as the centre, the topic with the highest mean: what
    is the same as one thing is the same, and the doubts of both add up at most (Boole's inequality).

    Args:
        a: topics of the merged pairs, by position or id (pairs,).
        b: the others; the pairs of each group are complete, but for those that were never compared.
        probability: of a match by itself (pairs,).
    """
    topic = np.unique(np.concatenate([a, b]), return_inverse=True)[1].astype(np.int64)
    one, other = topic[: len(a)], topic[len(a) :]
    mean = np.bincount(topic, np.tile(probability, 2)) / np.maximum(np.bincount(topic), 1)
    same = _same_as_centre(one, other, probability, mean)
    through = same[one] + same[other] - 1
    return np.asarray(np.maximum(probability, np.maximum(np.minimum(mean[one], mean[other]), through)))


def _same_as_centre(a: Ints, b: Ints, probability: Reals, mean: Reals) -> Reals:
    """How likely each topic is the same as the centre of its group; 0 where they were not compared (topics,)."""
    topics = np.arange(len(mean))
    links = coo_array((np.ones(len(a), bool), (a, b)), shape=(len(mean), len(mean)))
    groups = connected_components(links, directed=False)[1]
    order = np.lexsort((-mean, groups))
    centre = order[np.unique(groups[order], return_index=True)[1]][groups]
    same = (centre == topics).astype(np.float64)
    for end, far in ((a, b), (b, a)):
        linked = centre[far] == end
        same[far[linked]] = probability[linked]
    return np.asarray(same)


def joined(pairs: pl.DataFrame) -> pl.DataFrame:
    """Topics that pairs (columns a, b) join, directly or through others.

    Returns:
        Columns id, group; topics in no pair are left out.
    """
    ids = pl.concat([pairs["a"], pairs["b"]]).unique().sort()
    if ids.is_empty():
        return pl.DataFrame(schema={"id": pl.String, "group": pl.Int32})
    row, column = ids.search_sorted(pairs["a"]), ids.search_sorted(pairs["b"])
    links = coo_array((np.ones(pairs.height), (row, column)), shape=(len(ids), len(ids)))
    return pl.DataFrame({"id": ids, "group": connected_components(links, directed=False)[1]})


def _split(component: Ints, pairs: Candidates, probability: Reals, inside: Ints) -> Ints:
    """Cuts the components of three topics and more; hierarchies are built one by one."""
    groups, following = component.copy(), int(component.max(initial=0)) + 1
    rows = inside[np.argsort(component[pairs.a[inside]], kind="stable")]
    owner, members = component[pairs.a[rows]], np.argsort(component, kind="stable")
    for one in np.flatnonzero(np.bincount(component, minlength=1) > 2):
        part = members[slice(*np.searchsorted(component[members], [one, one + 1]))]
        own = rows[slice(*np.searchsorted(owner, [one, one + 1]))]
        labels = np.arange(len(part))
        if len(part) <= MAX_COMPONENT:
            labels = _cut(part, pairs.a[own], pairs.b[own], probability[own])
        groups[part] = following + labels
        following += len(part) + 1
    return groups


def _held_together(groups: Ints, pairs: Candidates, probability: Reals) -> Ints:
    """The groups without topics whose mean probability with the others of their group is below LEAST_MEAN."""
    while True:
        within, topics = groups[pairs.a] == groups[pairs.b], len(groups)
        ends = np.concatenate([pairs.a[within], pairs.b[within]])
        total = np.bincount(ends, np.tile(probability[within], 2), minlength=topics)
        weak = total < LEAST_MEAN * np.bincount(ends, minlength=topics)
        if not weak.any():
            return groups
        groups = np.where(weak, groups.max(initial=0) + 1 + np.arange(topics), groups)


def _with_start(groups: Ints, pairs: Candidates, start: NDArray[np.bool_]) -> Ints:
    """The groups; topics of one that the cut left without a pair that can start a group are on their own."""
    kept = start & (groups[pairs.a] == groups[pairs.b])
    started = np.zeros(int(groups.max(initial=0)) + 1, bool)
    started[groups[pairs.a[kept]]] = True
    return np.where(started[groups], groups, len(started) + np.arange(len(groups)))


def _cut(part: Ints, a: Ints, b: Ints, probability: Reals) -> Ints:
    from scipy.cluster.hierarchy import fcluster, linkage  # only here: importing it takes a while

    distance = np.ones((len(part), len(part)))
    i, j = np.searchsorted(part, a), np.searchsorted(part, b)
    distance[i, j] = distance[j, i] = 1 - probability
    condensed = distance[np.triu_indices(len(part), 1)]
    return np.asarray(fcluster(linkage(condensed, "average"), 1 - MEAN, "distance"), np.int64)
