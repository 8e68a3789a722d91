"""Reports of imports, kept until the page of a run covers them.

One JSON document per import, named after its run. What an import quarantined or could not read is thereby on the page
of the next night that publishes, whichever process imported it, and however the nights before ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import json as msgjson

from memstate_core.ingest.report import ImportReport
from memstate_core.state.files import make_folder, replace_file

COUNTS = ("read", "accepted", "duplicate", "quarantined")
LISTS = ("files", "errors")


def keep(folder: Path, run_id: str, report: ImportReport) -> None:
    """Keeps the report of an import; one that found nothing is not kept.

    Args:
        folder: `Home.imports`.
        run_id: the run that imported.
        report: its report.
    """
    if report.files:
        _write(folder, run_id, report.to_json())


def keep_errors(folder: Path, name: str, errors: Sequence[str]) -> None:
    """Keeps errors that belong to no import, such as segments of the access journal that could not be read.

    Args:
        folder: `Home.imports`.
        name: a name for them; errors of the same name are replaced.
        errors: the messages.
    """
    if errors:
        _write(folder, name, {**ImportReport((), {}, ()).to_json(), "errors": list(errors)})


def _write(folder: Path, name: str, document: Mapping[str, Any]) -> None:
    make_folder(folder)
    replace_file(folder / f"{name}.json", msgjson.encode(document))


def kept(folder: Path) -> dict[str, dict[str, Any]]:
    """The kept reports by file name, oldest first."""
    files = sorted(folder.glob("*.json"), key=lambda file: (file.stat().st_mtime_ns, file.name))
    return {file.name: msgjson.decode(file.read_bytes()) for file in files}


def remove(folder: Path, names: Iterable[str]) -> None:
    """Removes reports that a page covers."""
    for name in names:
        (folder / name).unlink(missing_ok=True)


def together(reports: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """One report for several imports, with the keys of `ImportReport.to_json`: counts added, lists joined."""
    parts = list(reports)
    reasons: Counter[str] = Counter()
    for part in parts:
        reasons.update(part["reasons"])
    counts = {name: sum(part[name] for part in parts) for name in COUNTS}
    lists = {name: [entry for part in parts for entry in part[name]] for name in LISTS}
    return {**counts, **lists, "reasons": dict(reasons)}
