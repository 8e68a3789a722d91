"""Which answers about suggested pairs are read from decisions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memstate_core.revise.answers import answered, answers_of
from memstate_core.revise.matching.answers import KINDS
from memstate_core.run.store import Store, open_store
from memstate_core.state.fold.decisions import suggestions
from tests.core.revise.nights import night, record
from tests.core.revise.test_verdicts import judged, ledger, merged, suggested

FIELD = "field/within"


def asked(a: str, b: str, probability: float = 0.6, kind: str = FIELD) -> tuple[Any, ...]:
    decision, topic, payload = suggested(a, b)
    return decision, topic, payload | {"probability": probability, "pair_kind": kind}


def rows(*decisions: tuple[Any, ...]) -> list[tuple[float, str, bool]]:
    return answered(ledger(*decisions)).select("probability", "pair_kind", "same").rows()


def test_an_answer_counts_with_the_pair_as_it_was_last_suggested() -> None:
    again = asked("a", "b", 0.8, "title/across")
    assert rows(asked("a", "b", 0.3), again, judged("a", "b", "different")) == [(0.8, "title/across", False)]


def test_an_answer_counts_after_the_merge_that_follows_from_it() -> None:
    assert rows(asked("a", "b"), judged("a", "b", "same"), merged("b", "a")) == [(0.6, FIELD, True)]


def test_skips_and_pairs_without_a_known_kind_do_not_count() -> None:
    skipped = asked("a", "b"), judged("a", "b", "skip")
    older = suggested("c", "d"), judged("c", "d", "same")
    unknown = asked("e", "f", kind="of a later version"), judged("e", "f", "same")
    assert rows(*skipped, *older, *unknown, judged("g", "h", "same")) == []


def test_answers_have_the_number_of_their_kind() -> None:
    said = answers_of(answered(ledger(asked("a", "b"), judged("a", "b", "same"))))
    assert (said.probability.tolist(), said.kind.tolist(), said.same.tolist()) == ([0.6], [KINDS.index(FIELD)], [True])
    assert len(answers_of(answered(ledger())).same) == 0


@pytest.mark.slow
def test_a_night_values_pairs_by_the_answers_of_the_day_before(tmp_path: Path) -> None:
    store = open_store(tmp_path, {})
    things = [f"Contract with {name} on the cleaning of the office" for name in ("Anna", "Bruno", "Carla", "Dario")]
    topics = {f"{title} {side}": {"title": title, "fields": [price(side)]} for title in things for side in (1, 2)}
    record(store, topics, 1)
    night(store, 2)
    waiting = suggestions(decisions(store))
    answers = [judged(a, b, "different") for a, b in waiting.select("a", "b").head(3).iter_rows()]
    night(store, 3, answers)
    (left,) = suggestions(decisions(store)).to_dicts()
    (before,) = waiting.join(pl.DataFrame([left]).select("a", "b"), on=["a", "b"]).to_dicts()
    assert before["value"] == min(round(before["probability"], 4), 0.9)
    assert left["value"] < min(left["probability"], before["value"]) / 2


def decisions(store: Store) -> pl.DataFrame:
    return store.ledger.scan("transitions").collect().sort("seq")


def price(side: int) -> dict[str, Any]:
    return {"name": "price", "value": 100 * side}
