"""Tables in the Dagster UI show the text of their cells; nothing in a cell becomes a link, an image or markup."""

from __future__ import annotations

from datetime import UTC, datetime
from html import unescape

import polars as pl
import pytest
from markdown_it import MarkdownIt

from memstate_pipeline.markdown import as_markdown, tables

HOSTILE = [
    "![x](http://evil.example/pixel)",
    "[click](http://evil.example)",
    "http://evil.example and www.evil.example",
    "<img src=http://evil.example><script>alert(1)</script>",
    "a | b || c",
    "a \\| b \\",
    "`code` ``more`` `",
    "two\nlines\r\n| --- |",
    "\x1b[31mred \u202eesrever",
    "*bold* _em_ ~~gone~~ &lt; # head",
]
TOPIC = "01c64697-b3db-8d34-8266-f63c5fa11579"


def rendered(frame: pl.DataFrame) -> str:
    return MarkdownIt("commonmark").enable("table").render(as_markdown(frame))


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("wrapped", [False, True])
def test_a_hostile_cell_is_only_text(text: str, wrapped: bool) -> None:
    html = rendered(pl.DataFrame({"title": [[text] if wrapped else text, ["x"] if wrapped else "x"], "n": [1, 2]}))
    assert html.count("<td") == 4
    assert html.count("<code>") == 2
    for tag in ("<img", "<a", "<script", "<em", "<strong", "<br", "<h1"):
        assert tag not in html
    assert "\x1b" not in html


@pytest.mark.parametrize("text", HOSTILE)
def test_a_title_links_to_its_topic_and_nowhere_else(text: str) -> None:
    frame = pl.DataFrame({"title": [text, text], "topic_id": [TOPIC, "](http://evil.example)"], "n": [1, 2]})
    html = MarkdownIt("commonmark").enable("table").render(as_markdown(frame, "http://127.0.0.1:8420"))
    assert html.count("<td") == 4
    assert html.count(f'<a href="http://127.0.0.1:8420/v1/topics/{TOPIC}"><code>') == html.count("<a ") == 1
    for tag in ("<img", "<script", "<em", "<strong", "<br", "<h1"):
        assert tag not in html


def test_a_table_that_the_ui_would_hide_shows_its_first_rows() -> None:
    short, long = pl.DataFrame({"title": ["a"]}), pl.DataFrame({"title": [f"{n} {'x' * 70}" for n in range(20)]})
    shown = tables({"short": short, "long": long})
    assert list(shown) == ["short", "long", "long, all 20"]
    assert len(shown["long"]) < 1000 < len(shown["long, all 20"])
    assert shown["long, all 20"].startswith(shown["long"])


def test_values_are_shown_as_they_are() -> None:
    at = datetime(2026, 4, 5, 2, tzinfo=UTC)
    row = {"title": "Old <Ferry> Yard | gate", "share": 0.123456, "count": 1200, "ok": True, "at": at, "none": None}
    html = rendered(pl.DataFrame([row]))
    cells = [unescape(part.split("</td>")[0]) for part in html.split("<td>")[1:]]
    assert cells == ["<code>Old <Ferry> Yard | gate</code>", "0.1235", "1200", "True", str(at), ""]


def test_long_cells_are_cut_and_no_rows_are_nothing() -> None:
    assert as_markdown(pl.DataFrame({"title": ["x" * 500]})).splitlines()[-1] == f"| `{'x' * 79}…` |"
    assert as_markdown(pl.DataFrame({"title": []})) == "nothing"
