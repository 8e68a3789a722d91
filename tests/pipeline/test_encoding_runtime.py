"""Which libraries a night loads to encode: none without new texts, and those of the runtime that its report names."""

from __future__ import annotations

import contextlib
import importlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.conftest import clean_environment, run_memstate

LIBRARIES = {"openvino", "torch", "sentence_transformers", "tokenizers"}
CODE = """
import json, os, sys
import memstate_pipeline.run
from memstate_pipeline.cli.main import main
for line in sys.stdin:
    arguments, environment = json.loads(line)
    if (child := os.fork()) == 0:
        os.environ.update(environment)
        sys.argv = ["memstate", *arguments]
        try:
            main()
        except SystemExit as ended:
            assert ended.code in (0, None), ended.code
        print("LOADED", *sys.modules, flush=True)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        print("FAILED", flush=True)
"""
"""Commands in processes of their own, forked when Dagster is loaded, which takes seconds, and nothing has run."""
ROW = {"scope": {"type": "user", "id": "aya"}, "kind": "explicit_memory", "observed_at": "2026-05-02T08:00:00Z"}


class Interpreter:
    """A fresh interpreter that runs commands."""

    def __init__(self, process: subprocess.Popen[str], home: Path) -> None:
        self._process, self.home = process, home

    def loaded(self, *arguments: str, **environment: str) -> set[str]:
        """The libraries of models that a command loads."""
        assert self._process.stdin
        assert self._process.stdout
        print(json.dumps([["--home", str(self.home), *arguments], environment]), file=self._process.stdin, flush=True)
        ended = next(line for line in self._process.stdout if line.startswith(("LOADED", "FAILED")))
        assert ended.startswith("LOADED"), (self.home / "errors.txt").read_text()
        return LIBRARIES & set(ended.split())


@pytest.fixture
def fresh(demo_home: Path, tmp_path: Path) -> Iterator[Interpreter]:
    """An interpreter for a copy of the store of the demo."""
    home = Path(shutil.copytree(demo_home, tmp_path / "home"))
    with (home / "errors.txt").open("w") as errors:
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": errors, "text": True}
        with subprocess.Popen([sys.executable, "-c", CODE], env=clean_environment(), **pipes) as process:
            yield Interpreter(process, home)


def night(fresh: Interpreter, at: str, **environment: str) -> tuple[set[str], dict[str, Any] | None]:
    """The libraries that a night loads, and the encoder that its report names."""
    libraries = fresh.loaded("maintain", "--now", at, **environment)
    newest = max((fresh.home / "reports").glob("*-s0.json"), key=lambda file: file.stat().st_mtime_ns)
    encoder: dict[str, Any] | None = json.loads(newest.read_text())["encoder"]
    page = newest.with_suffix(".html").read_text()
    assert ("<dt>Encoder</dt>" in page) == (encoder is not None)
    return libraries, encoder


@pytest.mark.slow
def test_a_night_without_new_texts_loads_no_model_and_others_what_their_report_names(fresh: Interpreter) -> None:
    home, has_openvino = fresh.home, _is_there("openvino")
    assert night(fresh, "2026-07-01T00:00:00Z") == (set(), None)
    for name in ("north", "south"):
        (home / f"{name}.jsonl").write_text(json.dumps(ROW | {"topic_key": name, "title": f"Slipway {name}"}) + "\n")
    assert run_memstate(home, "import", str(home / "north.jsonl")).code == 0
    libraries, encoder = night(fresh, "2026-07-02T00:00:00Z")
    assert encoder is not None
    assert (encoder["run_by"].split()[0] == "OpenVINO", "torch" in libraries) == (has_openvino, not has_openvino)
    assert run_memstate(home, "import", str(home / "south.jsonl")).code == 0
    libraries, encoder = night(fresh, "2026-07-03T00:00:00Z", MEMSTATE_EMBEDDING_RUNTIME="sentence-transformers")
    assert encoder is not None
    assert (encoder["run_by"].split()[0], "openvino" in libraries) == ("sentence-transformers", False)


def _is_there(library: str) -> bool:
    with contextlib.suppress(ImportError):
        return bool(importlib.import_module(library))
    return False
