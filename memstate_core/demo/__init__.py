"""The bundled sample: five weeks in the life of a fictional freelance landscape architect.

The dumps are read in the order of `SAMPLES`. `chats.jsonl` holds turns to be understood and
`observations.jsonl` what other tools noted at the time, with duplicates and changed facts among it; both
are valid throughout. `late.jsonl` is an old backup: facts that newer ones have overtaken, rows that were
imported before, and three rows that do not pass validation. Everybody and every place is made up.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

SAMPLES: tuple[str, ...] = ("chats.jsonl", "observations.jsonl", "late.jsonl")
SCOPE = "user:ines"
QUESTIONS: tuple[str, str] = (
    "What is the budget of the Old Ferry Yard now?",
    "Which tree did the children choose for the school courtyard, and why?",
)
"""The first asks for a value that changed twice, the second for a statement in a chat."""


def sample_paths() -> list[Path]:
    """The dumps on disk, in the order in which they are meant to be read."""
    folder = Path(str(files(__name__)))
    return [folder / name for name in SAMPLES]
