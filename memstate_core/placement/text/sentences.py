"""Sentence splitting of turns, without code, URLs, mail addresses and remarks added by software.

Only turns of people and assistants count where a segment has any; otherwise tool calls, their results and system
events do. Invariant: text is left out, and white space normalised, but nothing else is changed.
"""

from __future__ import annotations

import polars as pl

SPOKEN_KINDS = ("user_message", "assistant_message", "explicit_memory")
_LONGEST = 20_000
"""Characters of a turn that are read. The patterns below take at most quadratic time, so this bounds it."""

_CODE = r"(?s)```.*?(?:```|\z)|~~~.*?(?:~~~|\z)"
_LINK = r"!?\[([^\[\]\n]*)\]\([^()\s]*\)"
_ADDRESS = r"\(?(?:\b[a-z][a-z0-9+.-]*://|\bwww\.)[^\s()<>]+\)?|\S+@\S+\.\S+"
_REMARK = r"\[[^\[\]]*\]|<[^<>\n]*>"
_ABBREVIATION = r"\b(\p{Lu}\p{Ll}?|\p{Ll})\.[ \t]"
_CLOSED = r"[\"')\p{Pf}\p{Pe}]*"
_FULL_WIDTH = r"\u{3002}\u{FF01}\u{FF1F}"
"""Marks that end a sentence without a space behind them: the full stop, exclamation and question mark of CJK."""
_STOPS = rf"[.!?\u{{2026}}\u{{61F}}\u{{6D4}}\u{{964}}{_FULL_WIDTH}]+"
_NOT_AN_END = rf"([.\u{{2026}}]{_CLOSED})[ \t]+(\p{{Ll}})"
_END = rf"({_STOPS}{_CLOSED})[ \t]+|([{_FULL_WIDTH}]+{_CLOSED})|\s*[\r\n]+\s*"
_GAP, _KEPT = "\x1f", "\x1e"


def sentences(turns: pl.DataFrame) -> pl.DataFrame:
    """Sentences in their order.

    Args:
        turns: columns segment, scope, actor, kind, text, in order, and any others.

    Returns:
        The columns of the turns without text, `turn_row` (row of the turn), `sentence` and `number` (row of the
        sentence). Turns of which nothing is left have none.
    """
    numbered = turns.with_row_index("turn_row")
    by_person = pl.col("kind").is_in(SPOKEN_KINDS).fill_null(False)
    clean = numbered.with_columns(sentence=_prose(pl.col("text")), _by_person=by_person)
    speaking = pl.col("sentence").str.contains(r"[\p{L}\p{N}]")
    spoken = clean.filter(speaking)
    counted = spoken.filter(pl.col("_by_person") | ~pl.col("_by_person").any().over("segment"))
    parts = counted.with_columns(_split(pl.col("sentence"))).explode("sentence")
    trimmed = parts.with_columns(pl.col("sentence").str.replace_all(r"\s+", " ").str.strip_chars())
    return trimmed.filter(speaking).drop("text", "_by_person").with_row_index("number")


def _prose(text: pl.Expr) -> pl.Expr:
    kept = text.fill_null("").str.head(_LONGEST).str.replace_all(_CODE, "\n").str.replace_all(_LINK, "$1")
    return kept.str.replace_all(_ADDRESS, " ").str.replace_all(_REMARK, " ")


def _split(text: pl.Expr) -> pl.Expr:
    marked = text.str.replace_all(_ABBREVIATION, f"${{1}}.{_KEPT}").str.replace_all(_NOT_AN_END, f"${{1}}{_KEPT}${{2}}")
    cut = marked.str.replace_all(_END, f"${{1}}${{2}}{_GAP}")
    return cut.str.replace_all(_KEPT, " ").str.split(_GAP)
