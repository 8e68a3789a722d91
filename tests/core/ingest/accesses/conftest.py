from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memstate_core.ingest.accesses.collect import AccessReport, collect_accesses
from memstate_core.policy.settings import Settings
from memstate_core.state.home import Home
from memstate_core.state.ledger.ledger import Ledger

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
GOOD: dict[str, Any] = {"topic_id": "t", "at": "2026-05-01T10:00:00Z", "source": "cli"}


@dataclass(frozen=True)
class Desk:
    """A home with a ledger, and the shortest ways to write segments and to collect them."""

    home: Home

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.home.ledger)

    def segment(self, name: str, *rows: dict[str, Any] | bytes, end: bytes = b"\n") -> Path:
        self.home.accesses.mkdir(parents=True, exist_ok=True)
        path = self.home.accesses / name
        path.write_bytes(b"\n".join(row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows) + end)
        return path

    def collect(self, now: datetime = NOW) -> AccessReport:
        return collect_accesses(self.home, self.ledger, Settings(), now, "run-1")

    def accesses(self) -> pl.DataFrame:
        return self.ledger.scan("accesses").collect().sort("topic_id", "at")

    def quarantine(self) -> list[dict[str, Any]]:
        return self.ledger.scan("quarantine").sort("file", "line").collect().to_dicts()


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(Home(tmp_path))


def counts(report: AccessReport) -> tuple[int, int, int, int]:
    assert report.read == report.accepted + report.duplicate + report.quarantined
    return report.segments, report.accepted, report.duplicate, report.quarantined
