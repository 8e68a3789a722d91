"""Token counts of texts, by the embedding model's tokenizer and without loading the model.

The reader of a text may use another tokenizer, so the count is an upper estimate: a word that is not in the
vocabulary counts one token per UTF-8 byte, the worst case of byte-level byte pair encoding, and each line break
counts one.
"""

from __future__ import annotations

import threading
from functools import lru_cache
from pathlib import Path
from typing import Any

from memstate_core.embed.encoder import PACKAGED_MODEL
from memstate_core.embed.hashing_model import HASHING_MODEL
from memstate_core.embed.model_name import ModelName
from memstate_core.embed.model_place import found_model
from memstate_core.embed.sentence_model import model_folder
from memstate_core.model.errors import ModelUnavailable

ESTIMATE = "estimate"
"""The name of the count without a tokenizer: one token per two UTF-8 bytes of a run of letters and digits, rounded
up, and one per byte of anything else except white space. English prose has about four bytes per token."""

_BYTES_A_TOKEN = 2
_REMEMBERED = 65_536


class TokenCounter:
    """Counts tokens; threads may share it. The tokenizer is loaded at the first text.

    Args:
        model: an embedding model, as `Encoder` takes it; its prefixes do not count.
        base: where the relative path of a model begins; None for the working directory.
    """

    def __init__(self, model: str = PACKAGED_MODEL, base: Path | None = None) -> None:
        self._named, self._base = ModelName.parsed(model), base
        self._model = self._named.model
        self._using = threading.Lock()  # tokenizers have state and are not thread-safe
        self._loaded: Any = None
        self._is_loaded = False
        self._counted = lru_cache(_REMEMBERED)(self._count)

    @property
    def name(self) -> str:
        """The model whose tokenizer counts, or `ESTIMATE` if the model has no tokenizer file."""
        return ESTIMATE if self._tokenizer() is None else self._model

    def __call__(self, text: str) -> int:
        """The number of tokens of a text, its line breaks included."""
        lines = text.split("\n")
        return sum(map(self._counted, lines)) + len(lines) - 1

    def _count(self, line: str) -> int:
        tokenizer = self._tokenizer()
        if tokenizer is None:
            return estimated(line)
        with self._using:
            encoded = tokenizer.encode(line, add_special_tokens=False)
        unknown = _unknown_word(tokenizer)
        spans = [span for token, span in zip(encoded.tokens, encoded.offsets, strict=True) if token == unknown]
        further = sum(len(line[low:high].encode()) - 1 for low, high in spans)
        return len(encoded.tokens) + further

    def _tokenizer(self) -> Any:
        with self._using:
            if not self._is_loaded:
                self._loaded, self._is_loaded = self._load(), True
        return self._loaded

    def _load(self) -> Any:
        """The tokenizer of a model on this machine; None for one without."""
        if self._named.endpoint or self._model == HASHING_MODEL:
            return None
        try:
            return _tokenizer(model_folder(found_model(self._model, self._base)))
        except ModelUnavailable:
            return None


def estimated(line: str) -> int:
    """The count without a tokenizer; see `ESTIMATE`."""
    tokens = run = 0
    for character in line:
        if character.isalnum():
            run += len(character.encode())
            continue
        tokens += -(-run // _BYTES_A_TOKEN) + (0 if character.isspace() else len(character.encode()))
        run = 0
    return tokens - (-run // _BYTES_A_TOKEN)


def _unknown_word(tokenizer: Any) -> str | None:
    found = getattr(tokenizer.model, "unk_token", None)
    return found if isinstance(found, str) else None


def _tokenizer(folder: Path) -> Any:
    path = folder / "tokenizer.json"
    if not path.is_file():
        return None
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
