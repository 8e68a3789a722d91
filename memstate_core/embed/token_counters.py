"""Counts of tokens by the caller's choice: the embedding model's tokenizer, a tokenizer file, or characters.

Only the command line names files: a server opens no path that a caller names.
"""

from __future__ import annotations

import threading
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from memstate_core.embed.model_tokenizer import TokenCounter

Served = Literal["model", "characters"]
"""What a caller of a server may choose."""

MODEL: Final = "model"
CHARACTERS: Final = "characters"

CHARACTERS_A_TOKEN = 4
_REMEMBERED = 65_536


class Counter(Protocol):
    """Counts the tokens of a text; threads may share it."""

    @property
    def name(self) -> str:
        """What counts."""

    def __call__(self, text: str) -> int:
        """The number of tokens of a text."""


class CharacterCounter:
    """A token is four characters, whatever they are: a rule of thumb for English prose."""

    name = f"{CHARACTERS}/{CHARACTERS_A_TOKEN}"

    def __call__(self, text: str) -> int:
        """A quarter of the characters, rounded up."""
        return -(-len(text) // CHARACTERS_A_TOKEN)


class FileCounter:
    """The tokens that a tokenizer makes of a text, without special ones, truncation and padding.

    Args:
        path: a `tokenizer.json` of the tokenizers library.

    Raises:
        ValueError: it is none.
    """

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self._using = threading.Lock()  # tokenizers have state and are not thread-safe
        self._tokenizer = _loaded(path)
        self._counted = lru_cache(_REMEMBERED)(self._count)

    def __call__(self, text: str) -> int:
        """The tokens of the whole text, line breaks included as the tokenizer has them."""
        return self._counted(text)

    def _count(self, text: str) -> int:
        with self._using:
            return len(self._tokenizer.encode(text, add_special_tokens=False).ids)


def counter_of(tokenizer: str, model: str, base: Path | None = None) -> Counter:
    """What counts the tokens of a pack.

    Args:
        tokenizer: `model`, `characters` or the path of a tokenizer file.
        model: the embedding model, as `Encoder` takes it.
        base: where the relative path of a model begins; None for the working directory.

    Raises:
        ValueError: there is no such file, or it is no tokenizer.
    """
    if tokenizer == MODEL:
        return TokenCounter(model, base)
    return CharacterCounter() if tokenizer == CHARACTERS else FileCounter(Path(tokenizer))


def _loaded(path: Path) -> Any:
    from tokenizers import Tokenizer

    expected = f"expected {MODEL}, {CHARACTERS} or a tokenizer.json of the tokenizers library"
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read ({error}): {expected}") from error
    try:
        found = Tokenizer.from_str(text)
    except Exception as error:  # the library raises nothing narrower
        raise ValueError(f"{path} is no tokenizer ({error}): {expected}") from error
    found.no_truncation()
    found.no_padding()
    return found
