"""The last wording of an edited message takes the place of the best one, in any language and for any question."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from memstate_core.retrieve.query import Question, answer
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.retrieve.turns.edits import exchanged, last_wordings
from tests.core.retrieve.conftest import Store

TS = "slack/C1/1767300000.000100"


def test_all_wordings_of_a_message_lead_to_the_last_one() -> None:
    ids = [f"{TS}/edited-9.5", TS, f"{TS}/edited-10", "slack/C2/1", "slack/C2/2/edited-3", "a/b", "a/b/edited-3"]
    assert last_wordings(pl.Series(ids)).tolist() == [2, 2, -1, -1, -1, -1, -1]
    assert last_wordings(pl.Series([], dtype=pl.String)).tolist() == []


@pytest.mark.parametrize(
    ("seen", "expected"),
    [([True, True, True], [5, 1, 9, 3]), ([True, False, True], [1, 9, 5, 3]), ([True, True, False], [5, 9, 1, 3])],
)
def test_the_last_wording_exchanges_places_with_the_best_that_is_seen(seen: list[bool], expected: list[int]) -> None:
    last, scores = np.array([2, 2, -1, -1]), np.array([5.0, 9.0, 1.0, 3.0])
    assert (scores + exchanged(last, scores, np.array([*seen, True]))).tolist() == expected


@pytest.mark.parametrize("question", ["When is the deploy window?", "Wann ist das Fenster, deploy window Tuesday?"])
def test_what_was_edited_comes_after_its_last_wording_and_names_it(store: Store, tmp_path: Path, question: str) -> None:
    store.topic("window", title="Window")
    for name, day in (("", "Tuesday"), ("/edited-1767303600.000000", "Thursday")):
        store.says("window", f"The deploy window is {day}.", session_id="s", observation_id=TS + name)
    store.says("window", "Something else altogether.", session_id="s")
    with SnapshotReader(store.publish(tmp_path / "snapshots" / "s0" / "3")) as reader:
        found = answer([reader], store.encoder, None, Question(question, ("user:a",)))["evidence"]
    ids = [each["observation_id"] for each in found if each["observation_id"].startswith(TS)]
    assert ids == [f"{TS}/edited-1767303600.000000", TS]
    assert [each["replaced_by"] for each in found if "replaced_by" in each] == [f"{TS}/edited-1767303600.000000"]
