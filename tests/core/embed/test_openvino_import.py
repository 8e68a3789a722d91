"""OpenVINO is used without its telemetry."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import sys, threading
from memstate_core.embed.encoder import Encoder
encoder = Encoder()
encoder.encode(["The boat needs paint."])
print(encoder.description, sys.modules["openvino_telemetry"], [thread.name for thread in threading.enumerate()])
"""


@pytest.mark.slow
def test_the_encoder_reports_nothing_forks_nothing_and_leaves_nothing_in_the_home_of_its_user(tmp_path: Path) -> None:
    """OpenVINO's telemetry notes a client's id below the user's home, and sends from a pool of threads that forks."""
    env = os.environ | {"HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", CODE], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip().endswith("None ['MainThread']"), done.stdout
    assert "OpenVINO" in done.stdout
    assert list(tmp_path.iterdir()) == []
