"""Reads from recorded decisions what merges in force say about matches (`matching.earlier_merges`)."""

from __future__ import annotations

import numpy as np
import polars as pl

from memstate_core.model.frames import project
from memstate_core.model.step_frames import PAIRS
from memstate_core.revise.matching.corpus import Corpus
from memstate_core.revise.matching.earlier_merges import MERGED_FIELDS, MERGED_LEVELS, MERGED_PARTS, EarlierMerges
from memstate_core.revise.reading_text import READING
from memstate_core.revise.recorded_levels import levels
from memstate_core.state.fold.decisions import MERGED, PERSON, UNMERGED, merges
from memstate_core.state.fold.identity import survivors

_RECORDED = pl.Struct(
    {
        "actor": pl.String,
        "probability": pl.Float64,
        "features": PAIRS["features"],
        "reading": READING,
        "confirmed_by": pl.Int64,
    }
)
_FIELD = "field:"


def merges_in_force(decisions: pl.DataFrame) -> pl.DataFrame:
    """The merges in force, of runs and of people.

    Args:
        decisions: columns DECISION, in order.

    Returns:
        Columns scope, into (the topic that the dropped one resolves to), actor (null if a run merged by itself, without
        answers that confirm such pairs), probability, features, reading.
    """
    made = decisions.filter(pl.col("kind").is_in([MERGED, UNMERGED])).group_by("topic_id", maintain_order=True).last()
    made = made.filter(pl.col("kind") == MERGED).select(
        "scope", "topic_id", _payload=pl.col("payload_json").str.json_decode(_RECORDED)
    )
    followed = survivors(merges(decisions)).rename({"dropped": "topic_id", "survivor": "into"})
    actor = pl.when(pl.col("confirmed_by") > 0).then(pl.lit(PERSON)).otherwise("actor")
    named = made.unnest("_payload").with_columns(actor=actor).drop("confirmed_by")
    return named.join(followed, on="topic_id", maintain_order="left").drop("topic_id")


def earlier_merges(corpus: Corpus, made: pl.DataFrame) -> EarlierMerges:
    """The merges into the topics of a corpus.

    Args:
        corpus: the topics of a scope.
        made: columns as of `merges_in_force`.
    """
    places = corpus.topics.select(into="id").with_row_index("row")
    own = made.join(places, on="into", maintain_order="left").with_row_index("pair")
    compared = levels(own).join(own.select("pair", "probability"), on="pair", maintain_order="left")
    absorbed, by_runs = (
        np.bincount(rows["row"].to_numpy(), minlength=len(corpus)).astype(np.int64)
        for rows in (own, own.filter(pl.col("actor").is_null()))
    )
    shown = project(compared, MERGED_LEVELS), _fields(corpus, own), _equal(own)
    return EarlierMerges(*shown, absorbed, by_runs, int(by_runs.sum()))


def _fields(corpus: Corpus, own: pl.DataFrame) -> pl.DataFrame:
    """The fields of merged pairs, as their readings have them (columns MERGED_FIELDS)."""
    several = corpus.sources.group_by("row").len().filter(pl.col("len") > 1)["row"]
    read = own.filter(pl.col("reading").struct.field("agree").is_not_null()).select(
        merge=pl.col("pair").cast(pl.Int64),
        across=pl.col("row").cast(pl.Int64).is_in(several.implode()),
        identical=pl.col("features").list.eval(pl.element().struct.field("name") == "identical").list.any(),
        titled=pl.col("reading").struct.field("agree").list.contains("title"),
        agree=pl.col("reading").struct.field("agree"),
        differ=pl.col("reading").struct.field("differ").list.eval(pl.element().struct.field("name")),
    )
    sides = [
        read.select("merge", "across", "identical", "titled", name=side, differs=pl.lit(differs))
        .explode("name")
        .drop_nulls("name")
        for side, differs in (("agree", False), ("differ", True))
    ]
    named = pl.concat(sides).filter(pl.col("name").str.starts_with(_FIELD))
    return project(named.with_columns(pl.col("name").str.strip_prefix(_FIELD)), MERGED_FIELDS)


def _equal(own: pl.DataFrame) -> pl.DataFrame:
    """The parts in which pairs with the same title agreed that runs merged by themselves (columns MERGED_PARTS)."""
    by_runs = own.filter(pl.col("actor").is_null()).select(
        "row", merge="pair", name=pl.col("reading").struct.field("agree")
    )
    same = by_runs.filter(pl.col("name").list.contains("title"))
    return project(same.explode("name").with_columns(pl.col("merge", "row").cast(pl.Int64)), MERGED_PARTS)
