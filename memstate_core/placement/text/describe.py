"""Extractive titles and summaries of segments, without a language model. Invariant: every word is quoted.

A title is made of the segment's best key phrases: those that distinguish it from the other segments of its scope and
are close to it in meaning (KeyBERT, Grootendorst 2020, over a few candidates). A summary is a selection of relevant,
mutually different sentences (MMR, Carbonell and Goldstein 1998), in their original order.
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
from memstate_core.placement.text.token_features import speakers, tokens
from memstate_core.placement.vectors import Numbers, centroids, shrunken_means, unit

Embed = Callable[[Sequence[str]], Vectors]

CANDIDATES = 6
"""Phrases of a segment that are embedded: each costs the encoder a few tokens."""


def described(turns: pl.DataFrame, vectors: Vectors, embed: Embed, taken: pl.DataFrame) -> pl.DataFrame:
    """The title and summary of each segment.

    Args:
        turns: columns segment (from 0, without gaps), scope, actor, kind, text, in order.
        vectors: the turns' unit vectors (float32, n x d).
        embed: encodes phrases as unit vectors.
        taken: titles of other topics (columns scope, title).

    Returns:
        Columns segment, title, summary and substance (number of distinct content words).
    """
    centroid = centred(turns["segment"].to_numpy(), turns["scope"], vectors)
    near = pl.Series("centrality", (vectors * centroid[turns["segment"].to_numpy()]).sum(axis=1).round(6))
    spoken = sentences(turns.select("segment", "scope", "actor", "kind", "text").with_columns(near))
    words = tokens(spoken, speakers(turns))
    weights = word_weights(words)
    phrases = key_phrases(words, weights, CANDIDATES)
    close = _closeness(phrases, turns, centroid, embed)
    known = turns.select("segment", "scope").unique(maintain_order=True)
    named = titles(known, phrases.with_columns(closeness=close), turns, spoken, taken)
    summarised = summaries(spoken, words, weights, turns)
    substance = weights.group_by("segment").agg(substance=pl.len())
    joined = named.join(summarised, on="segment", how="left").join(substance, on="segment", how="left")
    return joined.select("segment", "title", "summary", pl.col("substance").fill_null(0))


def centred(segments: Numbers, scopes: pl.Series, vectors: Vectors) -> Vectors:
    """The centroid of each segment, after the mean of its scope was subtracted."""
    centroid = centroids(segments, vectors, int(segments.max()) + 1)
    scope = np.zeros(len(centroid), dtype=np.int64)
    scope[segments] = scopes.rank("dense").to_numpy() - 1
    return unit(centroid - shrunken_means(centroid, scope)[scope])


def _closeness(phrases: pl.DataFrame, turns: pl.DataFrame, centroid: Vectors, embed: Embed) -> pl.Series:
    """Cosine of each phrase with its segment, after the mean of their scope was subtracted from both."""
    if not phrases.height:
        return pl.Series("closeness", [], dtype=pl.Float64)
    of_segment = phrases["segment"].to_numpy()
    scope = turns.select("segment", rank=pl.col("scope").rank("dense") - 1).unique().sort("segment")["rank"].to_numpy()
    vectors, group = embed(phrases["phrase"].to_list()), scope[of_segment].astype(np.int64)
    own = unit(vectors - shrunken_means(vectors, group)[group])
    return pl.Series("closeness", (own * centroid[of_segment]).sum(axis=1).astype(np.float64).round(6))
