"""Mentions of topics by name in segments, found by the algorithm of Aho and Corasick (1975).

A name matches as whole words, in any case. A name of one word matches only inside a sentence and only as the topic
spells it, with a capital or a digit, since it may be a common word. Names that occur too often in a scope, such as
those of its speakers, do not count.
"""

from __future__ import annotations

import polars as pl

from memstate_core.model.frames import MOMENT, Schema, project
from memstate_core.model.terms import UNSPACED
from memstate_core.model.text import normalised

_SHORTEST, _LONGEST = 4, 80
"""Characters of a name."""

_OFTEN, _SOME = 0.1, 3
"""A name does not count if it occurs in more than this share of a scope's segments, and in more than this many."""

_READ = 200_000
"""Characters of a turn that are searched."""

_AT_ONCE = 1_000_000
"""Characters that are searched at once: names that contain each other are found many times at one place."""

NAMES: Schema = {"scope": pl.String, "topic_id": pl.String, "name": pl.String}
_FOUND: Schema = {"segment": pl.Int64, "to_topic_id": pl.String}


def known_names(
    topics: pl.DataFrame, evidence: pl.DataFrame, placements: pl.DataFrame, segments: pl.DataFrame
) -> pl.DataFrame:
    """Names of topics (columns NAMES and `since`: when the name of a new segment is first known).

    Args:
        topics: active topics before this night (columns id, scope, title, topic_kind).
        evidence: columns EVIDENCE.
        placements: where evidence that names its topic belongs (columns PLACEMENTS).
        segments: new segments (columns SEGMENTS).

    A topic created by a segment is named by its first key phrase, if that has several words.
    """
    scopes = segments["scope"].unique().implode()
    placed = placements.filter(pl.col("topic_id").is_not_null() & pl.col("scope").is_in(scopes))
    named = evidence.select("evidence_id", "title", "topic_key").join(
        placed.select("evidence_id", "scope", "topic_id"), on="evidence_id"
    )
    spoken = pl.col("topic_kind").is_in(["conversation", "note"]).fill_null(False)
    before = topics.select("scope", "title", "topic_kind", topic_id="id").filter(pl.col("scope").is_in(scopes))
    fresh = segments.select("scope", "title", "topic_id", since="began_at").drop_nulls("title")
    by_segments = pl.concat([_named(before.filter(spoken)), _named(fresh)])
    phrase = by_segments.with_columns(pl.col("name").str.split(", ").list.first()).filter(
        pl.col("name").str.contains(r"\S\s+\S")
    )
    rest = [_named(before.filter(~spoken)), _named(named), _named(named, "topic_key")]
    every = pl.concat([phrase, *rest]).drop_nulls("name")
    long = pl.col("name").str.len_chars().is_between(_SHORTEST, _LONGEST)
    return every.filter(long).unique(["scope", "topic_id", "name"], keep="first", maintain_order=True)


def _named(topics: pl.DataFrame, by: str = "title") -> pl.DataFrame:
    return project(topics.with_columns(name=by), {**NAMES, "since": MOMENT}, nulls=("since",))


def mentions(turns: pl.DataFrame, names: pl.DataFrame) -> pl.DataFrame:
    """Topics mentioned by segments.

    Args:
        turns: columns segment, scope, topic_id (of the segment), began_at, text.
        names: columns NAMES, since.

    Returns:
        Columns segment, to_topic_id, without repeats.
    """
    folded = names.with_columns(pattern=_folded(pl.col("name")), written=_words(pl.col("name")))
    numbered = turns.filter(pl.col("text").is_not_null()).with_row_index("row")
    texts = numbered.select("row", "scope", text=pl.col("text").str.head(_READ))
    found = _occurrences(texts, folded).join(folded, on=["scope", "pattern"])
    hits = found.join(numbered.select("row", "segment", "began_at", own="topic_id"), on="row")
    known = pl.col("since").is_null() | (pl.col("since") < pl.col("began_at"))
    others = hits.filter((pl.col("topic_id") != pl.col("own")) & known)
    several, single = others.filter(_several()), others.filter(~_several())
    meant = pl.concat([several, single.join(_written(texts, single), on=["row", "written"], how="semi")])
    pairs = meant.select("segment", "scope", to_topic_id="topic_id", name="pattern").unique(maintain_order=True)
    spread = turns.group_by("scope").agg(segments=pl.col("segment").n_unique())
    among = pairs.join(spread, on="scope").with_columns(among=pl.col("segment").n_unique().over("scope", "name"))
    rare = among.filter((pl.col("among") <= _SOME) | (pl.col("among") <= _OFTEN * pl.col("segments")))
    return (
        rare.select("segment", "to_topic_id")
        .unique(maintain_order=True)
        .select(list(_FOUND))
        .sort("segment", "to_topic_id")
    )


def _occurrences(texts: pl.DataFrame, names: pl.DataFrame) -> pl.DataFrame:
    """Names that occur in texts, in whatever case (columns row, scope, pattern, without repeats)."""
    found = [pl.DataFrame(schema={"row": pl.UInt32, "scope": pl.String, "pattern": pl.String})]
    block = (pl.col("text").str.len_chars().cum_sum().over("scope") // _AT_ONCE).alias("block")
    blocks = texts.with_columns(block).partition_by("scope", "block", as_dict=True)
    patterns = names.group_by("scope").agg(pl.col("pattern").unique().sort())
    by_scope = dict(patterns.iter_rows())
    for (scope, _), block_texts in blocks.items():
        if scope not in by_scope:
            continue
        matched = _folded(pl.col("text")).str.extract_many(pl.lit(pl.Series([by_scope[scope]])), overlapping=True)
        hits = block_texts.select("row", "scope", pattern=matched.list.unique())
        found.append(hits.explode("pattern").drop_nulls("pattern"))
    return pl.concat(found)


def _folded(text: pl.Expr) -> pl.Expr:
    """Words in lower case between single spaces, with one at either end; unspaced scripts without those."""
    words = normalised(text).str.replace_all(r"[^\p{L}\p{M}\p{N}]+", " ").str.strip_chars()
    apart = words.str.replace_all(rf"([{UNSPACED}])", " $1 ").str.replace_all(r" +", " ").str.strip_chars()
    return pl.concat_str([pl.lit(" "), apart, pl.lit(" ")])


def _several() -> pl.Expr:
    return pl.col("pattern").str.strip_chars().str.contains(" ")


def _written(texts: pl.DataFrame, hits: pl.DataFrame) -> pl.DataFrame:
    """Words with a capital or a digit as they are written inside the sentences of texts that have hits.

    Returns:
        Columns row, written.
    """
    inside = pl.col("text").str.replace_all(r"(?:^|[.!?\u{2026}:\n])[^\p{L}\p{N}]*[\p{L}\p{N}]+", " ")
    listed = texts.join(hits, on="row", how="semi").select(
        "row", written=inside.str.extract_all(r"[\p{L}\p{M}\p{N}]+").list.unique()
    )
    words = listed.explode("written").drop_nulls("written")
    return words.filter(pl.col("written").str.contains(r"\p{Lu}|\p{N}"))


def _words(text: pl.Expr) -> pl.Expr:
    """Words as they are written, between single spaces."""
    return text.str.replace_all(r"[^\p{L}\p{M}\p{N}]+", " ").str.strip_chars()
