"""Reading stays light: the modules of `retrieve` load no model library."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("torch", "sentence_transformers", "sklearn", "bm25s", "transformers")
PROGRAM = """
import pkgutil, sys
import memstate_core.retrieve
for module in pkgutil.walk_packages(memstate_core.retrieve.__path__, "memstate_core.retrieve."):
    __import__(module.name)
print(*sys.modules, sep="\\n")
"""


def test_importing_retrieve_loads_nothing_heavy():
    loaded = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stdout.split()
    assert "memstate_core.retrieve.query" in loaded
    assert [name for name in HEAVY if name in loaded] == []
