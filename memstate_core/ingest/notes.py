"""Notes of a reader beside the rows: what it left out, and what it had to decide.

Names of what was left out come from the file, so both their number and their length are bounded.
"""

from __future__ import annotations

from collections import Counter

from memstate_core.ingest.reasons import shortened

_MOST_NAMES, _LONGEST_NAME = 50, 60
_OTHER = "of other kinds"


class Notes:
    """Collects the notes of one file."""

    def __init__(self) -> None:
        self._sentences: dict[str, None] = {}
        self._left_out: Counter[str] = Counter()

    def add(self, sentence: str) -> None:
        """Adds a sentence, once."""
        self._sentences[sentence] = None

    def left_out(self, what: str) -> None:
        """Counts one item that was left out, by its kind, such as `channel_join`."""
        name = shortened(what, _LONGEST_NAME)
        known = name in self._left_out or len(self._left_out) < _MOST_NAMES
        self._left_out[name if known else _OTHER] += 1

    def lines(self) -> tuple[str, ...]:
        """The sentences in order, then one with the counts of what was left out."""
        counts = ", ".join(f"{count:,} {what}" for what, count in sorted(self._left_out.items()))
        return (*self._sentences, *([f"left out: {counts}"] if counts else []))
