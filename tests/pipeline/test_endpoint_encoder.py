"""A store whose texts are embedded by an endpoint, against a server on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from tests.core.llm.scripted import Request, Response, fails, serving
from tests.pipeline.conftest import NIGHT, run_memstate
from tests.pipeline.test_models import TURNS, dimensions, dump

pytestmark = pytest.mark.slow
DIMENSION = 24
KEY = {"EMBEDDINGS_KEY": "sk-very-secret-0123456789"}


def of_words(request: Request) -> Response:
    rows = [
        sum((_of_word(word) for word in text.lower().split()), np.full(DIMENSION, 1e-3)) for text in request["input"]
    ]
    data = [{"object": "embedding", "index": at, "embedding": row.tolist()} for at, row in enumerate(rows)]
    return Response(body={"object": "list", "data": data, "model": "words", "usage": {"total_tokens": 9}})


def _of_word(word: str) -> Any:
    return np.random.default_rng(crc32(word.encode())).standard_normal(DIMENSION)


def test_a_store_with_an_endpoint_for_its_embeddings(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with serving(of_words) as script:
        (home / "memstate.toml").write_text(
            f'[embedding]\nmodel = "words"\nendpoint = "{script.url}"\napi_key_env = "EMBEDDINGS_KEY"\nretries = 0\n'
        )
        assert run_memstate(home, "import", str(dump(tmp_path, 1)), "--now", NIGHT).code == 0
        refused = run_memstate(home, "maintain", "--now", NIGHT)
        assert refused.code == 1
        assert "variable EMBEDDINGS_KEY, which embedding.api_key_env names, is not set" in refused.stderr
        night = run_memstate(home, "maintain", "--now", NIGHT, "--json", **KEY)
        assert night.code == 0, night.stderr
        assert dimensions(home) == {DIMENSION}
        answer = run_memstate(home, "query", TURNS[1], "--json", **KEY)
        assert str(answer.document["evidence"][0]["text"]).startswith(TURNS[1])
        doctor = run_memstate(home, "doctor", **KEY)
        assert f"words at {script.url}: {DIMENSION} dimensions" in doctor.stdout
        assert set(script.keys) == {f"Bearer {KEY['EMBEDDINGS_KEY']}"}
        asked = len(script.requests)
        assert run_memstate(home, "maintain", "--now", NIGHT, **KEY).code == 0
        assert run_memstate(home, "rebuild").code == 0
        assert run_memstate(home, "verify").code == 0
        assert len(script.requests) == asked, "all of it was cached"

        script.answers = [fails(500, "the model crashed")]
        assert run_memstate(home, "import", str(dump(tmp_path, 2)), "--now", NIGHT).code == 0
        failed = run_memstate(home, "maintain", "--now", NIGHT, **KEY)
        assert failed.code == 1
        assert "gives no vectors: unavailable: HTTP 500" in failed.stderr
        assert run_memstate(home, "quarantine", "list").stdout.startswith("0 open"), "no text is to blame"
        script.answers = [of_words]
        assert run_memstate(home, "maintain", "--now", NIGHT, **KEY).code == 0
        assert run_memstate(home, "query", "torn sail (2)", "--stages", "temporal").code == 0
