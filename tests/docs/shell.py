"""Commands in the blocks of a page, as a shell would read them."""

from __future__ import annotations

import re
from pathlib import Path


def blocks(page: Path, language: str) -> list[str]:
    """The blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


def commands(page: Path) -> list[str]:
    """Each command of the blocks of shell, in one line."""
    return [line for block in blocks(page, "sh") for line in block.replace("\\\n", " ").splitlines() if line]


def steps(page: Path) -> list[tuple[str, list[str]]]:
    """Each command of the blocks with output, with the lines that it shows."""
    found: list[tuple[str, list[str]]] = []
    for line in (line for block in blocks(page, "console") for line in block.splitlines()):
        if line.startswith("$ "):
            found.append((line.removeprefix("$ "), []))
        else:
            found[-1][1].append(line)
    return found


def shows(printed: str, shown: list[str], command: str) -> None:
    """Asserts that each shown line occurs, in order; `…` matches anything, and white space may wrap."""
    place, printed = 0, " ".join(printed.split())
    for line in shown:
        pattern = ".*?".join(re.escape(" ".join(part.split())) for part in line.strip().split("…"))
        found = re.compile(pattern).search(printed, place)
        assert found, f"{command}: {line!r} is not in {printed[place:][:2000]!r}"
        place = found.end()
