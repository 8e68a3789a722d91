"""`memstate doctor` names what is wrong with the installation: a full disk."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from memstate_pipeline.doctor import installation


def test_a_disk_that_is_nearly_full_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of a home that does not exist yet."""
    place = tmp_path / "not" / "yet"
    before = installation.disk(place)
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=installation.LOW_DISK_BYTES))
    full = installation.disk(place)
    assert (before.ok, full.ok) == (usage.free > installation.LOW_DISK_BYTES, False)
    assert full.detail.endswith(f" GiB free at {tmp_path}; 2 GiB or more are recommended")
