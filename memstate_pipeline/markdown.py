"""Tables in the metadata of assets: Markdown that shows the text of its cells and obeys none of it.

Titles, scopes and file names come from anybody. As code spans they make no link, no image and no markup, and their `|`
does not end a cell.
"""

from __future__ import annotations

import json
from datetime import date

import polars as pl

from memstate_core.ingest.unforeseen import described, is_unforeseen
from memstate_pipeline.cli.terminal import cut

_LONGEST = 80
"""Characters of a cell that are shown."""


def as_markdown(frame: pl.DataFrame) -> str:
    """A small frame as a Markdown table, or why it cannot be shown: nothing in a cell makes a step fail."""
    if frame.is_empty():
        return "nothing"
    try:
        lines = [_line(frame.columns), _line(["---"] * frame.width)]
        return "\n".join([*lines, *(_line([cell(value) for value in row]) for row in frame.iter_rows())])
    except BaseException as error:
        if not is_unforeseen(error):
            raise
        return f"not shown, {described(error)}"


def cell(value: object) -> str:
    """A value as the cell of a table: numbers and times as they are, everything else as a code span."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, (bool, int, date)):
        return str(value)
    text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    return _code(text)


def _code(text: str) -> str:
    """A code span; inside a table a backslash before `|` would be read as its escape."""
    shown = cut(text, _LONGEST).replace("`", "'").replace("\\|", "\\ |").replace("|", "\\|")
    return f"`{shown}`" if shown else ""


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
