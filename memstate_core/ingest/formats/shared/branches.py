"""Conversations that branch: the messages of the main line, and the branches that the others form.

The main line is the path from the root to the message that the conversation shows now. Every other message
is on a branch, which is named after its first message; where a branch forks, each side is a branch of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

Parents = Mapping[str, str | None]


class Place(NamedTuple):
    """The position of a message: its own name, its parent's, and its branch; None on the main line."""

    node: str
    parent: str | None
    branch: str | None


def places(parents: Parents, current: str | None) -> Iterator[Place]:
    """Every message once, parents before children, the main line first.

    Args:
        parents: the parent of each message; a parent that is not a message itself counts as none, and cycles are
            cut.
        current: the last message of the main line.
    """
    main = _climbed(parents, current, {})
    branches: dict[str, str | None] = dict.fromkeys(main)
    children = Counter(parent for parent in parents.values() if parent is not None)
    for at, node in enumerate(main):
        yield Place(node, main[at - 1] if at else None, None)
    for start in parents:
        for node in _climbed(parents, start, branches):
            parent = parents[node] if parents[node] in branches else None
            within = None if parent is None else branches[parent]
            branches[node] = branch = node if parent is None or within is None or children[parent] > 1 else within
            yield Place(node, parent, branch)


def _climbed(parents: Parents, start: str | None, known: Mapping[str, object]) -> list[str]:
    """The path down to a message from its topmost ancestor that is not known yet."""
    path: dict[str, None] = {}
    while start is not None and start in parents and start not in known and start not in path:
        path[start] = None
        start = parents[start]
    return list(reversed(path))


class Line:
    """State carried along a line of messages: the number of turns so far, and the last known time."""

    def __init__(self, begins_at: str | None) -> None:
        self._start = (0, begins_at)
        self._ends: dict[str, tuple[int, str | None]] = {}

    def before(self, parent: str | None) -> tuple[int, str | None]:
        """The number of turns up to a message's parent, and the time there."""
        return self._start if parent is None else self._ends.get(parent, self._start)

    def reached(self, node: str, turns: int, time: str | None) -> None:
        """Records the state after a message."""
        self._ends[node] = (turns, time)
