"""A state that is checked: the tables of a graph, and the files beside it, as read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import polars as pl

from memstate_core.model.graph_tables import REVISIONS
from memstate_core.night.checks.derived import Derived, derive
from memstate_core.night.checks.recorded import Recorded
from memstate_core.night.checks.salience import aged_salience, recorded_salience
from memstate_core.night.checks.statements import statements
from memstate_core.state.graph import EDGE, FIELD, REVIEW, REVISION, TOPIC, Graph

_STRENGTH = ["strength", "failed_strength", "reinforced_at", "half_life_days"]
_TOPIC = [
    "id",
    "scope",
    "title",
    "topic_kind",
    "salience",
    "failed_salience",
    "state",
    "archived",
    "pinned",
    "merged_into",
]
_FIELD = ["topic_id", "name", "salience", "strength", "reinforced_at", "half_life_days", "detached", "ref_topic_id"]
_REVISION = ["id", *("topic_id", "part", "name", "rank", "value_json", "valid_from", "evidence_ids", "summarises")]
COMPRESSED = {name: REVISIONS[name] for name in _REVISION}


@dataclass(frozen=True)
class Tables:
    """The tables of a graph, as far as checks read them.

    Attributes:
        topics: tombstones among them.
        fields: columns topic_id, name, salience, strength, reinforced_at, half_life_days, detached, ref_topic_id.
        revisions: columns COMPRESSED.
        edges: columns from_id, to_id, kind, valid_from, valid_until, evidence_ids, detached.
        reviews: columns REVIEWS.
    """

    topics: pl.DataFrame
    fields: pl.DataFrame
    revisions: pl.DataFrame
    edges: pl.DataFrame
    reviews: pl.DataFrame

    @property
    def living(self) -> pl.DataFrame:
        """Topics that are not tombstones."""
        return self.topics.filter(pl.col("state") != "merged")


@dataclass(frozen=True)
class Published:
    """The tables and files of a published snapshot.

    Attributes:
        tables: the tables of its graph.
        compressed: the revisions that summaries replace (columns COMPRESSED).
        held: the topic of each piece of evidence (columns EVIDENCE_TOPIC).
        aliases: columns ALIASES.
    """

    tables: Tables
    compressed: pl.DataFrame
    held: pl.DataFrame
    aliases: pl.DataFrame

    @property
    def revisions(self) -> pl.DataFrame:
        """Revisions, those behind summaries among them (columns COMPRESSED)."""
        return pl.concat([self.tables.revisions, self.compressed])


@dataclass(frozen=True)
class CheckedState:
    """A state and the ledger's record of it.

    Attributes:
        recorded: the ledger's record.
        graph: the tables of the working or the served graph.
        compressed: the revisions that summaries replace, as stored beside the graph (columns COMPRESSED).
        aliases: columns ALIASES, as stored beside the graph.
        held: the topic of each piece of evidence, as stored beside the graph (columns EVIDENCE_TOPIC).
        doubt: the topics whose histories, values, citations and strength are examined; None for all.
    """

    recorded: Recorded
    graph: Tables
    compressed: pl.DataFrame
    aliases: pl.DataFrame
    held: pl.DataFrame
    doubt: pl.Series | None = None

    def doubtful(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows of topics in doubt (column topic_id among others)."""
        return rows if self.doubt is None else rows.filter(pl.col("topic_id").is_in(self.doubt.implode()))

    def examining(self, doubt: pl.Series | None) -> CheckedState:
        """The same state, with these topics in doubt."""
        other = replace(self, doubt=doubt)
        vars(other)["derived"] = self.derived  # it takes seconds and does not depend on the doubt
        return other

    @cached_property
    def derived(self) -> Derived:
        """The state that the ledger implies."""
        return derive(self.recorded)

    @cached_property
    def stated(self) -> pl.DataFrame:
        """What evidence states of topics in doubt (columns STATEMENTS)."""
        derived = self.derived
        own = replace(derived, homes=self.doubtful(derived.homes), segments=self.doubtful(derived.segments))
        return statements(self.recorded.evidence, own)

    @cached_property
    def edges_in_force(self) -> pl.DataFrame:
        """The edges of the graph that had begun and had not ended at the logical time of the state."""
        edges, now = self.graph.edges, pl.lit(self.recorded.now)
        begun = edges.filter((now >= pl.col("valid_from")).fill_null(True))
        return begun.filter((now < pl.col("valid_until")).fill_null(True))

    @cached_property
    def levels(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Salience of topics and of fields, recomputed from the ledger.

        The strength of topics that are not in doubt was checked in the base, so theirs is computed from it.
        """
        recorded, living = self.recorded, self.graph.living
        topics = living.select("id", "scope", "topic_kind")
        found = recorded_salience(
            self.stated, recorded.accesses, self.derived, topics, recorded.now, recorded.policy, self.doubt
        )
        if self.doubt is None:
            return found
        sure = living.rename({"id": "topic_id"}).join(found[0], on="topic_id", how="anti")
        rows = self.graph.fields.join(self.doubt.to_frame("topic_id"), on="topic_id", how="anti")
        kept = aged_salience(sure, rows, self.derived, recorded.now, recorded.policy)
        both = [pl.concat([one, other.select(one.columns)]) for one, other in zip(found, kept, strict=True)]
        return both[0], both[1]


def read_tables(graph: Graph) -> Tables:
    """The tables of a graph."""
    return Tables(
        topics=graph.read(TOPIC, [*_TOPIC, *_STRENGTH]),
        fields=graph.read(FIELD, _FIELD),
        revisions=graph.read(REVISION, _REVISION),
        edges=graph.read(EDGE, ["from_id", "to_id", "kind", "valid_from", "valid_until", "evidence_ids", "detached"]),
        reviews=graph.read(REVIEW),
    )
