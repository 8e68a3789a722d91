"""Which libraries a night loads to encode: none without new texts, and those of the runtime that its report names."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.conftest import clean_environment, run_memstate

LIBRARIES = {"openvino", "torch", "sentence_transformers", "tokenizers"}
CODE = """
import sys
from memstate_pipeline.cli.main import main
try:
    main()
except SystemExit as ended:
    assert ended.code in (0, None), ended.code
print(*sys.modules)
"""
ROW = {"scope": {"type": "user", "id": "aya"}, "kind": "explicit_memory", "observed_at": "2026-05-02T08:00:00Z"}


def loaded(home: Path, *arguments: str, **environment: str) -> set[str]:
    """The libraries of models that a command loads in a fresh interpreter."""
    command = [sys.executable, "-c", CODE, "--home", str(home), *arguments]
    run = subprocess.run(command, env=clean_environment(**environment), capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return LIBRARIES & set(run.stdout.splitlines()[-1].split())


def night(home: Path, at: str, **environment: str) -> tuple[set[str], dict[str, Any] | None]:
    """The libraries that a night loads, and the encoder that its report names."""
    libraries = loaded(home, "maintain", "--now", at, **environment)
    newest = max((home / "reports").glob("*-s0.json"), key=lambda file: file.stat().st_mtime_ns)
    encoder: dict[str, Any] | None = json.loads(newest.read_text())["encoder"]
    page = newest.with_suffix(".html").read_text()
    assert ("<dt>Encoder</dt>" in page) == (encoder is not None)
    return libraries, encoder


@pytest.mark.slow
def test_a_night_without_new_texts_loads_no_model_and_others_what_their_report_names(
    demo_home: Path, tmp_path: Path
) -> None:
    home, has_openvino = tmp_path / "home", _is_there("openvino")
    shutil.copytree(demo_home, home)
    assert night(home, "2026-07-01T00:00:00Z") == (set(), None)
    for name in ("north", "south"):
        (home / f"{name}.jsonl").write_text(json.dumps(ROW | {"topic_key": name, "title": f"Slipway {name}"}) + "\n")
    assert run_memstate(home, "import", str(home / "north.jsonl")).code == 0
    libraries, encoder = night(home, "2026-07-02T00:00:00Z")
    assert encoder is not None
    assert (encoder["run_by"].split()[0] == "OpenVINO", "torch" in libraries) == (has_openvino, not has_openvino)
    assert run_memstate(home, "import", str(home / "south.jsonl")).code == 0
    libraries, encoder = night(home, "2026-07-03T00:00:00Z", MEMSTATE_EMBEDDING_RUNTIME="sentence-transformers")
    assert encoder is not None
    assert (encoder["run_by"].split()[0], "openvino" in libraries) == ("sentence-transformers", False)


def _is_there(library: str) -> bool:
    found = subprocess.run([sys.executable, "-c", f"import {library}"], capture_output=True, check=False)
    return found.returncode == 0
