"""Text for terminals: control characters become visible, and lines fit the width.

Titles, scopes, file names and error messages come from dumps, so they may hold escape sequences that would
recolour, overwrite or reorder what a terminal shows. All human output passes through `visible`.
"""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterable

FALLBACK_WIDTH = 120
"""Columns where standard output is not a terminal and $COLUMNS is not set."""
_NO_BREAK = "\N{NO-BREAK SPACE}"

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters except tab and line feed
    "\u2028\u2029\u202a-\u202e\u2066-\u2069"  # line separators, bidirectional embeddings, overrides and isolates
    "\ud800-\udfff]"  # bytes of file names that are no UTF-8
)


def visible(text: str) -> str:
    r"""The text with each control character as its escape, such as `\x1b`; tabs and line feeds stay."""
    return _UNSAFE.sub(lambda found: _escape(found[0]), text)


def visible_json(text: str) -> str:
    r"""JSON of the same meaning in which each control character is an escape, such as `\u009b`."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def one_line(text: str) -> str:
    """The text on one line, its white space folded."""
    return " ".join(text.split())


def cut(text: str, columns: int) -> str:
    """The text on one line of at most so many characters, with an ellipsis where it is cut."""
    line = visible(one_line(text))
    return line if len(line) <= columns else line[: max(0, columns - 1)].rstrip() + "…"


def wrapped(text: str, indent: str) -> list[str]:
    """The text on lines that fit the width, broken at spaces; all but the first are indented by two columns more."""
    return _wrapped(visible(one_line(text)), indent)


def listed(label: str, items: Iterable[str], indent: str) -> list[str]:
    """Items after a label, separated by commas, on lines that fit the width; no item is broken."""
    unbroken = ", ".join(item.replace(" ", _NO_BREAK) for item in items)
    return [line.replace(_NO_BREAK, " ") for line in _wrapped(f"{label} {visible(unbroken)}", indent)]


def _wrapped(text: str, indent: str) -> list[str]:
    more = f"{indent}  "
    return textwrap.wrap(
        text, width(), initial_indent=indent, subsequent_indent=more, break_long_words=False, break_on_hyphens=False
    )


def width() -> int:
    """Columns of the terminal; $COLUMNS overrides it."""
    return shutil.get_terminal_size((FALLBACK_WIDTH, 0)).columns


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
