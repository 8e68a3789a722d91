"""What a reader is: it knows its format when it sees it, and turns a source into rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from memstate_core.ingest.containers.source import Source
from memstate_core.ingest.notes import Notes
from memstate_core.ingest.raw_rows import RawRow


@dataclass(frozen=True)
class Reading:
    """One reading of a source.

    Attributes:
        longest: the most bytes that a row may have without being cut.
        notes: what the reader has to say beside the rows.
    """

    longest: int
    notes: Notes = field(default_factory=Notes)


@dataclass(frozen=True)
class Reader:
    """One format; the module in `memstate_core.ingest.formats` that defines it as READER names it.

    Attributes:
        expected: the format in words, as an error names it.
        recognises: whether a source has this format, told by its first bytes or the names of its members.
        rows: the rows of a source, each one observation as JSON, or refused with a reason.
    """

    expected: str
    recognises: Callable[[Source], bool]
    rows: Callable[[Source, Reading], Iterator[RawRow]]
