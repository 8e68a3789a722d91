from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memstate_core.ingest.importer import import_paths
from memstate_core.ingest.report import ImportReport
from memstate_core.policy.settings import IngestSettings, Settings
from memstate_core.state.ledger.ledger import Ledger

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


@dataclass
class Desk:
    """A ledger of its own, a folder for dumps, and short methods to import."""

    folder: Path
    ledger: Ledger
    settings: Settings

    def file(self, name: str, *rows: dict[str, Any] | bytes) -> Path:
        path = self.folder / name
        path.write_bytes(b"".join((r if isinstance(r, bytes) else json.dumps(r).encode()) + b"\n" for r in rows))
        return path

    def read(self, *paths: Path, now: datetime = NOW, **options: Any) -> ImportReport:
        return import_paths(self.ledger, self.settings, paths, now=now, run_id="run-1", **options)

    def rows(self, *rows: dict[str, Any] | bytes) -> ImportReport:
        return self.read(self.file("dump.jsonl", *rows))

    def evidence(self) -> list[dict[str, Any]]:
        return self.ledger.scan("evidence").collect().to_dicts()

    def quarantine(self) -> list[dict[str, Any]]:
        return self.ledger.scan("quarantine").sort("file", "line").collect().to_dicts()

    def tables(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        evidence = self.ledger.scan("evidence").sort("evidence_id").collect()
        return evidence, self.ledger.scan("quarantine").sort("quarantine_id").collect()


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    folder = tmp_path / "dumps"
    folder.mkdir()
    settings = Settings(ingest=IngestSettings(chunk_rows=100, max_line_mib=1))
    return Desk(folder, Ledger(tmp_path / "ledger"), settings)


@pytest.fixture
def refusal(desk: Desk) -> Callable[..., tuple[str, str]]:
    """The reason and the detail for which a row is refused; fails if it is not."""

    def of(row: dict[str, Any] | bytes) -> tuple[str, str]:
        report = desk.rows(row)
        assert (report.read, report.accepted, report.quarantined) == (1, 0, 1)
        [kept] = desk.quarantine()
        assert report.reasons == {kept["reason"]: 1}
        return kept["reason"], kept["detail"]

    return of
