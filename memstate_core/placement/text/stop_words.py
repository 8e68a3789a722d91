"""Stop words of the languages in which a scope's text is written.

A language's list applies to a scope when its words make up enough of the text there, so that a stop word of one
language ("die", "pan") remains a content word in another.
"""

from __future__ import annotations

from functools import lru_cache

import polars as pl

_SHARE = 0.1
"""Least share of a scope's words that a language's list must cover."""
_NEAR = 0.7
"""Least number of distinct words covered, as a share of the best language's: related languages count too."""
_WORDS = {"word": pl.String, "language": pl.String, "vague": pl.Boolean}


def stop_words(words: pl.DataFrame) -> pl.DataFrame:
    """The stop words of each scope.

    Args:
        words: columns scope, word (lower case), count.

    Returns:
        Columns scope, word, vague: whether it is a content word of little information ("work", "looks").
    """
    listed = _lists()
    known = words.join(listed, on="word")
    totals = words.group_by("scope").agg(total=pl.col("count").sum())
    covered = known.group_by("scope", "language").agg(share=pl.col("count").sum(), different=pl.len())
    enough = pl.col("share") >= _SHARE * pl.col("total")
    near = pl.col("different") >= _NEAR * pl.col("different").max().over("scope")
    spoken = covered.join(totals, on="scope").filter(enough & near)
    return spoken.join(listed, on="language").group_by("scope", "word").agg(pl.col("vague").all())


@lru_cache(maxsize=1)
def _lists() -> pl.DataFrame:
    """Every list (columns word, language, vague).

    The English one of `stop-words` holds many nouns and verbs: those that scikit-learn's lacks are vague.
    """
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
    from stop_words import AVAILABLE_LANGUAGES, get_stop_words

    rows = [
        (word.lower(), language, language == "english" and "'" not in word and word not in ENGLISH_STOP_WORDS)
        for language in AVAILABLE_LANGUAGES
        for word in sorted({*get_stop_words(language), *(ENGLISH_STOP_WORDS if language == "english" else ())})
    ]
    return pl.DataFrame(rows, schema=_WORDS, orient="row").unique(["word", "language"], maintain_order=True)
