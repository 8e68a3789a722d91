"""The list of all report pages of a home, `index.html` beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from msgspec import MsgspecError, Struct
from msgspec import json as msgjson

from memstate_core.state.files import replace_file
from memstate_pipeline.report.format import Verdict, verdict
from memstate_pipeline.report.templates import environment

INDEX = "index.html"
PAGES = "*-*.html"
"""Matches the pages of runs, `<run_id>-<shard>.html`, and not the list."""
CORRECTION = "correction-"
"""How the run ids of corrections begin; those of other runs do not."""


class _Summary(Struct):
    """What the list shows of a run; the other keys of its JSON are skipped."""

    shard: str
    now: str | None = None
    snapshot: str | int | None = None
    previous_snapshot: str | int | None = None
    counts: dict[str, Any] | None = None
    checks: list[dict[str, Any]] | None = None
    warnings: list[Any] | None = None


def nights(pages: Iterable[Path]) -> list[Path]:
    """The pages of nights among some, in their order; the others are of corrections."""
    return [page for page in pages if not page.name.startswith(CORRECTION)]


def newest_first(folder: Path, pattern: str = PAGES) -> list[Path]:
    """The pages of runs, the one that was written last first."""
    return sorted(folder.glob(pattern), key=lambda page: (page.stat().st_mtime_ns, page.name), reverse=True)


def write_index(folder: Path) -> Path:
    """Writes the list anew, in one step.

    Args:
        folder: the folder of the reports.
    """
    page = environment().get_template("index_page.html").render(rows=list(_rows(folder)))
    replace_file(folder / INDEX, page.encode())
    return folder / INDEX


def _rows(folder: Path) -> Iterator[dict[str, Any]]:
    for page in newest_first(folder):
        try:
            summary = msgjson.decode(page.with_suffix(".json").read_bytes(), type=_Summary)
            ended = verdict({name: getattr(summary, name) for name in _Summary.__struct_fields__})
            known = {"shard": summary.shard, "now": summary.now}
        except (OSError, MsgspecError):
            ended = Verdict("bad", "Data cannot be read", f"{page.stem}.json is missing or damaged.")
            known = {"shard": page.stem.rpartition("-")[2], "now": None}
        yield {"href": quote(page.name), "verdict": ended, **known}
