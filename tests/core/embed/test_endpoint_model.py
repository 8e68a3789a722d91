"""An encoder at an endpoint, against a server on this machine; nothing waits in earnest."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memstate_core.embed.encoder import Encoder
from memstate_core.embed.endpoint_model import EndpointModel
from memstate_core.embed.model_name import ModelName
from memstate_core.embed.vector_cache import embed
from memstate_core.model.errors import EncoderEndpointFailed, ModelUnavailable
from memstate_core.policy.sections.embedding import EmbeddingSettings
from tests.core.llm.scripted import Answer, Request, Response, fails, serving

KEY = "sk-very-secret-0123456789"
TEXTS = ["the boat", "", "a torn sail", "soup", "the boat"]


def vector(text: str) -> list[float]:
    return [3.0, float(len(text)), 4.0]


def embeddings(rows: list[tuple[int, list[Any]]]) -> Response:
    data = [{"object": "embedding", "index": index, "embedding": row} for index, row in rows]
    return Response(body={"object": "list", "data": data, "model": "m", "usage": {"total_tokens": 5}})


def right(request: Request) -> Response:
    """Vectors in the reverse order, which the protocol allows."""
    return embeddings([(at, vector(text)) for at, text in reversed([*enumerate(request["input"])])])


def model_at(url: str, waits: list[float] | None = None, **settings: Any) -> EndpointModel:
    slept: list[float] = [] if waits is None else waits
    return EndpointModel(url, "m", EmbeddingSettings(**settings), {"SOME_KEY": KEY}, slept.append)


def unit(rows: list[list[float]]) -> np.ndarray:
    vectors = np.array(rows)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_texts_are_sent_in_batches_and_each_gets_its_own_vector() -> None:
    with serving(right) as script:
        found = model_at(script.url, api_key_env="SOME_KEY", max_chars=100).encode([*TEXTS, "x" * 300], 4)
    assert np.allclose(found, unit([vector(text or " ") for text in [*TEXTS, "x" * 100]]), atol=1e-6)
    assert found.dtype == np.float32
    assert [len(request["input"]) for request in script.requests] == [4, 2]
    assert {request["model"] for request in script.requests} == {"m"}
    assert script.keys == [f"Bearer {KEY}"] * 2


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (embeddings([(0, [1.0, 0.0])]), "1 vectors with other numbers"),
        (embeddings([(0, [1.0, 0.0]), (0, [0.0, 1.0])]), "2 vectors with other numbers"),
        (embeddings([(0, [1.0, 0.0]), (2, [0.0, 1.0])]), "2 vectors with other numbers"),
        (embeddings([(0, [1.0, 0.0]), (1, [0.0])]), "vectors of 1 and 2 dimensions"),
        (embeddings([(0, []), (1, [])]), "dimensions"),
        (embeddings([(0, [1.0, 0.0]), (1, [0.0, 0.0])]), "zero or not finite"),
        (embeddings([(0, [1.0, 0.0]), (1, [0.0, float("nan")])]), "zero or not finite"),
        (embeddings([(0, [1.0, 0.0]), (1, [0.0, float("inf")])]), "zero or not finite"),
        (embeddings([(0, [1.0, 0.0]), (1, [0.0, "x"])]), "not a list of embeddings"),
        (Response(body={"object": "list"}), "not a list of embeddings"),
        (Response(body="<html>"), "not a list of embeddings"),
        (fails(503, "loading"), "HTTP 503"),
        (Response(hang_up=True), "unreachable"),
    ],
)
def test_a_wrong_answer_is_asked_for_again_and_in_the_end_an_error(answer: Answer, problem: str) -> None:
    waits: list[float] = []
    with serving(answer, answer, right) as script:
        found = model_at(script.url, waits).encode(["a", "bb"], 8)
        assert np.allclose(found, unit([vector("a"), vector("bb")]))
        assert waits == [1.0, 2.0]
    with serving(answer) as script:
        with pytest.raises(EncoderEndpointFailed, match=problem) as failed:
            model_at(script.url, [], retries=1).encode(["a", "bb"], 8)
        assert len(script.requests) == 2
    assert script.url in str(failed.value)


def test_another_dimension_than_before_is_no_answer() -> None:
    with serving(right, embeddings([(0, [1.0, 0.0])])) as script:
        model = model_at(script.url, [], retries=0)
        model.encode(["a"], 1)
        with pytest.raises(EncoderEndpointFailed, match="vectors of 2 and 3 dimensions"):
            model.encode(["b"], 1)


def test_a_rate_limit_is_waited_for_and_a_refusal_is_not_repeated_nor_shows_the_key() -> None:
    waits: list[float] = []
    with serving(fails(429, retry_after="7"), right) as script:
        model_at(script.url, waits).encode(["a"], 1)
    assert waits == [7.0]
    with serving(fails(401, f"bad key {KEY}")) as script:
        with pytest.raises(EncoderEndpointFailed, match=r"denied: HTTP 401: .*bad key …") as failed:
            model_at(script.url, api_key_env="SOME_KEY").encode(["a"], 1)
        assert len(script.requests) == 1
    assert KEY not in str(failed.value)


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EncoderEndpointFailed, match=r"NO_SUCH_KEY, which embedding\.api_key_env names, is not set"):
        model_at("http://x", api_key_env="NO_SUCH_KEY")
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(EncoderEndpointFailed, match=r"pip install 'memstate\[llm\]'"):
        model_at("http://x")


def test_a_budget_ends_the_requests_and_the_next_process_goes_on_where_it_ended(tmp_path: Path) -> None:
    cache, texts = tmp_path / "embeddings.sqlite", [f"text {number}" for number in range(7)]
    with serving(right) as script:
        limits = {"model": "m", "endpoint": script.url, "batch_size": 2, "max_requests": 2}
        with pytest.raises(EncoderEndpointFailed, match=r"embedding\.max_requests \(2\) is used up"):
            embed(cache, Encoder.of(EmbeddingSettings(**limits)), texts)
        again = embed(cache, Encoder.of(EmbeddingSettings(**limits)), texts)
        assert (again.cached, again.encoded, again.vectors.shape) == (4, 3, (7, 3))
        assert sorted(text for request in script.requests for text in request["input"]) == texts
        with pytest.raises(EncoderEndpointFailed, match=r"embedding\.max_tokens \(4\) is used up"):
            Encoder.of(EmbeddingSettings(**limits | {"max_tokens": 4})).encode(["a", "b", "c"])


def test_a_model_at_an_endpoint_has_another_name_on_record_than_one_here() -> None:
    name = ModelName("m", "query: ", endpoint="http://x/v1")
    assert ModelName.parsed(str(name)) == name
    assert json.loads(str(name)) == {
        "model": "m", "query_prefix": "query: ", "passage_prefix": "", "endpoint": "http://x/v1"
    }  # fmt: skip
    assert str(ModelName("m")) == "m"
    assert Encoder.of(EmbeddingSettings(model="m", endpoint="http://x/v1")).model != "m"
    with pytest.raises(ModelUnavailable, match="no access is given"):
        Encoder(str(name)).encode(["a"])
