"""The parts of a built page that tests read: its anchors, its links, what it loads, the text of its sections."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

_LOADING = {"script": "src", "img": "src", "iframe": "src"}


@dataclass
class Page(HTMLParser):
    """A built page."""

    path: Path
    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    sections: dict[str, str] = field(default_factory=dict)
    _section: str = ""

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "link" and given.get("rel") in ("stylesheet", "icon", "preload", "preconnect"):
            self.loaded.append(given["href"])
        if tag in _LOADING and _LOADING[tag] in given:
            self.loaded.append(given[_LOADING[tag]])
        if tag in ("h1", "h2", "h3") and "id" in given:
            self._section = given["id"]

    def handle_data(self, data: str) -> None:
        self.sections[self._section] = self.sections.get(self._section, "") + data
