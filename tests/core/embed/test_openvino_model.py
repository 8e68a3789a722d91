"""OpenVINO's vectors: those of sentence-transformers, and the same to the last bit whatever stands beside a text."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memstate_core.embed import probes
from memstate_core.embed.encoder import Encoder, Vectors
from memstate_core.embed.model_files import NotSupported, longest
from memstate_core.embed.openvino_model import FLOAT32, OpenVinoModel
from memstate_core.embed.sentence_model import PACKAGED_MODEL, SentenceModel, load, model_folder
from memstate_core.embed.verified import BOUNDS

pytestmark = pytest.mark.slow
FOLDER = model_folder(PACKAGED_MODEL)
WORDS = ["the", "Boat", "sank", "14", "März", "déjà", "中文", "\U0001f600", "a-b,", "it's", "€3.50;", "ok?\n"]
ODD = ["", " ", "\n\t", "\x00\x07", "\u200b", "e\u0301", "中文字符", "\U0001f600" * 300, "word " * 5000, "[SEP] [CLS]"]


def drawn(count: int) -> list[str]:
    """Texts of one to four hundred tokens, and odd ones."""
    draw = random.Random(7)
    lengths = [int(draw.paretovariate(0.7)) % 250 + 1 for _ in range(count)]
    return ODD + [" ".join(draw.choices(WORDS, k=length)) for length in lengths]


TEXTS = drawn(250)


@pytest.fixture(scope="module")
def reference() -> Vectors:
    return SentenceModel(PACKAGED_MODEL).encode(TEXTS, 32)


@pytest.fixture(scope="module", params=[True, False], ids=["float32", "as the processor offers"])
def model(request: pytest.FixtureRequest) -> OpenVinoModel:
    return OpenVinoModel(FOLDER, is_exact=request.param)


def test_vectors_are_those_of_sentence_transformers(model: OpenVinoModel, reference: Vectors) -> None:
    vectors = model.encode(TEXTS, 64)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)
    assert (vectors * reference).sum(axis=1).min() >= BOUNDS[model.precision]


def test_a_vector_has_the_same_bits_alone_in_any_batch_in_any_order_and_on_one_thread(model: OpenVinoModel) -> None:
    together, one = model.encode(TEXTS, 64), OpenVinoModel(FOLDER, is_exact=model.precision == FLOAT32, threads=1)
    assert np.array_equal(np.concatenate([one.encode([text], 1) for text in TEXTS]), together)
    order = np.random.default_rng(7).permutation(len(TEXTS))
    assert np.array_equal(model.encode([TEXTS[row] for row in order], 7), together[order])


def copied(folder: Path) -> Path:
    shutil.copytree(FOLDER, folder)
    return folder


def changed(path: Path, **entries: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | entries))


@pytest.mark.parametrize(
    ("file", "entries", "problem"),
    [
        ("config.json", {"model_type": "mpnet"}, "model_type in config.json is 'mpnet', expected 'bert'"),
        ("config.json", {"hidden_act": "relu"}, "hidden_act"),
        ("config.json", {"num_hidden_layers": 7}, "model.safetensors has no encoder.layer.6"),
        ("1_Pooling/config.json", {"pooling_mode_max_tokens": True}, "expected mean or cls"),
    ],
)
def test_a_model_of_another_architecture_is_not_accelerated(
    tmp_path: Path, file: str, entries: dict[str, Any], problem: str
) -> None:
    folder = copied(tmp_path / "model")
    changed(folder / file, **entries)
    with pytest.raises(NotSupported, match=problem):
        OpenVinoModel(folder)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packaged model as the installed sentence-transformers saves it: another form of the same settings."""
    folder = tmp_path_factory.mktemp("saved") / "model"
    load(PACKAGED_MODEL, "cpu").save(str(folder))
    assert json.loads((folder / "1_Pooling" / "config.json").read_text())["pooling_mode"] == "mean"
    assert "max_seq_length" not in json.loads((folder / "sentence_bert_config.json").read_text())
    return folder


@pytest.mark.parametrize(
    ("file", "entries", "tokens"),
    [
        ("tokenizer_config.json", {}, 256),
        ("tokenizer_config.json", {"model_max_length": 40}, 40),
        ("tokenizer_config.json", {"model_max_length": 10**30}, 512),  # as many as the model has positions
        ("tokenizer_config.json", {"model_max_length": None}, 512),
        ("sentence_bert_config.json", {"max_seq_length": 60}, 60),
        ("sentence_bert_config.json", {"processor_kwargs": {"model_max_length": 70}, "max_seq_length": 60}, 70),
        ("1_Pooling/config.json", {"pooling_mode": "cls"}, 256),
        ("1_Pooling/config.json", {"pooling_mode": ["mean"]}, 256),
    ],
)
def test_a_model_saved_by_sentence_transformers_6_is_accelerated_and_reads_as_many_tokens_there(
    saved: Path, tmp_path: Path, file: str, entries: dict[str, Any], tokens: int
) -> None:
    folder = Path(shutil.copytree(saved, tmp_path / "model"))
    changed(folder / file, **entries)
    texts = ["The harbour master's report.", *(" ".join(map(str, range(count))) for count in (39, 61, 255, 400, 700))]
    encoder = Encoder(str(folder), runtime="openvino-float32")
    found, expected = encoder.encode(texts), SentenceModel(str(folder)).encode(texts, 8)
    assert str(encoder.description).startswith("OpenVINO")
    assert (longest(folder), (found * expected).sum(axis=1).min() >= BOUNDS[FLOAT32]) == (tokens, True)


@pytest.mark.parametrize(
    ("file", "entries", "reason"),
    [
        ("1_Pooling/config.json", {"pooling_mode": ["mean", "max"]}, "1_Pooling/config.json sets mean, max, expected"),
        ("sentence_bert_config.json", {"processing_kwargs": {"text": {"max_length": 30}}}, "sets processing_kwargs"),
    ],
)
def test_what_sentence_transformers_runs_instead_is_a_warning(
    saved: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, file: str, entries: dict[str, Any], reason: str
) -> None:
    folder = Path(shutil.copytree(saved, tmp_path / "model"))
    changed(folder / file, **entries)
    assert Encoder(str(folder)).load().startswith("sentence-transformers")
    warned = [
        each.getMessage() for each in caplog.records if (each.name, each.levelname) == ("memstate.encoder", "WARNING")
    ]
    assert [reason in message for message in warned] == [True], warned


def test_wrong_vectors_are_noticed_and_not_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """As a broken graph or a faulty driver would give them: here the tokenizer keeps too few tokens."""
    folder = copied(tmp_path / "model")
    first = Encoder(str(folder), runtime="openvino-float32")
    assert (first.load().startswith("OpenVINO"), len(list((tmp_path / "cache").rglob("*.npy")))) == (True, 1)
    changed(folder / "sentence_bert_config.json", max_seq_length=32)
    second = Encoder(str(folder), runtime="openvino-float32")
    assert second.load().startswith("sentence-transformers")
    assert "to the vectors of sentence-transformers, expected 0.999999 or more" in caplog.text


def test_another_bert_is_compared_once_and_starts_without_torch_afterwards(tmp_path: Path) -> None:
    folder = copied(tmp_path / "model")
    code = (
        "import sys; from memstate_core.embed.encoder import Encoder;"
        f"encoder = Encoder({str(folder)!r}); encoder.encode(['text']);"
        "print(encoder.description.split()[0], 'torch' in sys.modules)"
    )
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in "ab"]
    assert [done.stdout.split() for done in runs] == [["OpenVINO", "True"], ["OpenVINO", "False"]]


def test_the_packaged_vectors_of_the_probes_are_those_of_the_packaged_model() -> None:
    expected = SentenceModel(PACKAGED_MODEL).encode(probes.PROBES, 1)
    assert np.allclose(np.load(probes._PACKAGED), expected, atol=1e-5)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
