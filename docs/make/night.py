"""The picture of the night: the assets in their groups, what they read, and what they publish.

`python -m docs.make` writes `docs/pages/images/night.svg`. Assets and groups are those of Dagster; a test
compares the file.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from docs.make.svg import Drawing
from memstate_pipeline.definitions import build_defs

FILE = Path(__file__).parents[1] / "pages" / "images" / "night.svg"
DOES = {
    "evidence": "accepts new records",
    "placements": "finds each record's topic",
    "topics": "folds evidence into topics",
    "topic_embeddings": "embeds changed texts",
    "duplicate_pairs": "scores likely pairs",
    "merges": "merges the sure ones",
    "dependency_review": "queues dependents",
    "salience": "decays, reinforces",
    "forgetting": "summarises, archives",
    "snapshot": "verifies, publishes, swaps",
    "maintenance_report": "one page about the run",
}
_WIDTH, _HEIGHT = 1200, 560
_GROUP, _STEP, _TOP = 204, 236, 128
_CARD, _PITCH = 52, 66


def picture() -> str:
    """The picture as SVG."""
    drawing = Drawing(_WIDTH, _HEIGHT, "The nightly run of memstate: eleven assets in five groups")
    for number, (group, names) in enumerate(groups().items()):
        _draw_group(drawing, 24 + number * _STEP, group, names)
    for number in range(4):
        drawing.arrow(24 + number * _STEP + _GROUP, 244, 24 + (number + 1) * _STEP, 244)
    _surroundings(drawing)
    return drawing.text()


def groups() -> dict[str, list[str]]:
    """The names of the assets by group, both in the order in which they run."""
    with tempfile.TemporaryDirectory() as home:
        graph = build_defs(Path(home)).resolve_asset_graph()
    found: dict[str, list[str]] = {}
    for key in graph.toposorted_asset_keys:
        found.setdefault(graph.get(key).group_name, []).append(key.path[-1])
    return found


def _draw_group(drawing: Drawing, left: int, group: str, names: list[str]) -> None:
    drawing.box(left, _TOP, _GROUP, 232, "group")
    drawing.label(left + 14, _TOP + 24, group, "heading")
    for place, name in enumerate(names):
        top = _TOP + 36 + place * _PITCH
        drawing.box(left + 10, top, _GROUP - 20, _CARD, "card")
        drawing.label(left + 20, top + 22, name, "asset")
        drawing.label(left + 20, top + 40, DOES[name], "note")
        if place:
            drawing.arrow(left + 40, top - _PITCH + _CARD, left + 40, top)


def _surroundings(drawing: Drawing) -> None:
    """What the night reads and writes: dumps and accesses above, the ledger below, readers of snapshots."""
    first, last = 24, 24 + 4 * _STEP
    drawing.pill(first, 24, 300, 40, "inbox/: dumps and chat exports")
    drawing.pill(first + 320, 24, 300, 40, "accesses/: what readers used")
    drawing.arrow(first + 60, 64, first + 60, _TOP)
    drawing.path(f"M {first + 380} 64 V 96 H {first + 150} V {_TOP}")
    drawing.pill(last - 222, 24, 300, 40, "six checks, C1 to C6, can refuse")
    drawing.path(f"M {last - 16} 64 V 236")
    drawing.box(first, 400, 4 * _STEP - 32, 64, "store")
    drawing.label(first + 16, 426, "ledger: the append-only source of truth", "heading")
    drawing.label(
        first + 16, 448, "evidence, transitions (every decision with its reason), accesses, quarantine", "note"
    )
    drawing.arrow(first + 60, 360, first + 60, 400)
    drawing.arrow(first + _STEP + 60, 400, first + _STEP + 60, 360)
    drawing.path(f"M {last + 40} 360 V 380 H {last - 76} V 400")
    drawing.box(last, 400, _GROUP, 64, "store")
    drawing.label(last + 14, 426, "snapshots/", "heading")
    drawing.label(last + 14, 448, "immutable, swapped at once", "note")
    drawing.arrow(last + 110, 360, last + 110, 400)
    drawing.pill(last - 222, 498, 426, 40, "readers: memstate query, HTTP, MCP, Python")
    drawing.arrow(last + 110, 464, last + 110, 498)
    drawing.path(f"M {last - 222} 518 H 10 V 12 H {first + 460} V 24", "dashed")
    drawing.label(first + 16, 510, "what readers use is counted by the next night", "note")
