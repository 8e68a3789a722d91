"""Context packs: within the budget whatever it is, every line cited, warnings beside what they concern."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memstate_core.embed.model_tokenizer import TokenCounter, estimated
from memstate_core.retrieve.packs.context import EVIDENCE, TOPICS, context_pack
from memstate_core.retrieve.packs.pack_pieces import LONGEST, one_line
from memstate_core.retrieve.query import Question, answer
from tests.core.retrieve.conftest import Store, WordEncoder, day

COUNT = TokenCounter()
Opened = Callable[..., list[Any]]


def crm(store: Store) -> None:
    store.topic("acme", title="Acme renewal", summary="Renewal of the Acme contract", topic_kind="deal")
    store.field("acme", "owner", (20, "Aya"), (3, "Priya"))
    store.field("acme", "ends", (5, "June"))
    store.topic("old", title="Acme contract of last year")
    store.topic("gone", title="Acme fax number", state="archived")
    store.edge("acme", "old", "supersedes")
    store.says("acme", "We moved the Acme call\nto Friday.", on=21, actor="Aya")
    store.says("old", "The Acme contract ran out.", on=2)
    store.reviews.append(
        {"id": "r", "topic_id": "acme", "cause_topic_id": "old", "hops": 1, "reason": "what it extends has changed",
         "queued_at": day(22)}
    )  # fmt: skip


def pack(readers: list[Any], budget: int, **how: Any) -> dict[str, Any]:
    question = Question("Who owns the Acme renewal?", top_k=TOPICS, evidence_k=EVIDENCE, **how)
    found = answer(readers, WordEncoder(), None, question)  # type: ignore[arg-type]
    return context_pack(found, budget, COUNT, counted_by=COUNT.name, as_of=question.as_of)


def test_a_pack_lists_topics_then_evidence_and_cites_each_line(store: Store, opened: Opened) -> None:
    crm(store)
    packed = pack(opened(store), 500)
    lines = packed["text"].split("\n")
    assert re.sub(r"\d+", "N", lines[0]) == "# Acme renewal (deal) [N]"
    assert lines[1:3] == ["  ! stale: what it extends has changed", "Renewal of the Acme contract [4]"]
    assert [line.rpartition(" [")[0] for line in lines[3:5]] == [
        "- ends: June (since 2026-01-06)",
        "- owner: Aya (since 2026-01-21)",
    ]
    assert "# Evidence" in lines
    assert any(re.fullmatch(r"- 2026-01-22 Aya: We moved the Acme call to Friday\. \[\d+\]", line) for line in lines)
    plain = [line for line in lines if line != "# Evidence" and not line.startswith("  ! ")]
    cited = [int(re.search(r"\[(\d+)\]$", line).group(1)) for line in plain]  # type: ignore[union-attr]
    assert sorted(cited) == [each["n"] for each in packed["citations"]]
    assert packed["left_out"] == {
        "core": 0,
        "session": 0,
        "topic": 0,
        "resource": 0,
        "evidence": 0,
        "summary": 0,
        "field": 0,
    }
    assert packed["topics"] == [each["topic_id"] for each in packed["citations"] if each["kind"] == "topic"]
    sources = {each["kind"]: each for each in packed["citations"] if each["topic_id"] == "acme"}
    assert sources["evidence"]["observation_id"] == "o0000"
    assert sources["field"]["evidence_ids"]
    json.dumps(packed)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("What is the deposit?", "The deposit is 2350 euros."),
        ("Wie hoch ist die Kaution?", "Die Kaution beträgt 2350 Euro."),
        ("保証金はいくらですか。", "保証金は二三五〇ユーロです。"),
    ],
)
def test_of_a_long_text_the_passage_with_the_words_of_the_question_is_shown(
    store: Store, opened: Opened, question: str, said: str
) -> None:
    """The beginning was shown, whatever the question, and its stop words decide nothing."""
    store.topic("lease", title="Lease")
    aside = "What follows is said once, wie es ist."
    around = "A paragraph of the lease about other things. " * 40
    store.says("lease", f"{aside} {around}{said} {around}{said} {around}")
    found = answer(opened(store), WordEncoder(), None, Question(question, evidence_k=EVIDENCE))  # type: ignore[arg-type]
    packed = context_pack(found, 2_000, COUNT, counted_by=COUNT.name)
    assert said in packed["text"]


def test_warnings_are_next_to_their_pieces(store: Store, opened: Opened) -> None:
    crm(store)
    store.field("old", "rate", (4, "5"))
    store.revisions[-1] |= {"rivals": ["old/field/rate/1"]}
    store.revisions.append(
        store.revisions[-1] | {"id": "old/field/rate/1", "rank": 1, "value_json": '"7"', "rivals": None}
    )
    packed = pack(opened(store), 1000)
    kinds = {each["n"]: each["kind"] for each in packed["citations"]}
    found = {(warning["kind"], kinds[warning["n"]]) for warning in packed["warnings"]}
    assert found == {("stale", "topic"), ("superseded", "topic"), ("conflict", "field")}
    lines = packed["text"].split("\n")
    at = next(place for place, line in enumerate(lines) if line.startswith("  ! conflict"))
    assert lines[at - 1].startswith("- rate: 5")
    assert "  ! superseded: superseded by Acme renewal (acme)" in lines


def test_a_statement_that_a_later_one_may_have_replaced_has_a_warning(store: Store, opened: Opened) -> None:
    store.topic("chat", title="Chat")
    store.says("chat", "I live in Oslo town", actor="Ines", session_id="a", on=1)
    now = store.says("chat", "I live in Bergen town now", actor="Ines", session_id="c", on=60)
    found = answer(opened(store), WordEncoder(), None, Question("In which town does Ines live?"))  # type: ignore[arg-type]
    packed = context_pack(found, 500, COUNT, counted_by=COUNT.name)
    (warning,) = packed["warnings"]
    assert (warning["kind"], now in warning["message"]) == ("replaced", True)
    lines = packed["text"].splitlines()
    assert "Oslo" in lines[lines.index(f"  ! replaced: {warning['message']}") - 1]


def test_so_has_a_summary_that_quotes_it(store: Store, opened: Opened) -> None:
    store.topic("before", title="Oslo town", summary="Ines: I live in Oslo town, near the harbour and the …")
    store.topic("after", title="Bergen town", summary="Ines: I live in Bergen town now")
    store.says("before", "I live in Oslo town, near the harbour", actor="Ines", session_id="a", on=1)
    now = store.says("after", "I live in Bergen town now", actor="Ines", session_id="c", on=60)
    found = answer(opened(store), WordEncoder(), None, Question("In which town does Ines live?"))  # type: ignore[arg-type]
    lines = context_pack(found, 500, COUNT, counted_by=COUNT.name)["text"].splitlines()
    quoted = next(at for at, line in enumerate(lines) if "near the harbour and" in line)
    assert lines[quoted + 1] == f"  ! replaced: a later statement may have replaced what it quotes ({now})"
    assert sum("what it quotes" in line for line in lines) == 1


def test_the_past_is_named_and_has_what_left_since(store: Store, opened: Opened) -> None:
    crm(store)
    readers = opened(store)
    assert "Acme fax number" not in pack(readers, 1000)["text"]
    packed = pack(readers, 1000, as_of=day(10))
    assert packed["text"].startswith("As of 2026-01-11T00:00:00Z, not of now:\n")
    assert "- owner: Priya" in packed["text"]
    assert "# Acme fax number" in packed["text"]
    assert "! archived" not in packed["text"]
    assert packed["tokens"] == COUNT(packed["text"])


def test_what_is_archived_is_marked(store: Store, opened: Opened) -> None:
    crm(store)
    packed = pack(opened(store), 1000, topic_ids=("gone",))
    assert "  ! archived: this topic has been archived" in packed["text"].split("\n")


# The law of budgets

TEXT = st.text(max_size=60) | st.sampled_from(
    ["gate of the ferry yard", "日本語のテキスト", "😀" * 20, "x" * 900, "a\nb"]
)
REVISION = st.builds(
    lambda value, since: {"id": "r", "value": value, "valid_from": since, "evidence_ids": ["e"]},
    TEXT | st.integers() | st.lists(TEXT, max_size=2),
    st.none() | st.just("2026-01-01T00:00:00Z"),
)


@st.composite
def answers(draw: st.DrawFn) -> dict[str, Any]:
    def topic(place: int) -> dict[str, Any]:
        names = draw(st.lists(st.sampled_from("abcd"), unique=True, max_size=4))
        about = st.sampled_from([None, *names])
        warned = st.lists(
            st.builds(lambda f: {"kind": "conflict", "message": "two values", "field": f}, about), max_size=2
        )
        fields = [{"name": name, "current": draw(REVISION)} for name in names]
        named = {"topic_id": f"t{place}", "title": draw(st.none() | TEXT), "summary": draw(st.none() | TEXT)}
        states = st.sampled_from(["active", "archived"])
        return named | {
            "topic_kind": draw(st.none() | st.just("deal")), "scope": "user:a", "state": draw(states), "neighbors": [],
            "fields": fields, "warnings": draw(warned),
        }  # fmt: skip

    said = st.builds(
        lambda text, actor: {
            "observation_id": "o", "text": text, "actor": actor, "topic_id": None, "observed_at": "2026-01-01T00:00:00Z"
        },
        st.none() | TEXT,
        st.none() | st.just("Ines"),
    )  # fmt: skip
    candidates = [topic(place) for place in range(draw(st.integers(0, 5)))]
    return {"query": "q", "candidates": candidates, "evidence": draw(st.lists(said, max_size=6)), "snapshot": "s0/1"}


def assert_items(packed: dict[str, Any]) -> None:
    """The items are the text in its order, with the headings and line breaks between them, and cost what it costs."""
    lines, tokens = packed["text"].split("\n") if packed["text"] else [], 0
    for item in packed["items"]:
        stated = f"{item['content']} [{item['citation']['n']}]"
        while lines[0] != stated:
            assert lines[0].startswith(("# ", "As of")), (lines[0], stated)
            tokens += COUNT(lines.pop(0)) + 1
        warnings = [each for each in packed["warnings"] if each["n"] == item["citation"]["n"]]
        assert item["tokens"] == COUNT("\n".join(lines[: 1 + len(warnings)]))
        tokens += item["tokens"] + 1
        del lines[: 1 + len(warnings)]
    assert lines == []
    assert packed["tokens"] == max(0, tokens - 1)
    assert sorted(item["citation"]["n"] for item in packed["items"]) == [each["n"] for each in packed["citations"]]
    assert {item["kind"] for item in packed["items"]} == {each["kind"] for each in packed["citations"]}


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(found=answers(), budgets=st.tuples(st.integers(0, 400), st.integers(0, 400)), past=st.booleans())
def test_no_budget_is_exceeded_and_a_larger_one_loses_nothing(
    found: dict[str, Any], budgets: tuple[int, int], past: bool
) -> None:
    small, large = (
        context_pack(found, budget, COUNT, counted_by=COUNT.name, as_of=day(1) if past else None)
        for budget in sorted(budgets)
    )
    for packed in (small, large):
        assert COUNT(packed["text"]) <= packed["budget"]
        assert packed["tokens"] == COUNT(packed["text"])
        assert_items(packed)
        assert all(line.isprintable() for line in packed["text"].split("\n"))
    assert [each["n"] for each in small["citations"]] == list(range(1, len(small["citations"]) + 1))
    assert large["citations"][: len(small["citations"])] == small["citations"]
    assert set(small["text"].splitlines()) <= set(large["text"].splitlines())
    whole = context_pack(found, 10**6, COUNT, counted_by=COUNT.name)
    assert not any(whole["left_out"].values())
    kept = len(small["citations"]) + sum(small["left_out"].values())
    assert kept == len(whole["citations"])


def blocks() -> st.SearchStrategy[list[dict[str, Any]]]:
    made = st.builds(
        lambda label, content: {"label": label, "content": content, "scope": "user:a", "revision_id": "r",
                                "evidence_ids": ["e"]},
        label=st.text(min_size=1, max_size=12), content=st.text(max_size=300),
    )  # fmt: skip
    return st.lists(made, max_size=6).map(
        lambda each: [block | {"topic_id": f"block-{at}"} for at, block in enumerate(each)]
    )


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(found=answers(), core=blocks(), budget=st.integers(0, 400))
def test_each_core_block_is_whole_before_all_else_or_named(
    found: dict[str, Any], core: list[dict[str, Any]], budget: int
) -> None:
    packed = context_pack(found | {"core_blocks": core}, budget, COUNT, counted_by=COUNT.name)
    assert packed["tokens"] == COUNT(packed["text"]) <= budget
    shown = [each["topic_id"] for each in packed["citations"] if each["kind"] == "core"]
    named = [each["topic_id"] for each in packed["core_left_out"]]
    assert sorted(shown + named) == [each["topic_id"] for each in core]
    assert packed["left_out"]["core"] == len(named)
    lines = packed["text"].split("\n")
    for at, topic_id in enumerate(shown, 1):
        block = core[int(topic_id.removeprefix("block-"))]
        assert one_line(block["content"], None) in lines[at]
    room = budget - COUNT("\n".join(lines[: len(shown) + 1])) if shown else budget
    assert all(each["tokens"] > room - COUNT("# Core memory") - 2 for each in packed["core_left_out"])


def sessions() -> st.SearchStrategy[list[dict[str, Any]]]:
    made = st.builds(
        lambda name, goal: {"session_id": name, "status": "active", "current_goal": goal, "summary": None,
                            "working_set": [], "scope": "user:a", "evidence_ids": ["e"]},
        name=st.text(min_size=1, max_size=12), goal=st.text(max_size=200),
    )  # fmt: skip
    return st.lists(made, max_size=4).map(
        lambda each: [session | {"topic_id": f"session-{at}"} for at, session in enumerate(each)]
    )


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(found=answers(), core=blocks(), active=sessions(), budget=st.integers(0, 400))
def test_each_session_is_whole_after_the_core_blocks_or_named(
    found: dict[str, Any], core: list[dict[str, Any]], active: list[dict[str, Any]], budget: int
) -> None:
    assert_items(context_pack(found | {"core_blocks": core, "sessions": active}, budget, COUNT, counted_by=COUNT.name))
    packed = context_pack(found | {"core_blocks": core, "sessions": active}, budget, COUNT, counted_by=COUNT.name)
    assert packed["tokens"] == COUNT(packed["text"]) <= budget
    kinds = [each["kind"] for each in packed["citations"]]
    assert kinds == sorted(kinds, key=lambda kind: {"core": 0, "session": 1}.get(kind, 2))
    shown = [each["topic_id"] for each in packed["citations"] if each["kind"] == "session"]
    named = [each["topic_id"] for each in packed["session_left_out"]]
    assert sorted(shown + named) == [each["topic_id"] for each in active]
    for topic_id in shown:
        goal = one_line(active[int(topic_id.removeprefix("session-"))]["current_goal"], None)
        assert goal in packed["text"]


def test_topics_take_turns(store: Store, opened: Opened) -> None:
    for number in range(4):
        store.topic(f"t{number}", title=f"Acme number {number}")
        for field in range(10):
            store.field(f"t{number}", f"field {field}", (1, "a value of some length that costs something"))
    readers = opened(store)
    packed = pack(readers, 400)
    assert len(packed["topics"]) == 4
    assert packed["left_out"]["field"] > 0


# Counting


@pytest.mark.parametrize(
    ("line", "tokens"), [("", 0), ("the gate", 2), ("😀😀", 8), ("日本", 2), ("a" * 300, 300), ("[12]", 3)]
)
def test_tokens_are_those_of_the_model_and_unknown_words_cost_their_bytes(line: str, tokens: int) -> None:
    assert COUNT(line) == tokens
    assert COUNT(f"{line}\n{line}") == 2 * tokens + 1
    assert COUNT.name == "all-MiniLM-L6-v2"


def test_a_model_without_a_tokenizer_is_estimated_from_above(tmp_path: Any) -> None:
    counter = TokenCounter(str(tmp_path))
    assert counter.name == "estimate"
    for line in ("The gate of the ferry yard is open again.", "日本語", "[12] 2026-04-22: 7,500 euros", "😀"):
        assert counter(line) == estimated(line) >= COUNT(line)


@pytest.mark.parametrize(
    ("text", "shown"), [("a\n\t b", "a b"), ("\x00\u202ea", "a"), ("x" * 500, "x" * (LONGEST - 1) + "…")]
)
def test_a_text_is_shown_on_one_line(text: str, shown: str) -> None:
    assert one_line(text) == shown
