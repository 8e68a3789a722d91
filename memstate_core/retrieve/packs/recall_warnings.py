"""Warnings about what a context pack cites: a pure function of its items and of what speaks against them.

Warnings are additive: they change no rank, leave nothing out and cost no tokens. A relation without a readable date is
in force.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

Row = Mapping[str, Any]

SEVERITIES: Final[Mapping[str, str]] = {
    "citation_missing": "warning",
    "temporal_contradiction": "warning",
    "temporal_supersession": "warning",
    "branch_drift": "info",
    "commit_drift": "info",
    "file_missing": "warning",
    "file_hash_mismatch": "warning",
}
"""The kinds of warnings, with the severity of each."""

_FILE_MISSING, _FILE_CHANGED = "file missing: ", "file changed: "


@dataclass(frozen=True)
class Workspace:
    """Where a question is asked from; what is None decides nothing.

    Attributes:
        root: the path of the workspace. What was noted in another one does not drift.
        branch: the branch that is checked out.
        commit: the commit that is checked out, in full or shortened.
    """

    root: str | None = None
    branch: str | None = None
    commit: str | None = None


@dataclass(frozen=True)
class PackedItem:
    """What a line of a pack cites.

    Attributes:
        topic_id: its topic.
        evidence_ids: the evidence behind the line; None for a line that cites a topic as a whole.
    """

    topic_id: str
    evidence_ids: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Grounds:
    """What may speak against packed items.

    Attributes:
        relations: edges in force (`kind`, `from_id`, `to_id`).
        records: the latest verification records (`topic_id`, `check`, `target`, `status`, `message`, `checked_at`).
        notes: what packed evidence notes (`topic_id`, `observation_id`, `workspace`, `branch`, `commit`).
        titles: of topics, by id.
    """

    relations: Sequence[Row] = ()
    records: Sequence[Row] = ()
    notes: Sequence[Row] = ()
    titles: Mapping[str, str] | None = None


def recall_warnings(
    items: Iterable[PackedItem], grounds: Grounds, workspace: Workspace | None = None
) -> list[dict[str, Any]]:
    """The warnings about packed items, each once, by the order of the items and then by kind.

    Returns:
        `id`, `kind`, `severity`, `target` (a topic), `message` and `related_ids` (topics or observations) of each.
    """
    packed = list(items)
    place = {item.topic_id: at for at, item in reversed(list(enumerate(packed)))}
    found = [
        *_uncited(packed),
        *_related(grounds, place.keys()),
        *_recorded(grounds.records),
        *_drifted(grounds.notes, workspace or Workspace()),
    ]
    unique = {warning["id"]: warning for warning in found if warning["target"] in place}
    return sorted(unique.values(), key=lambda each: (place[each["target"]], each["kind"], each["id"]))


def verification_warnings(items: Iterable[PackedItem], records: Sequence[Row]) -> list[dict[str, Any]]:
    """The latest records about packed items that say other than `passed`, by the order of the items."""
    place = {item.topic_id: at for at, item in reversed(list(enumerate(items)))}
    bad = [dict(row) for row in records if row["status"] != "passed" and row["topic_id"] in place]
    return sorted(bad, key=lambda row: (place[row["topic_id"]], row["check"], row["target"]))


def warning_id(kind: str, target: str, message: str, related: Sequence[str]) -> str:
    """The first 16 hex digits of the SHA-256 over all parts, joined by NUL."""
    return hashlib.sha256("\0".join([kind, target, message, *related]).encode()).hexdigest()[:16]


def _warning(kind: str, target: str, message: str, *related: str) -> dict[str, Any]:
    return {
        "id": warning_id(kind, target, message, related),
        "kind": kind,
        "severity": SEVERITIES[kind],
        "target": target,
        "message": message,
        "related_ids": list(related),
    }


def _uncited(packed: Sequence[PackedItem]) -> Iterator[dict[str, Any]]:
    for item in packed:
        if item.evidence_ids == ():
            yield _warning("citation_missing", item.topic_id, "a value of it has no evidence")


def _related(grounds: Grounds, packed: Iterable[str]) -> Iterator[dict[str, Any]]:
    titles, wanted = grounds.titles or {}, set(packed)

    def named(topic_id: str) -> str:
        return titles.get(topic_id) or topic_id

    for edge in grounds.relations:
        here, there = edge["from_id"], edge["to_id"]
        if edge["kind"] == "contradicts":
            for one, other in ((here, there), (there, here)):
                if one in wanted:
                    yield _warning("temporal_contradiction", one, f"in contradiction with {named(other)}", other)
        if edge["kind"] == "supersedes" and there in wanted:
            yield _warning("temporal_supersession", there, f"superseded by {named(here)}", here)


def _recorded(records: Sequence[Row]) -> Iterator[dict[str, Any]]:
    for record in records:
        if record["status"] != "failed":
            continue
        message, related = record["message"], record["target"].removeprefix("observation:")
        if record["check"] == "citations":
            yield _warning("citation_missing", record["topic_id"], message, related)
        elif message.startswith(_FILE_MISSING):
            yield _warning("file_missing", record["topic_id"], message, related)
        elif message.startswith(_FILE_CHANGED):
            yield _warning("file_hash_mismatch", record["topic_id"], message, related)


def _drifted(notes: Sequence[Row], here: Workspace) -> Iterator[dict[str, Any]]:
    """One warning for each topic and other place that evidence of it notes, whatever the number of observations."""
    drifted: dict[tuple[str, str, str], list[str]] = {}
    for note in notes:
        if here.root and note["workspace"] and _path(note["workspace"]) != _path(here.root):
            continue
        if here.branch and note["branch"] and note["branch"] != here.branch:
            message = f"noted on branch {note['branch']}, asked from {here.branch}"
            drifted.setdefault(("branch_drift", note["topic_id"], message), []).append(note["observation_id"])
        if here.commit and note["commit"] and not _same_commit(note["commit"], here.commit):
            message = f"noted at commit {note['commit']}, asked from {here.commit}"
            drifted.setdefault(("commit_drift", note["topic_id"], message), []).append(note["observation_id"])
    for place, observations in drifted.items():
        yield _warning(*place, *sorted(observations))


def _path(path: str) -> str:
    return path.rstrip("/") or "/"


def _same_commit(one: str, other: str) -> bool:
    """Whether one hash begins with the other; either may be shortened."""
    first, second = one.lower(), other.lower()
    return first.startswith(second) or second.startswith(first)
