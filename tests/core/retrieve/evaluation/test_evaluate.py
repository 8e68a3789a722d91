"""Answers and packs scored against what they should hold; each metric falls where what it measures is worse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from memstate_core.model.forms.core_block import CORE_BLOCK
from memstate_core.model.forms.session_state import SessionState
from memstate_core.retrieve.evaluation import evaluate
from memstate_core.retrieve.evaluation.evaluate import Evaluation, Metric, Row, missed, summarised
from memstate_core.retrieve.evaluation.recall import Expected, read_questions
from memstate_core.retrieve.reader import SnapshotReader
from tests.core.retrieve.conftest import Store

pytestmark = pytest.mark.slow
Scores = Callable[..., Row]


def words(line: str) -> int:
    return len(line.split())


@pytest.fixture
def scores(store: Store, opened: Callable[[Store], Sequence[SnapshotReader]]) -> Scores:
    """Scores of "Who owns the Acme renewal?" in a store with one topic on it and one on something else."""
    store.topic("acme", title="Acme renewal", summary="Renewal of the Acme contract")
    store.field("acme", "owner", (9, "Aya"))
    store.says("acme", "Aya owns the Acme renewal.", on=9)
    store.says(None, "Source of the owner", scope="user:b", evidence_id="e-acme-owner-0")
    store.topic("boat", title="Boat shed", summary="Where the boats are")
    store.says("boat", "The Acme boat shed leaks.", on=11)
    readers = opened(store)

    def scored(*observations: str, topics: Sequence[str] = (), budget: int = 1000) -> Row:
        evaluation = Evaluation(readers, store.encoder, None, words, "words")  # type: ignore[arg-type]
        asked = Expected("Who owns the Acme renewal?", ("user:a",), frozenset(topics), frozenset(observations))
        return evaluation.scores(asked, budget, (1, 3))

    return scored


def test_what_is_marked_is_found_packed_and_relevant(scores: Scores) -> None:
    row = scores("o0000")
    assert (row["recall_at_1"], row["recall_at_3"], row["evidence_coverage"]) == (1, 1, 1)
    assert (row["budget_compliance"], row["citation_coverage"]) == (1, 1)
    assert 0 < row["irrelevant_injection_rate"] < 0.5, "the boat shed alone is irrelevant"


def test_the_pack_is_that_of_a_caller_whose_core_blocks_and_sessions_inject_nothing(
    store: Store, opened: Callable[[Store], Sequence[SnapshotReader]], scores: Scores
) -> None:
    alone = scores("o0000")
    store.topic("rules", title="house rules", topic_kind=CORE_BLOCK)
    store.field("rules", "content", (1, "Never send a letter unread."))
    store.topic("trip", title="trip", topic_kind=SessionState.topic_kind())
    store.field("trip", "current_goal", (1, "plan the sailing trip"))
    for source in ("e-rules-content-0", "e-trip-current_goal-0"):
        store.says(None, "Source of both", scope="user:b", evidence_id=source)
    evaluation = Evaluation(opened(store), store.encoder, None, words, "words")  # type: ignore[arg-type]
    asked = Expected("Who owns the Acme renewal?", ("user:a",), frozenset(), frozenset(["o0000"]))
    row = evaluation.scores(asked, 1000, (1, 3))
    assert row["irrelevant_injection_rate"] == pytest.approx(alone["irrelevant_injection_rate"])
    assert row["citation_coverage"] == 1, "the headings of both sections state nothing"
    assert evaluation.scores(asked, 8, (1,))["citation_coverage"] == 1
    assert "irrelevant_injection_rate" not in evaluation.scores(asked, 12, (1,)), "the block takes it all"


def test_what_is_not_found_lowers_recall_and_coverage(scores: Scores) -> None:
    row = scores("o0000", "nothing")
    assert (row["recall_at_3"], row["evidence_coverage"]) == (0.5, 0.5)
    assert scores("nothing")["irrelevant_injection_rate"] == 1
    assert scores(topics=["acme", "boat"])["irrelevant_injection_rate"] == 0
    assert "evidence_coverage" not in scores(topics=["acme"])


def test_a_field_covers_the_evidence_that_it_cites(scores: Scores) -> None:
    assert scores("o0001")["evidence_coverage"] == 1
    assert scores("o0001")["recall_at_3"] == 0, "it is no turn of the scope"
    assert scores("o0001", budget=4)["evidence_coverage"] == 0


def test_a_pack_that_nothing_fits_into_has_no_rates(scores: Scores) -> None:
    row = scores("o0000", budget=1)
    assert row["budget_compliance"] == 1
    assert {"irrelevant_injection_rate", "citation_coverage"}.isdisjoint(row)


def test_a_pack_over_budget_and_statements_without_a_source_are_noticed(
    scores: Scores, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = evaluate.context_pack

    def damaged(*given: object, **named: object) -> object:
        pack = real(*given, **named)  # type: ignore[arg-type]
        return pack | {"text": pack["text"] + "\n- Nobody said this. [99]\n  ! x: " + "more " * 1000}

    monkeypatch.setattr(evaluate, "context_pack", damaged)
    row = scores("o0000")
    assert row["budget_compliance"] == 0
    assert 0.5 < row["citation_coverage"] < 1


def test_means_have_intervals_that_the_seed_determines() -> None:
    rows: list[Row] = [{"a": float(number % 2)} for number in range(100)] + [{"b": 1.0}]
    found = summarised(rows, 3)
    assert found == summarised(rows, 3) != summarised(rows, 4)
    assert (found["a"].mean, found["a"].questions, found["b"]) == (0.5, 100, Metric(1.0, 1.0, 1.0, 1))
    assert 0.38 < found["a"].low < 0.43 < 0.57 < found["a"].high < 0.62


def test_thresholds_are_least_values_and_of_irrelevant_items_the_most() -> None:
    metrics = {"recall_at_5": Metric(0.5, 0, 1, 9), "irrelevant_injection_rate": Metric(0.5, 0, 1, 9)}
    assert missed(metrics, {"recall_at_5": 0.5, "irrelevant_injection_rate": 0.5}) == []
    assert missed(metrics, {"recall_at_5": 0.6, "irrelevant_injection_rate": 0.4, "evidence_coverage": 0.1}) == [
        "recall_at_5: found 0.500, expected at least 0.600, missed by 0.100",
        "irrelevant_injection_rate: found 0.500, expected at most 0.400, missed by 0.100",
        "evidence_coverage: nothing was measured, expected 0.100",
    ]


def test_a_byte_order_mark_before_the_questions_is_no_part_of_them(tmp_path):
    file = tmp_path / "questions.jsonl"
    file.write_text('{"q": "Who?", "topics": ["t"]}', encoding="utf-8-sig")
    assert [each.text for each in read_questions(file)] == ["Who?"]


def test_questions_name_scopes_in_either_form(tmp_path: Path) -> None:
    file = tmp_path / "questions.jsonl"
    file.write_text(
        '{"question": "Who?", "evidence": ["o1"], "scope": {"type": "user", "id": "a"}}\n'
        '{"q": "Who?", "observations": ["o1"], "scope": "user:a"}\n'
    )
    first, second = read_questions(file)
    assert first == second == Expected("Who?", ("user:a",), frozenset(), frozenset({"o1"}))
