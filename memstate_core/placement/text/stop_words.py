"""Words that carry no subject, in whichever languages a text is written.

A language's list counts for a scope when its words make up enough of what is said there, so that a word which is
empty in one language ("die", "pan") stays a word in another.
"""

from __future__ import annotations

from functools import lru_cache

import polars as pl

_SHARE = 0.1
"""Share of a scope's words from which a language counts as spoken there."""
_NEAR = 0.7
"""Languages whose lists cover nearly as many different words as the best one does count too: sister languages."""
_WORDS = {"word": pl.String, "language": pl.String, "vague": pl.Boolean}


def stop_words(words: pl.DataFrame) -> pl.DataFrame:
    """The stop words of each scope.

    Args:
        words: columns scope, word (lower case), count.

    Returns:
        Columns scope, word, vague: whether the word does mean something and yet says little ("work", "looks").
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
