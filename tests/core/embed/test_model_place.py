"""Models are looked for on this machine: in a folder named from the home, or in the local cache of the Hub."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from memstate_core.embed.model_tokenizer import ESTIMATE, TokenCounter
from memstate_core.embed.sentence_model import PACKAGED_MODEL, model_folder
from memstate_core.model.errors import ModelUnavailable
from memstate_core.night.clone import cloned
from memstate_core.run.store import Store, open_store, with_model

FOLDER = model_folder(PACKAGED_MODEL)
REFUSING = """
import socket, sys

def refuse(*asked, **_):
    print("asked another machine:", asked[-1] if asked else "")
    raise OSError("the test has no network")

socket.getaddrinfo = socket.create_connection = socket.socket.connect = refuse
"""
"""A name is looked up, or a connection opened, at the latest before something is downloaded."""
ENCODES = """
from memstate_core.embed.encoder import Encoder
from memstate_core.model.errors import ModelUnavailable

try:
    encoder = Encoder(sys.argv[1])
    encoder.encode(["a text"])
    print(encoder.model, "is run by", encoder.description.split()[0])
except ModelUnavailable as error:
    print(error)
"""


def without_network(model: str, cache: Path) -> str:
    """What a process prints that encodes by a model, with a Hub cache and nothing that forbids the network."""
    allowed = {key: value for key, value in os.environ.items() if key != "HF_HUB_OFFLINE"}
    environment = allowed | {"HF_HOME": str(cache), "XDG_CACHE_HOME": str(cache / "own")}
    command = [sys.executable, "-c", REFUSING + ENCODES, model]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True, cwd=cache).stdout


@pytest.mark.slow
@pytest.mark.parametrize("model", ["someone/absent-model", "absent-model", "models/e5/small", "not a name"])
def test_a_model_that_is_not_here_is_not_asked_for_elsewhere(tmp_path: Path, model: str) -> None:
    printed = without_network(model, tmp_path)
    assert "asked another machine" not in printed
    assert f"{model!r} cannot be loaded: {tmp_path / model} is no folder" in printed
    assert ("nothing is downloaded" in printed) == (model.count("/") < 2 and " " not in model)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["someone/small", "small"])
def test_a_model_of_the_local_hub_cache_is_used_by_its_name(tmp_path: Path, model: str) -> None:
    owner = "someone" if "/" in model else "sentence-transformers"
    cached = tmp_path / "hub" / f"models--{owner}--small"
    shutil.copytree(FOLDER, cached / "snapshots" / "0123abc")
    (cached / "refs").mkdir()
    (cached / "refs" / "main").write_text("0123abc")
    assert without_network(model, tmp_path) == f"{model} is run by OpenVINO\n"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store whose settings name a folder from the home, opened by a process that works elsewhere."""
    home = tmp_path / "home"
    shutil.copytree(FOLDER, home / "models" / "small")
    (home / "memstate.toml").write_text('[embedding]\nmodel = "models/small"\n')
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return open_store(home)


@pytest.mark.slow
def test_a_relative_path_begins_at_the_home_and_is_recorded_as_it_is_written(store: Store) -> None:
    """So a home that is moved, or checked out on another machine, keeps the name and the vectors."""
    assert store.encoder.model == "models/small"
    assert store.encoder.load().startswith("OpenVINO")
    again = with_model(with_model(store, PACKAGED_MODEL), "models/small").encoder
    assert again.load().startswith("OpenVINO")
    counter = TokenCounter(store.encoder.model, store.encoder.base)
    assert (counter.name, counter("the memory"), TokenCounter("models/small").name) == ("models/small", 2, ESTIMATE)


def test_a_clone_finds_the_models_of_its_home(store: Store) -> None:
    with cloned(store) as clone:
        assert open_store(clone.home.root).models_base == store.home.root
        assert not (clone.home.root / "models").exists()


def test_a_relative_path_that_is_not_there_is_named_from_the_home(tmp_path: Path) -> None:
    store = open_store(tmp_path, {"MEMSTATE_EMBEDDING_MODEL": "../models/absent"})
    with pytest.raises(ModelUnavailable) as refused:
        store.encoder.load()
    assert f"{tmp_path}/../models/absent is no folder. Expected a model on this machine" in str(refused.value)
