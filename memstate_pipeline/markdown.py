"""Tables in the metadata of assets: Markdown that shows the text of its cells and obeys none of it.

Titles, scopes and file names come from anybody. As code spans they make no link, no image and no markup, and their `|`
does not end a cell. The only links are our own: a title beside the id of its topic.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import date
from typing import Any

import polars as pl

from memstate_core.ingest.unforeseen import described, is_unforeseen
from memstate_pipeline.cli.shared.terminal import cut

_LONGEST = 80
"""Characters of a cell that are shown."""
_HEAD = 2
"""Lines before the first row."""
_RENDERED = 999
"""Characters of Markdown that the Dagster UI renders in the page; it hides longer ones behind a button."""
_TOPIC_OF = {
    "title": "topic_id", "title_a": "a", "title_b": "b", "dropped_title": "topic_id", "survivor_title": "survivor",
}  # fmt: skip
"""Columns with the title of a topic, and those with its id."""
_is_id = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch


def tables(frames: Mapping[str, pl.DataFrame], api_url: str = "") -> dict[str, str]:
    """Tables by title; of one that is too long to be rendered in the page the first rows, and all behind a button.

    Args:
        frames: small frames by title.
        api_url: where topics are served; without it titles are no links.
    """
    found = {}
    for title, frame in frames.items():
        whole = found[title] = as_markdown(frame, api_url)
        lines = whole.splitlines()
        while len("\n".join(lines)) > _RENDERED:
            lines.pop()
        if len(whole) > _RENDERED and len(lines) > _HEAD:
            found |= {title: "\n".join(lines), f"{title}, all {frame.height}": whole}
    return found


def as_markdown(frame: pl.DataFrame, api_url: str = "") -> str:
    """A small frame as a Markdown table, or why it cannot be shown: nothing in a cell makes a step fail.

    Args:
        frame: the rows.
        api_url: where topics are served; titles link there, and take the place of the ids.
    """
    if frame.is_empty():
        return "nothing"
    try:
        linked = {title: ids for title, ids in _TOPIC_OF.items() if api_url and {title, ids} <= {*frame.columns}}
        names = [name for name in frame.columns if name not in linked.values()]
        rows = [
            [_linked(row, name, linked.get(name), api_url) for name in names] for row in frame.iter_rows(named=True)
        ]
        return "\n".join(map(_line, [names, ["---"] * len(names), *rows]))
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


def _linked(row: Mapping[str, Any], name: str, ids: str | None, api_url: str) -> str:
    """A cell, as a link to the topic where it is a title; an id that is none of ours makes no link."""
    topic_id, shown = row[ids] if ids else None, cell(row[name])
    if ids is None or not isinstance(topic_id, str) or not _is_id(topic_id):
        return shown
    return f"[{shown or 'no title'}]({api_url}/v1/topics/{topic_id})"


def _code(text: str) -> str:
    """A code span; inside a table a backslash before `|` would be read as its escape."""
    shown = cut(text, _LONGEST).replace("`", "'").replace("\\|", "\\ |").replace("|", "\\|")
    return f"`{shown}`" if shown else ""


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
