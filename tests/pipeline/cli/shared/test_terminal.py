"""Control characters from dumps never reach a terminal as such."""

from __future__ import annotations

import json
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstate_pipeline.cli.shared.terminal import cut, listed, visible, visible_json, wrapped

BIDI = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
ANY = st.text(st.characters())


def is_unsafe(character: str) -> bool:
    control = unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"} and character not in "\t\n"
    return control or unicodedata.bidirectional(character) in BIDI


@given(text=ANY)
def test_nothing_unsafe_is_left(text: str) -> None:
    assert not any(is_unsafe(character) for character in visible(text))


@given(text=ANY)
def test_json_is_safe_and_means_the_same(text: str) -> None:
    written = visible_json(json.dumps({text: text}, ensure_ascii=False))
    assert not any(map(is_unsafe, written))
    assert json.loads(written) == {text: text}


@given(text=ANY.filter(lambda text: not any(map(is_unsafe, text))))
def test_other_text_is_unchanged(text: str) -> None:
    assert visible(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J\x07", r"\x1b[2J\x07"),
        ("\x1b]8;;http://x\x1b\\link", r"\x1b]8;;http://x\x1b\link"),
        ("\x9b31m", r"\x9b31m"),
        ("a\rb", r"a\x0db"),
        ("\u202egnp.exe\u2069", r"\u202egnp.exe\u2069"),
        ("\udcff.jsonl", r"\udcff.jsonl"),
        ("न\u200dम 👩\u200d🌾 שלום", "न\u200dम 👩\u200d🌾 שלום"),
    ],
)
def test_escapes_are_shown(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(text=ANY, columns=st.integers(1, 40))
def test_a_cut_line_fits(text: str, columns: int) -> None:
    line = cut(text, columns)
    assert len(line) <= columns
    assert not re.search(r"[\r\n]", line)


@given(text=ANY, columns=st.integers(1, 40))
def test_wrapped_lines_fit_and_lose_nothing(text: str, columns: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(columns))
        lines = wrapped(text, "  ")
    assert "".join("".join(lines).split(" ")) == visible("".join(text.split()))
    assert [line for line in lines if len(line) > columns and " " in line.strip()] == []


def test_no_item_of_a_list_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "24")
    lines = listed("score 1.000 from", ["words 0.300", "evidence 0.700", "date 0.000"], "  ")
    assert lines == ["  score 1.000 from", "    words 0.300,", "    evidence 0.700,", "    date 0.000"]
