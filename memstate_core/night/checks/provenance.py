"""C4: every value and edge, with its dates, cites evidence that states it, in a topic of the evidence's own scope.

The topic of each piece of evidence follows from the ledger: from what evidence names and from recorded decisions.
"""

from __future__ import annotations

import polars as pl

from memstate_core.model.frames import MOMENT, symmetric_difference
from memstate_core.model.ids import key_id
from memstate_core.model.step_frames import SEGMENT_EDGE
from memstate_core.night.checks.check import Check, check, violating
from memstate_core.night.checks.checked_state import CheckedState
from memstate_core.night.checks.statements import SLOT

_CITED = ["topic_id", "evidence_id"]


def provenance(checked: CheckedState) -> Check:
    """Citations, evidence without a topic, topics without evidence, scopes, summaries, and the files beside."""
    return check("C4", [
        *_citations(checked),
        *_edges(checked),
        *_homes(checked),
        *_summaries(checked),
        *_files(checked),
    ])  # fmt: skip


def _citations(checked: CheckedState) -> list[pl.DataFrame]:
    """Evidence that values cite; C1 covers current values that no evidence of their topic states."""
    revisions = checked.doubtful(pl.concat([checked.graph.revisions, checked.compressed]))
    cited = revisions.explode("evidence_ids", empty_as_null=True).rename({"evidence_ids": "evidence_id"})
    homes = checked.derived.homes
    foreign = cited.join(homes, on=_CITED, how="anti")
    statements = checked.stated.explode("evidence_ids").rename({"evidence_ids": "evidence_id"})
    full = cited.filter(pl.col("summarises").is_null())
    known = statements.select("evidence_id", "part", "name", _said="value_json")
    compared = full.join(known, on=["evidence_id", "part", "name"], how="left")
    supported = compared.filter((pl.col("_said") == pl.col("value_json")) | _partial(pl.col("name")))
    elsewhere = checked.stated.select(*SLOT, "value_json").unique()
    examined = full.filter(pl.col("rank") > 0), full.join(elsewhere, on=[*SLOT, "value_json"], how="semi")
    unsupported = pl.concat(examined).join(supported, on="id", how="anti")
    return [
        violating(foreign, "topic_id", "a value cites evidence that its topic does not hold"),
        violating(unsupported, "topic_id", "a value that none of its evidence states"),
    ]


def _partial(name: pl.Expr) -> pl.Expr:
    """Whether a segment's evidence supports a field whose older values are not recomputed."""
    return pl.col("_said").is_null() & name.is_in(["participants", "session", "period"])


def _edges(checked: CheckedState) -> list[pl.DataFrame]:
    edges = checked.graph.edges.explode("evidence_ids", empty_as_null=True).rename({"evidence_ids": "evidence_id"})
    foreign = edges.join(checked.derived.homes, left_on=["from_id", "evidence_id"], right_on=_CITED, how="anti")
    stated = pl.concat([_edges_of_evidence(checked), _edges_of_segments(checked)])
    key = ["from_id", "to_id", "kind"]
    supported = edges.join(stated, on=[*key, "evidence_id"], how="semi")
    missing = stated.select(*key, "evidence_id").join(checked.graph.topics, left_on="to_id", right_on="id", how="semi")
    missing = missing.filter(pl.col("to_id") != pl.col("from_id")).join(edges, on=[*key, "evidence_id"], how="anti")
    return [
        violating(foreign, "from_id", "an edge cites evidence that its topic does not hold"),
        violating(edges.join(supported, on=key, how="anti"), "from_id", "an edge that none of its evidence states"),
        violating(_within_scope(checked, missing), "from_id", "an edge that evidence states is missing"),
        violating(_misdated(checked, stated), "from_id", "an edge with other dates than its evidence states"),
    ]


def _misdated(checked: CheckedState, stated: pl.DataFrame) -> pl.DataFrame:
    """Edges that do not begin at the earliest time stated, or do not end as the newest statement says."""
    key = ["from_id", "to_id", "kind"]
    ordered = stated.sort("observed_at", "evidence_id", "_position")
    due = ordered.group_by(key).agg(_since=pl.col("valid_from").min(), _until=pl.col("valid_until").last())
    both = checked.graph.edges.join(due, on=key)
    pairs = (("valid_from", "_since"), ("valid_until", "_until"))
    wrong = pl.any_horizontal(pl.col(here).ne_missing(pl.col(there)) for here, there in pairs)
    return both.filter(wrong)


def _within_scope(checked: CheckedState, edges: pl.DataFrame) -> pl.DataFrame:
    scopes = checked.graph.topics.select("id", "scope")
    both = edges.join(scopes, left_on="from_id", right_on="id").join(
        scopes, left_on="to_id", right_on="id", suffix="_to"
    )
    return both.filter(pl.col("scope") == pl.col("scope_to"))


def _edges_of_evidence(checked: CheckedState) -> pl.DataFrame:
    rows = checked.recorded.evidence.filter(pl.col("edges").list.len() > 0).drop("topic_id")
    edge = pl.col("edges").struct
    named = pl.coalesce(edge.field("to_topic_id"), key_id(pl.col("scope"), edge.field("to_topic_key")))
    rows = rows.with_columns(_position=pl.int_ranges(pl.col("edges").list.len()))
    placed = rows.explode("edges", "_position").join(checked.derived.homes.select(*_CITED), on="evidence_id")
    return placed.select(
        "evidence_id",
        "observed_at",
        "_position",
        from_id="topic_id",
        to_id=checked.derived.answering(named),
        kind=edge.field("kind"),
        valid_from=pl.coalesce(edge.field("valid_from"), "observed_at"),
        valid_until=edge.field("valid_until"),
    )


def _edges_of_segments(checked: CheckedState) -> pl.DataFrame:
    with_edges = checked.derived.segments.filter(pl.col("links").list.len() > 0)
    with_edges = with_edges.with_columns(_position=pl.int_ranges(pl.col("links").list.len()))
    rows = with_edges.explode("links", "_position").explode("evidence_ids")
    edge = pl.col("links").cast(SEGMENT_EDGE).struct
    return rows.select(
        evidence_id="evidence_ids",
        observed_at="ended_at",
        _position="_position",
        from_id="topic_id",
        to_id=checked.derived.answering(edge.field("to_topic_id")),
        kind=edge.field("kind"),
        valid_from="began_at",
        valid_until=pl.lit(None, MOMENT),
    )


def _homes(checked: CheckedState) -> list[pl.DataFrame]:
    homes, living = checked.derived.homes, checked.graph.living
    both = homes.join(living.select("id", _scope="scope"), left_on="topic_id", right_on="id")
    return [
        violating(
            homes.join(living, left_on="topic_id", right_on="id", how="anti"),
            "evidence_id",
            "evidence of no living topic",
        ),
        violating(living.join(homes, left_on="id", right_on="topic_id", how="anti"), "id", "a topic without evidence"),
        violating(both.filter(pl.col("scope") != pl.col("_scope")), "topic_id", "it holds evidence of another scope"),
    ]


def _summaries(checked: CheckedState) -> list[pl.DataFrame]:
    """A summary replaces exactly the revisions stored beside the graph, and cites all their evidence."""
    behind = checked.compressed.group_by(SLOT).agg(
        _count=pl.len().cast(pl.Int64), _cited=pl.col("evidence_ids").explode().unique().sort()
    )
    summaries = checked.graph.revisions.filter(pl.col("summarises").is_not_null())
    both = summaries.join(behind, on=SLOT, how="full", coalesce=True)
    sound = (pl.col("summarises") == pl.col("_count")) & (pl.col("evidence_ids").list.sort() == pl.col("_cited"))
    return [
        violating(both.filter(~sound.fill_null(False)), "topic_id", "a summary differs from the revisions it replaces")
    ]


def _files(checked: CheckedState) -> list[pl.DataFrame]:
    """The files that queries and the next run read: the topic of each piece of evidence, and title aliases."""
    derived = checked.derived
    homes, held = derived.homes.drop("at"), checked.held.drop_nulls("topic_id")
    aliases = derived.aliases.with_columns(topic_id=derived.answering(pl.col("alias")))
    wrong = pl.concat([_difference(held, homes, "evidence_id"), _difference(checked.aliases, aliases, "alias")])
    moved, renamed = wrong.filter("_evidence"), wrong.filter(~pl.col("_evidence"))
    return [
        violating(moved, "id", "evidence is kept under another topic than the ledger gives it"),
        violating(renamed, "id", "an alias leads to another topic than the ledger gives it"),
    ]


def _difference(found: pl.DataFrame, expected: pl.DataFrame, key: str) -> pl.DataFrame:
    """Keys of rows that only one of two frames has (columns id, _evidence)."""
    odd = symmetric_difference(found.select(key, "scope", "topic_id"), expected)
    return odd.select(id=key, _evidence=pl.lit(key == "evidence_id"))
