"""Words that differ by one edit: a letter inserted, left out or replaced, or two neighbours swapped.

Found as in symmetric deletion (Garbe, SymSpell, 2012): two such words are equal after one letter of each, or of the
longer one, is left out.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from memstate_core.revise.matching.arrays import Ints

MIN_LETTERS = 4
"""Letters of words that are compared: among shorter ones, one edit is more often another word."""


def one_edit(vocabulary: Sequence[str]) -> tuple[Ints, Ints]:
    """Places of words of letters that differ by one edit (Damerau, 1964), each pair both ways."""
    words = pl.DataFrame({"word": vocabulary}, schema={"word": pl.String}).with_row_index("place")
    words = words.filter(pl.col("word").str.contains(rf"^\p{{L}}{{{MIN_LETTERS},}}$"))
    letters = pl.col("word").str.len_chars()
    left_out = (
        words.with_columns(at=pl.int_ranges(letters))
        .explode("at")
        .with_columns(
            rest=pl.concat_str(pl.col("word").str.slice(0, pl.col("at")), pl.col("word").str.slice(pl.col("at") + 1)),
            letter=pl.col("word").str.slice(pl.col("at"), 1),
        )
    )
    shorter = left_out.join(words, left_on="rest", right_on="word").select(a="place", b="place_right")
    both = left_out.join(left_out, on="rest", suffix="_b").filter(pl.col("place") != pl.col("place_b"))
    replaced = pl.col("at") == pl.col("at_b")
    swapped = ((pl.col("at") - pl.col("at_b")).abs() == 1) & (pl.col("letter") == pl.col("letter_b"))
    equal_length = both.filter(replaced | swapped).select(a="place", b="place_b")
    found = pl.concat([shorter, shorter.select(a="b", b="a"), equal_length]).unique().sort("a", "b").cast(pl.Int64)
    return found["a"].to_numpy(), found["b"].to_numpy()
