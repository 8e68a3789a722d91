"""The supported formats of dumps: one module each, named after its value of `--format`.

A module defines READER and needs no further registration.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from memstate_core.ingest.containers.source import Source
from memstate_core.ingest.formats.shared.base import Reader
from memstate_core.ingest.raw_rows import BrokenContainer
from memstate_core.ingest.reasons import shortened

OBSERVATIONS = "observations"
"""The format of rows that already are observations, and the default for unknown content."""

_SEARCHED = 20
"""How many members of an archive that is not known are searched for damage."""

FORMATS = tuple(sorted(module.name.replace("_", "-") for module in iter_modules(__path__) if not module.ispkg))


def reader(name: str) -> Reader:
    """The reader of a format.

    Raises:
        ValueError: there is no format of that name.
    """
    if name not in FORMATS:
        raise ValueError(f"{name!r} is not a format: expected one of {', '.join(FORMATS)}")
    found = import_module(f"{__name__}.{name.replace('-', '_')}").READER
    assert isinstance(found, Reader)
    return found


def recognised(source: Source) -> list[str]:
    """The formats that recognise a source; the first one applies, and observations come first."""
    names = sorted(FORMATS, key=lambda name: (name != OBSERVATIONS, name))
    return [name for name in names if reader(name).recognises(source)]


def chosen(source: Source, wanted: str | None) -> str:
    """The format in which a source is read.

    Raises:
        BrokenContainer: its format differs from the one wanted, or no reader knows it and it is an archive, maybe a
            damaged one, or looks like a format in a style that is not known.
        ValueError: there is no format of that name.
    """
    if wanted is not None and wanted != OBSERVATIONS:
        if reader(wanted).recognises(source):
            return wanted
        others = ", ".join(name for name in recognised(source) if name != OBSERVATIONS)
        like = f"it looks like {others}" if others else "it does not look like that"
        raise BrokenContainer(f"format {wanted} was asked for, expected {reader(wanted).expected}, but {like}")
    found = recognised(source) if wanted is None else []
    if wanted is None and not found and (problem := _resembling(source)):
        raise BrokenContainer(problem)
    if source.archive is not None and not found:
        raise BrokenContainer(_unread(source) or _unknown())
    return found[0] if found else OBSERVATIONS


def _unread(source: Source) -> str | None:
    """Why the first member that breaks at its beginning keeps an archive from being known."""
    found = next((member for member in source.members[:_SEARCHED] if member.problem), None)
    if found is None:
        return None
    member = shortened(found.name or "")
    return f"its member {member} cannot be read: {found.problem}; expected whole members, without a password"


def _unknown() -> str:
    expected = "; ".join(reader(name).expected for name in FORMATS if name != OBSERVATIONS)
    return f"the archive holds no export that is known, expected one of: {expected}"


def _resembling(source: Source) -> str | None:
    return next((problem for name in FORMATS if (problem := reader(name).resembles(source))), None)
