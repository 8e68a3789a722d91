"""The erasures that a home has had, so that a process that reads it notices one and lets go of what it holds."""

from __future__ import annotations

from pathlib import Path

from memstate_core.state.home import Home


def certificates(home: Home) -> dict[int, Path]:
    """The certificates of a home by number; a killed erasure may have left a draft, which is none."""
    return {int(path.stem): path for path in sorted(home.erasures.glob("*.json")) if path.stem.isdigit()}


def erasures(home: Home) -> int:
    """The number of the last erasure; 0 if there was none."""
    return max(certificates(home), default=0)


def erasure_mark(home: Home) -> int:
    """A number that changes when an erasure begins and when it ends; it is quick, so that every request may ask."""
    try:
        return home.erasures.stat().st_mtime_ns
    except FileNotFoundError:
        return 0
