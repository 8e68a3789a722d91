"""`memstate doctor` says what runs the embedding model, and what keeps it from being loaded, without torch."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memstate_core.embed import gpu_model
from memstate_core.embed.encoder import Encoder
from memstate_core.embed.sentence_model import PACKAGED_MODEL, load, model_folder
from memstate_core.run.store import open_store
from memstate_pipeline.doctor.encoder import model
from memstate_pipeline.doctor.finding import Finding

FOLDER = model_folder(PACKAGED_MODEL)
ON_GPU = "; 4,096 texts and more are encoded on the GPU if torch finds it"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FOLDER, tmp_path / "models" / "small"))


def examined(folder: Path | str, runtime: str = "auto") -> Finding:
    names = {"MEMSTATE_EMBEDDING_MODEL": str(folder), "MEMSTATE_EMBEDDING_RUNTIME": runtime}
    return model(open_store(Path("/nowhere/home"), names))


def changed(path: Path, **entries: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | entries))


def test_a_folder_that_is_no_model_or_not_there_is_a_failure(tmp_path: Path, copied: Path) -> None:
    for folder, problem in (
        (tmp_path / "absent", "is no folder"),
        ("models/small", "/nowhere/home/models/small is no folder, "),
        (tmp_path, f"{tmp_path} holds no model: there is neither modules.json nor config.json; set embedding.model"),
    ):
        finding = examined(folder)
        assert (finding.ok, problem in finding.detail) == (False, True), finding
    (copied / "modules.json").write_text("[")
    assert "modules.json cannot be read" in examined(copied).detail


def test_weights_that_are_missing_or_cut_off_are_a_failure(copied: Path) -> None:
    weights = copied / "model.safetensors"
    with weights.open("r+b") as file:
        file.truncate(1_000_000)
    cut = examined(copied)
    weights.write_text("version https://git-lfs.github.com/spec/v1\n")
    pointer = examined(copied)
    weights.unlink()
    missing = examined(copied)
    assert [finding.ok for finding in (cut, pointer, missing)] == [False] * 3
    assert "holds no weights that can be read: model.safetensors: " in cut.detail
    assert "holds no weights that can be read: model.safetensors: " in pointer.detail
    assert "there is no file *.safetensors or *.bin" in missing.detail


@pytest.mark.slow
def test_a_model_is_tried_out_once_its_vectors_are_known(copied: Path) -> None:
    before = examined(copied)
    Encoder(str(copied)).load()
    after = examined(copied)
    changed(copied / "sentence_bert_config.json", max_seq_length=32)
    other = examined(copied)
    later = "by its configuration files; the first run compares its vectors"
    assert before == Finding("model", True, f"{copied}; run by OpenVINO ({later})")
    assert (after.ok, after.detail.startswith(f"{copied}; run by OpenVINO 20")) == (True, True), after
    assert "run by sentence-transformers, since OpenVINO cannot: cosine" in other.detail
    assert examined(copied, "sentence-transformers").detail == f"{copied}; run by sentence-transformers"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "entries", "reason"),
    [
        ("config.json", {"hidden_act": "relu"}, "hidden_act in config.json is 'relu', expected 'gelu'"),
        ("1_Pooling/config.json", {"pooling_mode_max_tokens": True}, "1_Pooling/config.json sets mean, max_tokens"),
        ("tokenizer.json", None, "there is no tokenizer.json"),
    ],
)
def test_why_sentence_transformers_runs_a_model_is_said(
    copied: Path, file: str, entries: dict[str, Any] | None, reason: str
) -> None:
    """What the files say is what loading the model does."""
    if entries is None:
        (copied / file).unlink()
    else:
        changed(copied / file, **entries)
    finding = examined(copied)
    assert finding.ok
    assert f"{copied}; run by sentence-transformers, since OpenVINO cannot: {reason}" in finding.detail
    assert Encoder(str(copied)).load().startswith("sentence-transformers")


@pytest.mark.slow
def test_a_model_saved_by_sentence_transformers_is_recognised(tmp_path: Path) -> None:
    load(PACKAGED_MODEL, "cpu").save(str(tmp_path / "saved"))
    assert "; run by OpenVINO (" in examined(tmp_path / "saved").detail


@pytest.mark.slow
def test_a_driver_of_nvidia_is_mentioned_where_it_is_used(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library of the system stands for the driver's."""
    monkeypatch.setattr(gpu_model, "_DRIVER", "libm.so.6")
    assert examined(copied).detail.endswith(ON_GPU)
    assert examined(PACKAGED_MODEL).detail.endswith(ON_GPU)
    assert ON_GPU not in examined(copied, "openvino-float32").detail
    monkeypatch.setattr(gpu_model, "_DRIVER", "libno-such-driver.so.1")
    assert ON_GPU not in examined(copied).detail


@pytest.mark.slow
def test_torch_is_not_loaded(copied: Path, tmp_path: Path) -> None:
    Encoder(str(copied)).load()
    code = (
        "import sys; from pathlib import Path; from memstate_core.run.store import open_store;"
        "from memstate_pipeline.doctor.encoder import model;"
        f"names = {{'MEMSTATE_EMBEDDING_MODEL': {str(copied)!r}}};"
        f"print(model(open_store(Path({str(tmp_path)!r}), names)).ok, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]
