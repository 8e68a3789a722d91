"""A store whose encoder hashes words: nights and questions without any model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from memstate_core.embed.encoder import Encoder
from memstate_core.embed.hashing_model import HASHING_MODEL, HashingModel
from tests.pipeline.conftest import NIGHT, run_memstate
from tests.pipeline.test_prefixes import ASKED, TURNS, dump, vectors


@pytest.mark.slow
def test_a_night_and_a_question_hash_words(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "memstate.toml").write_text(f'[embedding]\nmodel = "{HASHING_MODEL}"\n')
    assert run_memstate(home, "import", str(dump(tmp_path)), "--now", NIGHT).code == 0
    night = run_memstate(home, "maintain", "--now", NIGHT, "--json").document
    assert night["counts"]["topics_embedded"] == 1
    assert np.array_equal(vectors(home), Encoder(HASHING_MODEL).encode(TURNS))
    found = run_memstate(home, "query", ASKED, "--json").document
    assert found["evidence"][0]["text"] == TURNS[0]
    assert found["candidates"][0]["similarity"] > 0
    assert HashingModel.description in run_memstate(home, "doctor").stdout
