"""A small SVG writer: boxes, labels and arrows with one look, readable on light and dark pages."""

from __future__ import annotations

from xml.sax.saxutils import escape

_STYLE = """
text { font-family: system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2333; font-size: 14px }
.page { fill: #ffffff }
.group { fill: #eef0fa; stroke: #c5cae9 }
.card { fill: #ffffff; stroke: #9fa8da }
.store { fill: #fff8e1; stroke: #ffcc80 }
.pill { fill: #e8f5e9; stroke: #a5d6a7 }
.heading { font-weight: 600; font-size: 15px }
.asset { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, monospace; font-weight: 600; font-size: 13.5px }
.note { fill: #565b70; font-size: 12.5px }
.line { fill: none; stroke: #5c6bc0; stroke-width: 1.8 }
.dashed { stroke-dasharray: 6 5 }
""".strip()
_HEAD = '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
_HEAD += '<path d="M0 0 L8 4 L0 8 z" fill="#5c6bc0"/></marker>'


class Drawing:
    """A picture that grows by parts; lengths are in pixels."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self._parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
            f"<title>{escape(title)}</title>",
            f"<style>{_STYLE}</style><defs>{_HEAD}</defs>",
            f'<rect class="page" width="{width}" height="{height}" rx="12"/>',
        ]

    def box(self, left: int, top: int, width: int, height: int, look: str, radius: int = 8) -> None:
        """A rectangle; `look` is a class of the style."""
        place = f'x="{left}" y="{top}" width="{width}" height="{height}" rx="{radius}"'
        self._parts.append(f'<rect class="{look}" {place}/>')

    def label(self, left: int, baseline: int, text: str, look: str = "") -> None:
        """A line of text."""
        self._parts.append(f'<text class="{look}" x="{left}" y="{baseline}">{escape(text)}</text>')

    def pill(self, left: int, top: int, width: int, height: int, text: str) -> None:
        """A rounded box with a line of text."""
        self.box(left, top, width, height, "pill", height // 2)
        self.label(left + 20, top + height // 2 + 5, text)

    def arrow(self, from_x: int, from_y: int, to_x: int, to_y: int) -> None:
        """A straight arrow."""
        self.path(f"M {from_x} {from_y} L {to_x} {to_y}")

    def path(self, route: str, look: str = "") -> None:
        """An arrow along an SVG path."""
        self._parts.append(f'<path class="line {look}" d="{route}" marker-end="url(#head)"/>')

    def text(self) -> str:
        """The SVG document."""
        return "\n".join([*self._parts, "</svg>", ""])
