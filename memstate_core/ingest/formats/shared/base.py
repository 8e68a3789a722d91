"""The interface of readers: a reader recognises its format and turns a source into rows."""

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
        notes: the reader's remarks on the source, beside the rows.
    """

    longest: int
    notes: Notes = field(default_factory=Notes)


@dataclass(frozen=True)
class Reader:
    """One format, named after the module of `memstate_core.ingest.formats` that defines it as READER.

    Attributes:
        expected: the description of the format in error messages.
        recognises: whether a source has this format, judged by its first bytes or the names of its members.
        rows: the rows of a source, each an observation as JSON, or a refusal with its reason.
        resembles: why a source that no reader recognises is not of this format though it looks like it; None for one
            that does not.
    """

    expected: str
    recognises: Callable[[Source], bool]
    rows: Callable[[Source, Reading], Iterator[RawRow]]
    resembles: Callable[[Source], str | None] = lambda _: None
