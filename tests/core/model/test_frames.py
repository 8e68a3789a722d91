"""Declared columns: a frame that has others, or lacks some, is refused with a message that says which."""

from __future__ import annotations

import pickle
from pathlib import Path

import polars as pl
import pytest

from memstate_core.model.errors import FrameMismatch
from memstate_core.model.frames import conform, empty, project, symmetric_difference
from memstate_core.model.ledger_tables import DECISION
from memstate_core.model.step_frames import ALIASES, PLACEMENTS
from memstate_core.state.graph import REVIEW, open_graph
from memstate_core.state.ledger.ledger import Ledger
from tests.core.strategies import BUFFER_MIB, begin

ROW = pl.DataFrame({"topic_id": ["t"], "alias": ["a"], "scope": ["user:aya"]})


def test_order_and_types_are_the_declared_ones() -> None:
    assert conform(ROW, ALIASES).columns == list(ALIASES)
    numbered = conform(ROW.with_columns(scope=pl.lit(None)), ALIASES)
    assert dict(numbered.schema) == ALIASES


@pytest.mark.parametrize(
    ("frame", "missing", "unknown"),
    [
        (ROW.drop("scope"), ["scope"], []),
        (ROW.with_columns(more=pl.lit(1)), [], ["more"]),
        (ROW.rename({"alias": "allias"}), ["alias"], ["allias"]),
        (pl.DataFrame(), ["alias", "scope", "topic_id"], []),
    ],
    ids=["missing", "unknown", "misspelt", "empty"],
)
def test_a_missing_or_unknown_column_is_refused(frame: pl.DataFrame, missing: list[str], unknown: list[str]) -> None:
    with pytest.raises(FrameMismatch) as refused:
        conform(frame, ALIASES)
    assert (refused.value.facts["missing"], refused.value.facts["unknown"]) == (missing, unknown)
    assert all(name in refused.value.message for name in [*missing, *unknown, *ALIASES])
    assert "memstate rebuild" in refused.value.message


def test_the_error_survives_pickling() -> None:
    error = FrameMismatch(["a"], ["b"], ["b"], ["a"])
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.message, again.facts) == (FrameMismatch, error.message, error.facts)


def test_a_projection_drops_what_is_not_declared_and_fills_what_it_names() -> None:
    wide = ROW.with_columns(more=pl.lit(1))
    assert project(wide, ALIASES).equals(conform(ROW, ALIASES))
    assert project(wide.select(reversed(wide.columns)), ALIASES).columns == list(ALIASES)
    assert dict(project(wide.with_columns(scope=pl.lit(None)), ALIASES).schema) == ALIASES
    narrow = project(ROW.drop("alias"), ALIASES, nulls=["alias"])
    assert narrow.rows() == [(None, "user:aya", "t")]
    with pytest.raises(FrameMismatch, match="lacks scope:"):
        project(ROW.drop("alias", "scope"), ALIASES, nulls=["alias"])


def test_a_table_of_a_run_that_lacks_a_column_is_refused_where_it_is_read(tmp_path: Path) -> None:
    run = begin(tmp_path / "run")
    run.keep_table("placements", empty(PLACEMENTS).drop("scope"))
    with pytest.raises(FrameMismatch, match="lacks scope"):
        run.table("placements", PLACEMENTS)


def test_a_decision_that_lacks_its_reason_is_not_kept(tmp_path: Path) -> None:
    with pytest.raises(FrameMismatch, match="lacks reason"):
        begin(tmp_path / "run").decide("topics", empty(DECISION).drop("reason"))


def test_the_ledger_takes_no_row_with_an_unknown_column(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    with ledger.writing("a test"), pytest.raises(FrameMismatch, match="has unknown more"):
        ledger.append("transitions", pl.DataFrame({"seq": [0], "more": [1]}), "test")
    assert ledger.version("transitions") is None


def test_the_graph_takes_no_row_that_lacks_a_column(tmp_path: Path) -> None:
    with open_graph(tmp_path / "graph", buffer_mib=BUFFER_MIB) as graph:
        for write in (graph.insert, graph.sync):
            with pytest.raises(FrameMismatch, match="lacks topic_id"):
                write(REVIEW, empty(REVIEW.schema).drop("topic_id"))


def test_the_symmetric_difference_compares_the_columns_of_the_first_frame() -> None:
    one = pl.DataFrame({"id": ["a", "b", "c", "d"], "cites": [["x"], None, ["y"], ["x", "y"]]})
    other = pl.DataFrame({"cites": [["x"], None, ["z"]], "beside": [1, 2, 3], "id": ["a", "b", "c"]})
    odd = symmetric_difference(one, other)
    assert odd.sort("id", "cites").rows() == [("c", ["y"]), ("c", ["z"]), ("d", ["x", "y"])]
    assert symmetric_difference(one, one).is_empty()
