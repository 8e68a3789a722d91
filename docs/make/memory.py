"""The picture of the memory's layers: what records become, and what a context pack reads of it.

`python -m docs.make` writes `docs/pages/images/memory.svg`; a test compares the file.
"""

from __future__ import annotations

from pathlib import Path

from docs.make.svg import Drawing

FILE = Path(__file__).parents[1] / "pages" / "images" / "memory.svg"
LAYERS = (
    ("core blocks", "always in a pack", "first, never cut in silence"),
    ("session states", "while active", "silent ones end by policy"),
    ("resources", "where they match", "a tree by URI"),
    ("topics", "where they match", "merged, summarised, archived"),
)
BETWEEN = ("facts: fields with histories", "relations: typed edges with validity", "verification: latest result counts")
_WIDTH, _HEIGHT, _GAP = 1000, 396, 12


def picture() -> str:
    """The picture as SVG."""
    drawing = Drawing(_WIDTH, _HEIGHT, "The layers of the memory, from the ledger of evidence up to a context pack")
    drawing.box(20, 20, _WIDTH - 40, 56, "store")
    drawing.label(36, 44, "context pack", "heading")
    drawing.label(36, 63, "a cited text within a budget of tokens, with warnings", "note")
    width = (_WIDTH - 40 - _GAP * (len(LAYERS) - 1)) // len(LAYERS)
    for place, (name, read, night) in enumerate(LAYERS):
        left = 20 + place * (width + _GAP)
        drawing.box(left, 116, width, 78, "group")
        drawing.label(left + 14, 140, name, "asset")
        drawing.label(left + 14, 160, read, "note")
        drawing.label(left + 14, 180, night, "note")
        drawing.arrow(left + width // 2, 116, left + width // 2, 80)
    third = (_WIDTH - 40 - _GAP * (len(BETWEEN) - 1)) // len(BETWEEN)
    for place, text in enumerate(BETWEEN):
        drawing.pill(20 + place * (third + _GAP), 214, third, 40, text)
    drawing.box(20, 304, _WIDTH - 40, 72, "group")
    drawing.label(36, 330, "evidence", "asset")
    drawing.label(
        36, 352, "the ledger, append-only: observations, chats, dumps, and each object of memory as said", "note"
    )
    drawing.arrow(_WIDTH // 2, 304, _WIDTH // 2, 258)
    drawing.label(_WIDTH // 2 + 14, 286, "a night folds it again, the same state each time", "note")
    return drawing.text()
