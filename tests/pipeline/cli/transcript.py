"""Transcripts of the command line: commands with what they print, as text that one can read and compare.

The commands run in this process, so that a transcript of thirty commands loads every library once. What differs from
run to run (paths, run ids, hashes, durations, versions) is masked.
"""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from memstate_pipeline.cli.main import main

_MASKS = {
    r"file://\S+/(?=reports|home|plan)": "file:///…/",
    r"(?<=reports/)[0-9a-f-]{36}": "RUN",
    r"(?<=reports/correction-)[0-9a-f-]{36}": "RUN",
    r"(?<=run )[0-9a-f-]{36}": "RUN",
    r"(?m)^[0-9a-f-]{36}(?=  \d{4}-)": "MERGE",
    r"(?m)^  [0-9a-f-]{36}$": "  RUN",
    r"(?<= runs, )\d+\.\d MiB": "N MiB",
    r"\b[0-9a-f]{64}\b": "HASH",
    r"\b(?<=plan )[0-9a-f]{8,63}\b": "HASH",
    r"\b[0-9a-f]{12}…": "HASH…",
    r"\b\d+\.\d s\b": "N s",
    r"\bms_[0-9A-Za-z_-]+": "ms_KEY",
    r"\d+\.\d GiB": "N GiB",
    r"(?<=packages: ).*": "VERSIONS",
    r"(?<=published )(just now|\d+ (seconds|minutes) ago)": "N minutes ago",
    r"(?<=backup \d  )\S+Z": "TIME",
    r"\b[1-9]\d* files, \d+\.\d MiB": "N files, N MiB",
    r"\b[1-9]\d* objects, \d+\.\d MiB": "N objects, N MiB",
    r"(?m)(?<=^sizes: ).*": "…",
    r"(?<=; )run by .*": "run by RUNTIME",
}


class Terminal:
    """A user at a terminal of some width.

    Attributes:
        lines: the transcript so far.
    """

    def __init__(
        self, home: Path, columns: int, patch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[str]
    ) -> None:
        self._home, self._patch, self._capture = home, patch, capture
        patch.setenv("COLUMNS", str(columns))
        patch.setattr(sys, "excepthook", sys.excepthook)  # typer sets its own
        self.lines: list[str] = []

    def run(self, *arguments: str) -> str:
        """Runs a command and adds it to the transcript.

        Returns:
            What it printed on stdout, unmasked.
        """
        self._patch.setattr(sys, "argv", ["memstate", "--home", str(self._home), *arguments])
        self._capture.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        printed = self._capture.readouterr()
        self.lines += [f"$ memstate {shlex.join(arguments)}", *printed.out.splitlines()]
        self.lines += [f"stderr: {line}" for line in printed.err.splitlines()]
        self.lines += [f"exit code {end.value.code}"] * bool(end.value.code)
        self.lines.append("")
        return printed.out

    @property
    def text(self) -> str:
        """The transcript with everything masked that differs from run to run."""
        text = "\n".join(line.rstrip() for line in self.lines)
        text = text.replace(self._home.parent.as_uri(), "file:///…").replace(str(self._home.parent), "/…")
        for pattern, mask in _MASKS.items():
            text = re.sub(pattern, mask, text)
        return text
