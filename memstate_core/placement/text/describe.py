"""Titles and summaries taken from the text itself, without a language model. Nothing is written that nobody said.

A title is the segment's best key phrases: those that set it apart from the others of its scope and whose meaning is
near to its own (KeyBERT, Grootendorst 2020, over a few candidates). A summary is its most telling sentences, each
saying what the others do not (MMR, Carbonell and Goldstein 1998), in order of speech.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl

from memstate_core.embed.encoder import Vectors
from memstate_core.placement.text.extractive_summary import summaries
from memstate_core.placement.text.keyphrases import key_phrases, word_weights
from memstate_core.placement.text.sentences import sentences
from memstate_core.placement.text.title import titles
from memstate_core.placement.text.tokens import speakers, tokens
from memstate_core.placement.vectors import Numbers, common, means, unit

Embed = Callable[[Sequence[str]], Vectors]

CANDIDATES = 6
"""Phrases of a segment whose meaning is looked at: each costs the encoder a few tokens."""


def described(turns: pl.DataFrame, vectors: Vectors, embed: Embed, taken: pl.DataFrame) -> pl.DataFrame:
    """What each segment is called and says.

    Args:
        turns: columns segment (from 0, without gaps), scope, actor, kind, text, in order.
        vectors: the turns' unit vectors (float32, n x 384).
        embed: gives unit vectors for phrases.
        taken: titles that other topics bear (columns scope, title).

    Returns:
        Columns segment, title, summary and substance (how many different words it has that say something).
    """
    middle = centred(turns["segment"].to_numpy(), turns["scope"], vectors)
    near = pl.Series("centrality", (vectors * middle[turns["segment"].to_numpy()]).sum(axis=1).round(6))
    said = sentences(turns.select("segment", "scope", "actor", "kind", "text").with_columns(near))
    words = tokens(said, speakers(turns))
    weights = word_weights(words)
    phrases = key_phrases(words, weights, CANDIDATES)
    close = _closeness(phrases, turns, middle, embed)
    known = turns.select("segment", "scope").unique(maintain_order=True)
    named = titles(known, phrases.with_columns(closeness=close), turns, said, taken)
    told = summaries(said, words, weights, turns)
    substance = weights.group_by("segment").agg(substance=pl.len())
    joined = named.join(told, on="segment", how="left").join(substance, on="segment", how="left")
    return joined.select("segment", "title", "summary", pl.col("substance").fill_null(0))


def centred(segments: Numbers, scopes: pl.Series, vectors: Vectors) -> Vectors:
    """The middle of each segment, less what all segments of its scope have in common."""
    middle = means(segments, vectors, int(segments.max()) + 1)
    scope = np.zeros(len(middle), dtype=np.int64)
    scope[segments] = scopes.rank("dense").to_numpy() - 1
    return unit(middle - common(middle, scope)[scope])


def _closeness(phrases: pl.DataFrame, turns: pl.DataFrame, middle: Vectors, embed: Embed) -> pl.Series:
    """Cosine of each phrase with its segment, both less what is common in their scope."""
    if not phrases.height:
        return pl.Series("closeness", [], dtype=pl.Float64)
    of_segment = phrases["segment"].to_numpy()
    scope = turns.select("segment", rank=pl.col("scope").rank("dense") - 1).unique().sort("segment")["rank"].to_numpy()
    vectors, group = embed(phrases["phrase"].to_list()), scope[of_segment].astype(np.int64)
    own = unit(vectors - common(vectors, group)[group])
    return pl.Series("closeness", (own * middle[of_segment]).sum(axis=1).astype(np.float64).round(6))
