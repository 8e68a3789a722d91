"""The OpenVINO graph of a BERT, made from the weights that a model folder holds.

Made here and not exported, so that neither torch nor a converted copy of the model is needed. What is no BERT with
the usual parts is refused. The graph gives the last hidden states; pooling them is the business of `openvino_model`.

Invariant: OpenVINO is imported by functions only.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from memstate_core.embed.model_files import NotSupported, bert_config
from memstate_core.embed.openvino_import import openvino


def bert_graph(folder: Path) -> Any:
    """The graph of a model, with inputs token ids (int32, b x n) and mask (float32, b x 1 x 1 x n, added to scores).

    Args:
        folder: holds `config.json` and `model.safetensors`.

    Returns:
        An `openvino.Model` whose output is the last hidden state of each token (b x n x d).

    Raises:
        NotSupported: it is no BERT with absolute positions and GELU.
        OSError: a file cannot be read.
    """
    from safetensors.numpy import load_file

    runtime = openvino()
    opset13 = runtime.opset13
    config = bert_config(folder)
    weights = {name.removeprefix("bert."): value for name, value in load_file(folder / "model.safetensors").items()}
    ids = opset13.parameter([-1, -1], np.int32, name="ids")
    mask = opset13.parameter([-1, 1, 1, -1], np.float32, name="mask")
    parts = _Parts(opset13, weights, config["num_attention_heads"], config["layer_norm_eps"])
    try:
        states = parts.embedded(ids)
        for layer in range(config["num_hidden_layers"]):
            states = parts.transformed(states, mask, f"encoder.layer.{layer}")
    except KeyError as missing:
        raise NotSupported(f"model.safetensors has no {missing.args[0]}") from missing
    return runtime.Model([opset13.result(states)], [ids, mask], "bert")


@dataclass(frozen=True)
class _Parts:
    """The parts of a BERT as nodes of a graph; the names are those of the weights."""

    op: Any
    weights: dict[str, Any]
    heads: int
    epsilon: float

    def embedded(self, ids: Any) -> Any:
        """The sum of the embeddings of tokens, of their positions and of the first segment, normalised."""
        op, axis = self.op, self._numbers(0)
        length = op.gather(op.shape_of(ids), self._numbers(1), op.constant(np.int64(0)))
        words = op.gather(self._weight("embeddings.word_embeddings.weight"), ids, op.constant(np.int64(0)))
        table = self._weight("embeddings.position_embeddings.weight")
        positions = op.slice(table, self._numbers(0), length, self._numbers(1), axis)
        segment = op.constant(self.weights["embeddings.token_type_embeddings.weight"][0])
        return self._normalised(op.add(op.add(words, segment), positions), "embeddings.LayerNorm")

    def transformed(self, states: Any, mask: Any, layer: str) -> Any:
        """One layer: attention, then the two dense parts, each added to what it was given and normalised."""
        op = self.op
        asked, keys, values = (
            self._split(self._dense(states, f"{layer}.attention.self.{name}")) for name in ("query", "key", "value")
        )
        attended = self._joined(op.scaled_dot_product_attention(asked, keys, values, mask))
        attended = op.add(self._dense(attended, f"{layer}.attention.output.dense"), states)
        attended = self._normalised(attended, f"{layer}.attention.output.LayerNorm")
        inner = op.gelu(self._dense(attended, f"{layer}.intermediate.dense"), "erf")
        outer = op.add(self._dense(inner, f"{layer}.output.dense"), attended)
        return self._normalised(outer, f"{layer}.output.LayerNorm")

    def _weight(self, name: str) -> Any:
        return self.op.constant(np.asarray(self.weights[name], dtype=np.float32))

    def _numbers(self, *numbers: int) -> Any:
        return self.op.constant(np.array(numbers, dtype=np.int64))

    def _dense(self, states: Any, name: str) -> Any:
        product = self.op.matmul(states, self._weight(f"{name}.weight"), False, True)
        return self.op.add(product, self._weight(f"{name}.bias"))

    def _normalised(self, states: Any, name: str) -> Any:
        centred = self.op.mvn(states, self._numbers(-1), True, self.epsilon, "inside_sqrt")
        return self.op.add(self.op.multiply(centred, self._weight(f"{name}.weight")), self._weight(f"{name}.bias"))

    def _split(self, states: Any) -> Any:
        """The states by head: b x heads x n x d / heads of b x n x d."""
        shape = self._numbers(0, 0, self.heads, self.weights["embeddings.LayerNorm.bias"].shape[0] // self.heads)
        return self.op.transpose(self.op.reshape(states, shape, True), self._numbers(0, 2, 1, 3))

    def _joined(self, states: Any) -> Any:
        """The reverse of `_split`."""
        shape = self._numbers(0, 0, self.weights["embeddings.LayerNorm.bias"].shape[0])
        return self.op.reshape(self.op.transpose(states, self._numbers(0, 2, 1, 3)), shape, True)
