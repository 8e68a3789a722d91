"""What the configuration files of a model folder say: its architecture, its pooling, and how many tokens it reads.

Read as sentence-transformers reads them, in the form of its versions before 6 (`pooling_mode_*` flags, a length in
`sentence_bert_config.json`) and in that of version 6 (one `pooling_mode`, the length in `tokenizer_config.json`). No
weights are read and no large library is loaded, so asking is cheap.

Invariant: the length is exactly the one that sentence-transformers has; no probe is long enough to show another.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

Pooling = Literal["mean", "cls"]
_USUAL = {"model_type": "bert", "hidden_act": "gelu", "position_embedding_type": "absolute"}
_POSITIONS = 512
"""Positions of a BERT whose `config.json` names no number."""
_UNLIMITED = 10**20
_FLAG = "pooling_mode_"
_OLD_NAMES = {"cls_token": "cls", "mean_tokens": "mean"}
_WEIGHTS = ("*.safetensors", "*.bin")
_TOKENIZER_OPTIONS = ("tokenizer_args", "processor_kwargs")


class NotSupported(Exception):
    """Only sentence-transformers can run the model, or the vectors would not be those of sentence-transformers."""


def bert_config(folder: Path) -> dict[str, Any]:
    """The content of `config.json`.

    Raises:
        NotSupported: it is no BERT with absolute positions and GELU.
        OSError: the file cannot be read.
        ValueError: it is no JSON.
    """
    config = _read(folder / "config.json")
    for key, usual in _USUAL.items():
        if config.get(key, usual if key == "position_embedding_type" else None) != usual:
            raise NotSupported(f"{key} in config.json is {config.get(key)!r}, expected {usual!r}")
    return config


def pooling(folder: Path) -> Pooling:
    """How the states of tokens become one vector.

    Raises:
        NotSupported: neither by their mean nor by the state of the first token.
        OSError: `1_Pooling/config.json` cannot be read.
        ValueError: it is no JSON.
    """
    modes = _modes(_read(folder / "1_Pooling" / "config.json"))
    if modes == ["mean"]:
        return "mean"
    if modes == ["cls"]:
        return "cls"
    raise NotSupported(f"1_Pooling/config.json sets {', '.join(modes) or 'no mode'}, expected mean or cls")


def longest(folder: Path) -> int | None:
    """How many tokens of a text are read, special ones included; None for all.

    Raises:
        NotSupported: the files set options that only sentence-transformers follows.
        OSError: a file cannot be read.
        ValueError: it is no JSON.
    """
    settings = _optional(folder / "sentence_bert_config.json")
    if settings.get("processing_kwargs"):
        raise NotSupported("sentence_bert_config.json sets processing_kwargs, which only sentence-transformers follows")
    options = {key: value for name in _TOKENIZER_OPTIONS for key, value in (settings.get(name) or {}).items()}
    named = options.get("model_max_length", settings.get("max_seq_length"))
    if named is not None:
        return int(named)
    tokenizer = _optional(folder / "tokenizer_config.json")
    stated = tokenizer.get("model_max_length", tokenizer.get("max_len"))
    positions = _read(folder / "config.json").get("max_position_embeddings", _POSITIONS)
    bounds = [int(bound) for bound in (stated, positions) if bound is not None and bound != -1]
    return min((bound for bound in bounds if bound < _UNLIMITED), default=None)


def _modes(config: dict[str, Any]) -> list[str]:
    """The modes of pooling; without any, sentence-transformers takes the mean."""
    found = config.get("pooling_mode")
    if found is not None:
        return [found] if isinstance(found, str) else [str(mode) for mode in found]
    flags = [key.removeprefix(_FLAG) for key, is_set in config.items() if key.startswith(_FLAG) and is_set]
    return [_OLD_NAMES.get(flag, flag) for flag in flags] or ["mean"]


def _read(path: Path) -> dict[str, Any]:
    content = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict):
        raise ValueError(f"{path} holds no JSON object")
    return content


def _optional(path: Path) -> dict[str, Any]:
    return _read(path) if path.is_file() else {}


def require_openvino_form(folder: Path) -> None:
    """Requires that the files are those of a model that OpenVINO runs, as far as they say without the weights.

    Raises:
        NotSupported: they are not; the message says why.
    """
    try:
        bert_config(folder), pooling(folder), longest(folder)
    except (OSError, ValueError) as error:
        raise NotSupported(f"{type(error).__name__}: {error}".splitlines()[0]) from error
    for name in ("model.safetensors", "tokenizer.json"):
        if not (folder / name).is_file():
            raise NotSupported(f"there is no {name}")


def no_model(folder: Path) -> str:
    """What a folder lacks to be a model that sentence-transformers loads; empty if it lacks nothing that is seen."""
    described = [name for name in ("modules.json", "config.json") if (folder / name).is_file()]
    if not described:
        return "holds no model: there is neither modules.json nor config.json"
    for name in described:
        try:
            json.loads((folder / name).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            return f"holds no model: {name} cannot be read: {error}"
    if not any(any(folder.rglob(pattern)) for pattern in _WEIGHTS):
        return f"holds no weights: there is no file {' or '.join(_WEIGHTS)}"
    return _damage(folder / "model.safetensors")


def _damage(weights: Path) -> str:
    """What is wrong with the header or the size of a file of weights; empty for one that is sound, or not there."""
    from safetensors import SafetensorError, safe_open

    if not weights.is_file():
        return ""
    try:
        with safe_open(weights, "numpy"):
            return ""
    except (OSError, SafetensorError) as error:
        return f"holds no weights that can be read: {weights.name}: {error}"
