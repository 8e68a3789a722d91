"""The made chats say what their truth says, and the judgement of answers can fail."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[1]
UPDATE = {"newest": "c", "superseded": ["a", "b"]}


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def hits(*ids: str) -> list[dict[str, Any]]:
    return [{"observation_id": each} for each in ids]


@pytest.fixture
def updates(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("updates")


def test_the_truth_points_at_the_turns_in_which_it_was_said(updates: ModuleType, tmp_path: Path) -> None:
    updates.made_updates.write(tmp_path / "one", 2, 1)
    updates.made_updates.write(tmp_path / "two", 2, 1)
    assert (tmp_path / "one" / "turns.jsonl").read_bytes() == (tmp_path / "two" / "turns.jsonl").read_bytes()
    said_by_id = {row["observation_id"]: row for row in lines(tmp_path / "one" / "turns.jsonl")}
    truth = lines(tmp_path / "one" / "updates.jsonl")
    assert len(truth) == 40
    for update in truth:
        said = [said_by_id[each] for each in (*update["superseded"], update["newest"])]
        assert len(said) == (3 if update["kind"] == "changed twice" else 2)
        assert [turn["observed_at"] for turn in said] == sorted(turn["observed_at"] for turn in said)
        assert {f"user:{turn['actor']}" for turn in said} == {update["scope"]}
    assert not any("<" in turn["text"] for turn in said_by_id.values())


def test_a_scripted_extractor_reads_the_statements_in_a_prompt_and_nothing_else(
    updates: ModuleType, tmp_path: Path
) -> None:
    updates.made_updates.write(tmp_path, 1, 1)
    statements = updates.read_statements(tmp_path / "statements.jsonl", 0.0, 1)
    truth = lines(tmp_path / "updates.jsonl")
    assert len(statements) == sum(len(update["superseded"]) + 1 for update in truth)
    (actor, text), stated = next(iter(statements.items()))
    title = f"{actor}'s {stated['fact'].replace('_', ' ')}"
    rows = [{"handle": "K3", "title": title}, {"turn": 4, "by": actor, "text": text},
            {"turn": 5, "by": "assistant", "text": text}]  # fmt: skip
    prompt = "Turns:\n" + "\n".join(json.dumps(row) for row in rows)
    [topic] = importlib.import_module("scripted_extractor").understood(statements, prompt)["topics"]
    assert (topic["title"], topic["turns"], topic["extends"]) == (title, [4], "K3")
    assert [field["value"] for field in topic["fields"]] == [stated["value"] or "none"]
    assert not updates.read_statements(tmp_path / "statements.jsonl", 1.0, 1)


@pytest.mark.parametrize(
    ("ids", "right"),
    [(["c", "a", "b"], True), (["x", "c"], True), (["b", "c"], False), (["a", "x"], False), ([], False)],
)
def test_the_newest_must_be_found_before_what_it_superseded(updates: ModuleType, ids: list[str], right: bool) -> None:
    assert updates.judged(hits(*ids), UPDATE, "now")["right"] is right


def test_a_superseded_turn_is_shown_as_current_unless_it_names_a_later_one(updates: ModuleType) -> None:
    marked = {"observation_id": "b", "replaced_by": "c"}
    assert updates.judged([*hits("c"), marked], UPDATE, "now")["old"] is False
    assert updates.judged([*hits("c", "a"), marked], UPDATE, "now")["old"] is True
    assert updates.judged([{"observation_id": "c", "replaced_by": "x"}], UPDATE, "now")["doubted"] is True
    assert updates.judged(hits("a", "b"), UPDATE, "now")["doubted"] is False


def test_what_held_before_is_the_last_superseded_turn(updates: ModuleType) -> None:
    assert updates.judged(hits("c", "b"), UPDATE, "before")["right"]
    assert not updates.judged(hits("c", "a"), UPDATE, "before")["right"]


def test_fresh_facts_are_a_set_of_their_own(updates: ModuleType, tmp_path: Path) -> None:
    sets = updates.made_updates.FACT_SETS
    assert not {fact.name for fact in sets["first"]} & {fact.name for fact in sets["fresh"]}
    for fact in sets["fresh"]:
        assert all("<new>" in form for form in (*fact.changed, *fact.restated))
        assert all("<old>" in form and "<new>" not in form for form in (*fact.stated, *fact.withdrawn))
        assert all("<who>" in form for form in (*fact.now, *fact.before))
    updates.made_updates.write(tmp_path, 1, 1, sets["fresh"])
    assert [row["part"] for row in lines(tmp_path / "updates.jsonl")] == ["fresh"] * 10
    updates.made_updates.write(tmp_path, 1, 1)
    assert [row["part"] for row in lines(tmp_path / "updates.jsonl")] == ["seen", "held back"] * 10


@pytest.mark.usefixtures("updates")
def test_a_fact_is_judged_by_coefficients_of_the_others() -> None:
    fit = importlib.import_module("fit_replacement")
    shown = np.tile([0.0, 1.0], 20)[:, None]
    pairs = [fit.Pairs(np.full(40, fact), shown * [1, sign], shown[:, 0] == 1) for fact, sign in enumerate((1, 1, -1))]
    known = fit.joined(pairs)
    assert known.traits.shape == (120, 2)
    found = fit.held_out(known)
    assert ((found > 0.5) == known.replaced)[:80].all()
    assert found[2 * 40 + 1] < fit.fitted(known).predict_proba(known.traits)[2 * 40 + 1, 1]
