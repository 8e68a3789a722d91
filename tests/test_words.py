"""The vocabulary of the project: names and prose use the standard terms of databases and information retrieval.

Each private word that the project once had is listed with the term that replaces it. Names, comments and docstrings are
checked everywhere; other strings only outside of tests, since tests hold text as people write it.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

import pytest

ROOT = Path(__file__).parent.parent
CODE = ("memstate_core", "memstate_pipeline", "docs/make", "tests")
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/pages", "tests/benchmarks/README.md")

PRIVATE = {
    r"(?:un)?told|tells?|tellings?": "record, report, describe",
    r"heard": "import, receive",
    r"stretch(?:es|ed|ing)?": "segment",
    r"claim(?:s|ed|ing)?": "assertion",
    r"standings?": "ladder state, topic features, precedence",
    r"rungs?": "ladder state",
    r"rehears(?:e|es|ed|ing|als?)": "simulation, replay",
    r"sift(?:s|ed|ing)?": "batch validation",
    r"outlooks?": "forecast",
    r"sights?": "scope filter",
    r"entrances?": "authentication",
    r"falling": "descending",
}
"""Words and their standard terms: neither in names nor in prose."""
NAMES = {r"uses": "accesses"}
"""Words with an everyday meaning in prose: not in names."""
PHRASES = {
    r"(?:taken|takes?|taking) back": "undo, reverse",
    r"(?:brought|brings?) back": "restore",
    r"(?:typed|topic) links?|links? between topics": "edge",
    r"middles? of (?:(?:a|the|its|their) )?(?:segment|turn|topic|vector)s?": "centroid",
    r"gone on with": "continued",
    r"put(?:s|ting)? away": "move, processed",
    r"the last word": "the last decision",
    r"whoever": "the caller, the scope",
    r"has it that": "states",
    r"stands? there": "is there",
}
"""Turns of phrase: not in prose."""


@cache
def either(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(patterns)})\b(?!\()", re.IGNORECASE)


PROSE = PRIVATE | PHRASES
NAME = PROSE | NAMES
ANYWHERE = re.compile("|".join(NAME), re.IGNORECASE)


def test_no_private_word_is_left() -> None:
    found = [f"{place}: {word!r}, use {term!r}" for place, word, term in everywhere()]
    assert not found, "\n".join(found)


def everywhere() -> Iterator[tuple[str, str, str]]:
    for folder in CODE:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for line, word, term in in_code(path.read_text(encoding="utf-8"), messages=folder != "tests"):
                yield f"{path.relative_to(ROOT)}:{line}", word, term
    for name in PAGES:
        for path in [ROOT / name] if name.endswith(".md") else sorted((ROOT / name).rglob("*.md")):
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
                for word, term in in_prose(re.sub(r"`[^`]*`", "", line)):
                    yield f"{path.relative_to(ROOT)}:{number}", word, term


def in_code(source: str, messages: bool) -> Iterator[tuple[int, str, str]]:
    """Private words in names, comments and docstrings, and with `messages` in all other strings: line, word, term."""
    if not ANYWHERE.search(source.replace("_", " ")):  # tokens take ten times longer
        return
    begins = True
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NAME:
            yield from ((token.start[0], *each) for each in in_name(token.string))
        elif token.type == tokenize.COMMENT or (token.type == tokenize.STRING and (begins or messages)):
            for number, line in enumerate(token.string.splitlines(), start=token.start[0]):
                yield from ((number, *each) for each in in_prose(line))
        if token.type not in (tokenize.COMMENT, tokenize.NL):
            begins = token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)


@cache
def in_name(name: str) -> list[tuple[str, str]]:
    """The private words and phrases of a name in snake_case or CamelCase, except the method of files."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).replace("_", " ")
    return [] if name == "tell" else in_prose(words, NAME)


def in_prose(text: str, forbidden: Mapping[str, str] = MappingProxyType(PROSE)) -> list[tuple[str, str]]:
    """The private words and phrases of a text, or other forbidden ones, with their standard terms."""
    return [
        (match[0], next(term for words, term in forbidden.items() if either((words,)).fullmatch(match[0])))
        for match in either(tuple(forbidden)).finditer(text)
    ]


@pytest.mark.parametrize(
    "source",
    [
        '"""What evidence claims."""\n',
        'def told() -> None:\n    """Nothing."""\n',
        "class LadderRungs:\n    pass\n",
        "def claimed():\n    pass\n",
        '"""A typed link."""\n',
        "x = 1  # the middle of a segment\n",
        "def put_away():\n    pass\n",
        "accesses = state.uses\n",
        "x = 1  # the last word on each topic\n",
        'def f():\n    """The merge that\n    was taken back."""\n',
        'x = 1\n"""Stretches of turns."""\n',
    ],
)
def test_a_private_word_in_a_name_a_comment_or_a_docstring_is_found(source: str) -> None:
    assert len(list(in_code(source, messages=False))) == 1


def test_a_private_word_in_a_message_is_found_outside_of_tests() -> None:
    source = 'raise ValueError(f"{x} was taken back")\n'
    assert [word for _, word, _ in in_code(source, messages=True)] == ["taken back"]
    assert not list(in_code(source, messages=False))


@pytest.mark.parametrize(
    "source", ["position = file.tell()\n", '"""Understanding of a restretched thing."""\n', "usage = 1\n"]
)
def test_other_words_are_not_found(source: str) -> None:
    assert not list(in_code(source, messages=True))
