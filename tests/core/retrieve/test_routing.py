"""Policies of context packs: what each reads, and how resources are shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memstate_core.embed.model_tokenizer import TokenCounter
from memstate_core.model.forms.core_block import CORE_BLOCK
from memstate_core.model.forms.resource import Resource
from memstate_core.model.forms.session_state import SessionState
from memstate_core.retrieve.packs.context import EVIDENCE, TOPICS, context_pack
from memstate_core.retrieve.packs.grounds import with_warnings
from memstate_core.retrieve.query import Question, answer
from memstate_core.retrieve.routing import POLICIES, Policy
from memstate_core.state.graph import Graph
from tests.core.retrieve.conftest import Store, WordEncoder

COUNT = TokenCounter()
Opened = Callable[..., list[Any]]
SESSION = SessionState.topic_kind()


def resource(store: Store, topic_id: str, title: str, content: str, **given: Any) -> None:
    store.topic(topic_id, title=title, topic_kind=Resource.topic_kind(), summary=content[:60], **given)
    store.field(topic_id, "uri", (1, f"docs/{topic_id}.md"))
    store.field(topic_id, "kind", (1, "doc"))
    store.field(topic_id, "content", (1, content))


@pytest.fixture
def readers(store: Store, opened: Opened) -> list[Any]:
    store.topic("rules", title="house rules", topic_kind=CORE_BLOCK)
    store.field("rules", "content", (1, "Never send a letter unread."))
    store.topic("trip", title="trip", topic_kind=SessionState.topic_kind())
    store.field("trip", "current_goal", (1, "plan the sailing trip"))
    store.topic("acme", title="Acme renewal")
    store.says("acme", "The Acme renewal is on Friday.", on=3)
    resource(store, "guide", "Guide to the Acme renewal", "How the Acme renewal is signed: " + "word " * 120)
    store.says("guide", "How the Acme renewal is signed", on=1)
    store.edge("acme", "guide", "supersedes")
    return opened(store)


def pack(readers: list[Any], policy: Policy, encoder: Any = None, **how: Any) -> dict[str, Any]:
    question = Question("When is the Acme renewal?", ("user:a",), TOPICS, EVIDENCE, policy=policy, **how)
    found = answer(readers, encoder or WordEncoder(), None, question)
    return context_pack(found, 2000, COUNT, counted_by=COUNT.name, policy=policy)


def test_each_policy_reads_its_layers(readers: list[Any]) -> None:
    kinds = {policy: {each["kind"] for each in pack(readers, policy)["citations"]} for policy in POLICIES}
    assert kinds == {
        "auto": {"core", "session", "topic", "resource", "evidence"},
        "task": {"core", "session"},
        "workspace": {"core", "resource"},
    }
    assert [pack(readers, policy)["policy"] for policy in POLICIES] == list(POLICIES)


def test_a_task_pack_is_made_without_a_search(readers: list[Any]) -> None:
    encoder = WordEncoder()
    assert pack(readers, "task", encoder)["text"].split("\n") == [
        "# Core memory",
        "- house rules: Never send a letter unread. [1]",
        "# Active sessions",
        "- trip: plan the sailing trip [2]",
    ]
    assert encoder.asked == []
    everywhere = answer(readers, encoder, None, Question("x", policy="task"))  # type: ignore[arg-type]
    assert [each["label"] for each in everywhere["core_blocks"]] == ["house rules"]


@pytest.mark.parametrize("scopes", [(), ("user:b",)])
def test_a_task_pack_has_nothing_of_other_scopes(readers: list[Any], scopes: tuple[str, ...]) -> None:
    """A caller without any scope is no owner of all."""
    found = answer(readers, WordEncoder(), None, Question("x", scopes, policy="task"))  # type: ignore[arg-type]
    assert (found["core_blocks"], found["sessions"]) == ([], [])


@pytest.fixture
def with_sessions(store: Store, opened: Opened) -> list[Any]:
    """Sessions that are nearer to the question than the only topic, more than a pack has topics; one is active."""
    store.topic("acme", title="Acme")
    for number in range(TOPICS + 1):
        store.topic(f"s{number:02}", title="the Acme renewal", topic_kind=SESSION)
        store.field(f"s{number:02}", "current_goal", (1, f"the Acme renewal, goal {number}"))
        if number:
            store.field(f"s{number:02}", "status", (1, "blocked" if number % 2 else "complete"))
    store.says("s01", "The renewal waits for Acme.", on=2)
    store.edge("s02", "acme", "supersedes")
    return opened(store)


def test_only_active_sessions_are_in_a_pack_and_take_no_place_of_topics(with_sessions: list[Any]) -> None:
    packed = pack(with_sessions, "auto")
    assert packed["topics"] == ["acme"]
    assert [each["topic_id"] for each in packed["citations"] if each["kind"] == "session"] == ["s00"]
    assert "goal 1" not in packed["text"]
    assert "- 2026-01-03: The renewal waits for Acme." in packed["text"], "what was said in one is evidence"
    found = answer(with_sessions, WordEncoder(), None, asked(policy="auto"))
    assert [each["topic_id"] for each in found["candidates"]] == ["acme"]


def test_a_plain_query_finds_sessions_of_every_status(with_sessions: list[Any]) -> None:
    found = answer(with_sessions, WordEncoder(), None, asked(policy=None))
    assert {each["topic_kind"] for each in found["candidates"]} == {SESSION}


def test_a_question_of_no_scope_has_the_sessions_of_those_that_it_is_about(store: Store, opened: Opened) -> None:
    """Here nothing but a session is in its scope."""
    store.topic("trip", title="the sailing trip", topic_kind=SESSION, scope="user:b")
    store.field("trip", "current_goal", (1, "plan the sailing trip"))
    readers, question = opened(store), Question("Where does the sailing trip go?", policy="auto")
    found = answer(readers, WordEncoder(), None, question)  # type: ignore[arg-type]
    assert ([each["topic_id"] for each in found["sessions"]], found["candidates"]) == (["trip"], [])


def asked(policy: Policy | None) -> Question:
    return Question("When is the Acme renewal?", ("user:a",), TOPICS, EVIDENCE, policy=policy)


def test_a_resource_is_one_line_with_its_address_and_its_warnings(readers: list[Any]) -> None:
    packed = pack(readers, "workspace")
    at = (lines := packed["text"].split("\n")).index("# Resources")
    assert lines[at + 1].startswith(
        "- Guide to the Acme renewal (doc, docs/guide.md): How the Acme renewal is signed: word"
    )
    assert lines[at + 1].endswith("… [2]")
    assert lines[at + 2] == "  ! superseded: superseded by Acme renewal (acme)", "its neighbour is no resource"
    cited = packed["citations"][1]
    assert (cited["kind"], cited["uri"], cited["field"]) == ("resource", "docs/guide.md", "content")
    assert cited["evidence_ids"] == ["e-guide-content-0"]


def test_the_evidence_of_a_resource_does_not_repeat_it(readers: list[Any]) -> None:
    packed = pack(readers, "auto")
    assert packed["text"].count("How the Acme renewal is signed") == 1
    assert packed["topics"] == ["acme"]
    assert packed["left_out"]["resource"] == 0


def test_a_larger_budget_keeps_the_resources_of_a_smaller_one(readers: list[Any]) -> None:
    question = Question("When is the Acme renewal?", ("user:a",), TOPICS, EVIDENCE, policy="auto")
    found = answer(readers, WordEncoder(), None, question)  # type: ignore[arg-type]
    packs = [context_pack(found, budget, COUNT, counted_by=COUNT.name) for budget in range(0, 400, 7)]
    for packed in packs:
        assert packed["tokens"] == COUNT(packed["text"]) <= packed["budget"]
    shown = [sum(each["kind"] == "resource" for each in packed["citations"]) for packed in packs]
    assert shown == sorted(shown)
    assert set(shown) == {0, 1}


@pytest.mark.parametrize("opened", [True], ids=["files"], indirect=True)
@pytest.mark.parametrize("policy", POLICIES)
def test_the_graph_is_read_with_the_first_pack_of_a_scope_only(
    readers: list[Any], policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = with_warnings(pack(readers, policy), readers, ("user:a",), None, None)

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("the graph is read again")

    monkeypatch.setattr(Graph, "read", refuse)
    assert with_warnings(pack(readers, policy), readers, ("user:a",), None, None) == whole
