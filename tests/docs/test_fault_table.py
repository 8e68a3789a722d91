"""The fault table of the failure model: every row names its tests, and every named test exists."""

from __future__ import annotations

import ast
import re

from tests.docs.conftest import PAGES, ROOT

TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def test_every_row_names_tests_that_exist() -> None:
    text = (PAGES / "explanation" / "failures.md").read_text()
    table = text.split("## Fault table\n")[1].split("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 20
    assert [row for row in rows if not TEST.search(row)] == []
    named = set(TEST.findall(text))
    assert [test for test in named if test[1] not in _tests(test[0])] == []


def _tests(path: str) -> set[str]:
    file = ROOT / path
    if not file.exists():
        return set()
    return {node.name for node in ast.parse(file.read_text()).body if isinstance(node, ast.FunctionDef)}
