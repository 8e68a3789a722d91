"""What a reader has to say beside the rows: what it left out, and what it had to decide."""

from __future__ import annotations

from collections import Counter


class Notes:
    """The notes of one file, in the making."""

    def __init__(self) -> None:
        self._said: dict[str, None] = {}
        self._left_out: Counter[str] = Counter()

    def say(self, sentence: str) -> None:
        """Adds a sentence, once."""
        self._said[sentence] = None

    def left_out(self, what: str) -> None:
        """Counts one thing that becomes no turn, such as `channel_join`."""
        self._left_out[what] += 1

    def lines(self) -> tuple[str, ...]:
        """The sentences as they were said, then one about what was left out, by name."""
        counts = ", ".join(f"{count:,} {what}" for what, count in sorted(self._left_out.items()))
        return (*self._said, *([f"left out: {counts}"] if counts else []))
