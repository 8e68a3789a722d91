"""Small pieces of Markdown: tables, cells, links to headings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; line breaks and bars in cells are escaped. Without rows, the empty text."""
    lines = [f"| {' | '.join(_cell(cell) for cell in row)} |" for row in rows]
    if not lines:
        return ""
    return "\n".join([f"| {' | '.join(header)} |", "|" + "---|" * len(header), *lines])


def code(text: object) -> str:
    """Inline code."""
    return f"`{text}`"


def paragraphs(*parts: str) -> str:
    """Parts with an empty line between them; empty parts are left out."""
    return "\n\n".join(part.strip("\n") for part in parts if part.strip())


def one_line(text: str | None) -> str:
    """A text with its white space collapsed."""
    return " ".join((text or "").split())


def slug(heading: str) -> str:
    """The anchor of a heading, as Markdown's table of contents makes it for plain ASCII headings."""
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower())


def _cell(text: str) -> str:
    return one_line(text).replace("\\|", "|").replace("|", "\\|")
