"""Facts of a set of topics: fields, histories, edges and open reviews, read from the graph set by set.

Rows become Python values here, at the edge of the output; nothing is queried topic by topic. A question shows a few
dozen rows, for which each operation of a frame takes longer than all of this.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

import polars as pl
from msgspec import json as msgjson

from memstate_core.model.frames import empty
from memstate_core.model.graph_tables import REVISIONS
from memstate_core.model.text import iso_expr
from memstate_core.retrieve.facts.conflicts import Conflicts, RevisionRow, Slot, Slots, conflict_messages, conflicting
from memstate_core.retrieve.facts.in_force import in_force, in_force_of
from memstate_core.retrieve.index.facts_files import current_revisions
from memstate_core.state.fold.edges import valid_at
from memstate_core.state.graph import EDGE, FIELD, REVIEW, REVISION, Graph, Table

Revision = dict[str, Any]
Rows = Sequence[tuple[Any, ...]]


class _Field(NamedTuple):
    """A row of the fields of topics."""

    topic_id: str
    name: str
    field_type: str | None
    ref_topic_id: str | None
    ref_state: str | None
    salience: float | None
    detached: bool


SHOWN: dict[str, tuple[str, ...]] = {
    FIELD.name: _Field._fields,
    REVISION.name: RevisionRow._fields,
    REVIEW.name: ("topic_id", "hops", "id", "reason", "cause_topic_id"),
}
"""The columns of each table that facts are made of."""

_MOMENTS = {"valid_from", "recorded_at", "settled_at"}


@dataclass(frozen=True)
class TopicSet:
    """Some topics, as a condition over the column that names them."""

    condition: str
    given: dict[str, Any]
    rows: pl.Expr
    """The same condition over the column `topic_id` of a frame."""

    @classmethod
    def of(cls, ids: list[str]) -> TopicSet:
        """The topics with these ids."""
        return cls("{column} IN $ids", {"ids": ids}, pl.col("topic_id").is_in(ids))

    @classmethod
    def between(cls, low: str, high: str) -> TopicSet:
        """The topics with ids from `low` to `high`, both included."""
        rows = pl.col("topic_id").is_between(pl.lit(low), pl.lit(high))
        return cls("{column} >= $low AND {column} <= $high", {"low": low, "high": high}, rows)

    def where(self, column: str = "r.topic_id") -> str:
        """The condition over this column."""
        return self.condition.format(column=column)


@dataclass(frozen=True)
class Facts:
    """Facts of some topics.

    Attributes:
        fields: by topic, its fields by name, each with `field_type`, `ref_topic_id`, `salience`, `detached`,
            `history` (revisions, newest first, never empty; a summary has `summarises`) and `conflict` (other
            values as of the same time as the newest, each with `value`, `valid_from`, `provenance`,
            `evidence_ids`; empty without any).
        topic_history: by topic, the histories of `title`, `summary` and `topic_kind` by name.
        warnings: by topic: `{kind, message, ...}`.
    """

    fields: dict[str, dict[str, dict[str, Any]]]
    topic_history: dict[str, dict[str, list[Revision]]]
    warnings: dict[str, list[dict[str, Any]]]

    @classmethod
    def together(cls, parts: Iterable[Facts]) -> Facts:
        """Facts of different topics in one."""
        whole = cls({}, {}, {})
        for part in parts:
            whole.fields.update(part.fields)
            whole.topic_history.update(part.topic_history)
            whole.warnings.update(part.warnings)
        return whole


def read_facts(
    graph: Graph,
    topics: TopicSet,
    *,
    history: bool = False,
    older: pl.LazyFrame | None = None,
    detached: bool = True,
    moment: datetime | None = None,
) -> Facts:
    """Reads the facts of some topics from the graph.

    Args:
        graph: an open graph.
        topics: which topics.
        history: all revisions instead of the newest one, and the histories of the topics themselves.
        older: the revisions behind summaries (columns REVISIONS), to read them instead of summaries in histories.
        detached: include detached fields.
        moment: leave out values that begin later; None includes them.
    """
    if history:
        revisions = graph.read(REVISION, where=topics.where(), **topics.given)
        if older is not None:
            own = revisions.filter(pl.col("summarises").is_null())
            revisions = pl.concat([own, older.filter(topics.rows).collect()])
        revisions = revisions if moment is None else in_force(revisions, moment)
    else:
        revisions = current_revisions(graph, topics.where(), **topics.given)
        if moment is not None:
            revisions = in_force_of(graph, empty(REVISIONS).lazy() if older is None else older, revisions, moment)
    fields = graph.read(FIELD, where=topics.where(), **topics.given)
    fields = fields if detached else fields.filter(~pl.col("detached"))
    reviews = graph.read(REVIEW, where=topics.where(), **topics.given)
    return facts_of(fields, revisions, reviews, history=history)


def facts_of(
    fields: pl.DataFrame,
    revisions: pl.DataFrame,
    reviews: pl.DataFrame,
    *,
    history: bool = False,
) -> Facts:
    """Facts from rows of the graph's tables, in any order.

    Args:
        fields: columns FIELDS.
        revisions: columns REVISIONS.
        reviews: columns REVIEWS.
        history: keep every revision of a field instead of the newest.
    """
    tables = ((FIELD, fields), (REVISION, revisions), (REVIEW, reviews))
    return facts_from(*(shown_rows(table, rows).rows() for table, rows in tables), history=history)


def shown_rows(table: Table, rows: pl.DataFrame) -> pl.DataFrame:
    """The columns of a table that facts show, moments as text; rows of many questions are prepared once."""
    return rows.select(iso_expr(pl.col(name)) if name in _MOMENTS else name for name in SHOWN[table.name])


def facts_from(fields: Rows, revisions: Rows, reviews: Rows, *, history: bool = False) -> Facts:
    """Facts from the rows of `shown_rows`, in any order; arguments as for `facts_of`."""
    slots = _slots(revisions)
    conflicts = conflicting(slots)
    entries = {slot: [_entry(row) for row in (rows if history else rows[:1])] for slot, rows in sorted(slots.items())}
    shown = [_Field(*row) for row in sorted(fields, key=itemgetter(0, 1))]
    return Facts(
        _fields(shown, entries, conflicts), _topic_histories(entries), _warnings(shown, slots, conflicts, reviews)
    )


def read_edges(graph: Graph, topics: TopicSet, *, moment: datetime | None = None) -> pl.DataFrame:
    """The edges that start or end at some topics (columns EDGES), each once, sorted.

    Args:
        graph: an open graph.
        topics: which topics.
        moment: leave out edges that are not in force then; None keeps all.
    """
    ends = [graph.read(EDGE, where=topics.where(end), **topics.given) for end in ("a.id", "b.id")]
    edges = pl.concat(ends).unique(EDGE.key).sort(EDGE.key)
    return edges if moment is None else edges.filter(valid_at(moment))


def _slots(revisions: Rows) -> Slots:
    """The revisions of each slot, newest first."""
    slots: Slots = {}
    for row in revisions:
        revision = RevisionRow(*row)
        slots.setdefault((revision.topic_id, revision.part, revision.name), []).append(revision)
    for rows in slots.values():
        rows.sort(key=attrgetter("rank"))
    return slots


def _entry(row: RevisionRow) -> Revision:
    entry = {
        "id": row.id,
        "value": msgjson.decode("null" if row.value_json is None else row.value_json),
        "valid_from": row.valid_from,
        "recorded_at": row.recorded_at,
        "provenance": row.provenance,
        "why_changed": row.why_changed,
        "impact_expected": row.impact_expected,
        "confidence": row.confidence,
        "evidence_ids": row.evidence_ids,
    }
    return entry | {"summarises": row.summarises} if row.summarises else entry


def _fields(
    fields: list[_Field], entries: dict[Slot, list[Revision]], conflicts: Conflicts
) -> dict[str, dict[str, dict[str, Any]]]:
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for field in fields:
        if history := entries.get((field.topic_id, "field", field.name)):
            found.setdefault(field.topic_id, {})[field.name] = {
                "field_type": field.field_type,
                "ref_topic_id": field.ref_topic_id,
                "salience": field.salience,
                "detached": field.detached,
                "history": history,
                "conflict": conflicts.get((field.topic_id, field.name), []),
            }
    return found


def _topic_histories(entries: dict[Slot, list[Revision]]) -> dict[str, dict[str, list[Revision]]]:
    found: dict[str, dict[str, list[Revision]]] = {}
    for (topic, part, name), history in entries.items():
        if part == "topic":
            found.setdefault(topic, {})[name] = history
    return found


def _warnings(
    fields: list[_Field], slots: Slots, conflicts: Conflicts, reviews: Rows
) -> dict[str, list[dict[str, Any]]]:
    """Warnings by topic: references that dangle, then conflicts, then reviews."""
    found: dict[str, list[dict[str, Any]]] = {}

    def warn(topic: str, kind: str, message: str, field: str | None, related: str | None) -> None:
        warning = {"kind": kind, "message": message, "field": field, "related_topic_id": related}
        found.setdefault(topic, []).append(warning)

    for each in fields:
        if each.ref_state == "dangling":
            message = f"field {each.name} refers to topic {each.ref_topic_id}, which does not exist"
            warn(each.topic_id, "dangling_reference", message, each.name, each.ref_topic_id)
    for topic, name, message in conflict_messages(slots, conflicts):
        warn(topic, "conflict", message, name, None)
    for topic, _, _, reason, cause in sorted(reviews, key=itemgetter(0, 1, 2)):
        warn(topic, "stale", reason, None, cause)
    return found
