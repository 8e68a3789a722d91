"""The picture of the layers: which package may import which, read from the contract that a test enforces.

`python -m docs.make` writes `docs/pages/images/floors.svg`; a test compares the file.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from docs.make.svg import Drawing

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docs" / "pages" / "images" / "floors.svg"
HOLDS = {
    "memstate_pipeline": "Dagster assets, report, command line",
    "night": "checks, publish, rebuild, verify, plans",
    "revise": "matching, merges, review, undo",
    "serve": "HTTP, MCP, keys, metrics",
    "forget": "salience, ladder, simulation",
    "retrieve": "index, queries, context, export",
    "llm": "optional language model",
    "run": "one run of one shard",
    "ingest": "formats, validation, quarantine",
    "placement": "segments, titles, topics",
    "storage": "folders, object storage",
    "state": "ledger, fold, graph, snapshots",
    "conformance": "C1 to C6 as a score, adapters",
    "policy": "settings, rules",
    "embed": "encoder, cache",
    "remote": "requests to endpoints",
    "client": "Python client",
    "demo": "bundled sample",
    "model": "records, frames, ids, errors",
}
_WIDTH, _FLOOR, _GAP = 1000, 56, 10


def layers() -> list[list[str]]:
    """Packages by floor, the highest first."""
    contracts: list[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
        "contracts"
    ]
    (declared,) = [contract["layers"] for contract in contracts if contract.get("containers") == ["memstate_core"]]
    return [["memstate_pipeline"], *([name.strip() for name in floor.split("|")] for floor in declared)]


def picture() -> str:
    """The picture as SVG."""
    found = layers()
    height = 60 + len(found) * (_FLOOR + _GAP)
    drawing = Drawing(_WIDTH, height, "The layers of memstate, from memstate_pipeline at the top down to model")
    for level, names in enumerate(found):
        top = 20 + level * (_FLOOR + _GAP)
        width = (_WIDTH - 100 - _GAP * (len(names) - 1)) // len(names)
        for place, name in enumerate(names):
            left = 20 + place * (width + _GAP)
            drawing.box(left, top, width, _FLOOR, "store" if level == 0 else "group")
            drawing.label(left + 14, top + 24, name, "asset")
            drawing.label(left + 14, top + 43, HOLDS[name], "note")
    drawing.arrow(_WIDTH - 40, 24, _WIDTH - 40, height - 56)
    drawing.label(
        20,
        height - 20,
        "A package imports only packages below it. All but memstate_pipeline are in memstate_core.",
        "note",
    )
    return drawing.text()
