"""How many answers are missing until nights merge likely pairs: what is announced is what a night does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memstate_core.model.ledger_tables import TRANSITIONS
from memstate_core.revise.answers_needed import answers_needed
from memstate_core.revise.suggestions import drawn
from memstate_core.revise.verdicts import open_pairs, verdict_decisions
from memstate_core.run.store import Store, open_store
from tests.core.frames import filled
from tests.core.night.corrections import decide, shard
from tests.core.revise.matching.people import observations, people
from tests.core.revise.nights import night, record

ENOUGH = 59
"""The fewest answers, all `same`, that confirm pairs."""
SURE = 0.9


def stored(root: Path, twice: int) -> Store:
    """A store after a night: a list of people, of whom some are in it twice with errors."""
    store = open_store(root, {})
    record(store, observations(people(200, twice, 0), "person"), 1)
    assert night(store, 2).merged.counts["merges"] == 0
    return store


def answer(store: Store, verdicts: Sequence[str], at: int) -> None:
    """Answers the first open questions, in order."""
    asked = open_pairs(shard(store)).filter(~open_pairs(shard(store))["skipped"]).select("a", "b").rows()
    said = [(a, b, verdict) for (a, b), verdict in zip(asked, verdicts, strict=False)]
    decide(store, verdict_decisions(shard(store), said), at)


def announced(store: Store) -> list[tuple[int, int, int]]:
    """Likely pairs, answers that are needed, and other pairs that these confirm."""
    served = shard(store)
    sure = store.settings.policy.merge_probability
    found = answers_needed(served.transitions, open_pairs(served), sure)
    assert set(found["scope"]) <= set(served.topics["scope"])
    return found.select("likely", "answers", "others").rows()


def suggested(
    count: int, scope: str = "user:ines", probability: float = 0.97, value: float = SURE, skipped: bool = False
) -> pl.DataFrame:
    """Open pairs of one kind, as `open_pairs` lists them."""
    names = [f"{scope}-{probability}-{value}-{skipped}-{place:03}" for place in range(count)]
    said = {"scope": scope, "probability": probability, "value": value, "pair_kind": "field/", "skipped": skipped}
    return pl.DataFrame([said | {"a": f"{name}a", "b": f"{name}b"} for name in names])


def needed(*parts: pl.DataFrame, same: int = 0) -> list[tuple[str, int, int, int]]:
    """What is needed for open pairs after so many answers `same` about the first part, in the order of the queue."""
    waits, said = pl.concat(parts), parts[0].sort(drawn()).head(same)
    payload = pl.struct("a", "b", "probability", "value", "pair_kind").struct.json_encode()
    shown = waits.select("scope", kind=pl.lit("pair_suggested"), topic_id="a", payload_json=payload)
    verdict = pl.struct("a", "b", verdict=pl.lit("same"), actor=pl.lit("person")).struct.json_encode()
    judged = said.select("scope", kind=pl.lit("judged"), topic_id="a", payload_json=verdict)
    waits = waits.join(said, on=["a", "b"], how="anti")
    return answers_needed(filled(pl.concat([shown, judged]), TRANSITIONS), waits, SURE).rows()


def test_scopes_are_counted_by_themselves() -> None:
    found = needed(suggested(70, "user:noor"), suggested(100), suggested(30, "user:tess"))
    assert found == [("user:ines", 100, ENOUGH, 41), ("user:noor", 70, ENOUGH, 11)]
    found = needed(suggested(70, "user:noor"), suggested(100), same=9)
    assert found == [("user:ines", 100, ENOUGH, 41), ("user:noor", 61, ENOUGH - 9, 11)]


@pytest.mark.parametrize(
    "others",
    [
        {"skipped": True},
        {"probability": 0.7},
        {"value": 0.8},
        {"value": 4.0},
    ],
)
def test_only_likely_pairs_that_answers_may_confirm_count(others: Any) -> None:
    assert needed(suggested(70), suggested(20, **others)) == [("user:ines", 70, ENOUGH, 11)]


def test_answers_that_leave_no_other_pair_are_not_announced() -> None:
    assert needed(suggested(ENOUGH)) == []
    assert needed(suggested(ENOUGH + 1)) == [("user:ines", ENOUGH + 1, ENOUGH, 1)]


@pytest.mark.slow
def test_what_is_announced_is_what_a_night_merges(tmp_path: Path) -> None:
    store = stored(tmp_path, 75)
    assert announced(store) == [(75, ENOUGH, 75 - ENOUGH)]
    answer(store, ["same"] * 20, 3)
    assert announced(store) == [(55, ENOUGH - 20, 75 - ENOUGH)]
    answer(store, ["same"] * (ENOUGH - 20), 4)
    assert announced(store) == [(75 - ENOUGH, 0, 75 - ENOUGH)]
    assert night(store, 5).merged.counts["merges"] == 75 - ENOUGH
    assert announced(store) == []


@pytest.mark.slow
def test_nothing_is_announced_where_the_pairs_would_all_be_answered_before(tmp_path: Path) -> None:
    store = stored(tmp_path, 75)
    answer(store, ["different"], 3)
    assert announced(store) == []
    answer(store, ["skip", *["same"] * 3], 4)
    assert announced(store) == []


@pytest.mark.slow
def test_nothing_is_announced_without_likely_pairs(tmp_path: Path) -> None:
    assert announced(stored(tmp_path, 0)) == []
