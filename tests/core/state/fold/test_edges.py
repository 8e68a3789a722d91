"""When an edge is in force, by the code that decides and by the checks, which have a formula of their own."""

from __future__ import annotations

from datetime import datetime
from itertools import product
from pathlib import Path

import polars as pl

from memstate_core.model.frames import empty
from memstate_core.model.graph_tables import EDGES
from memstate_core.model.ledger_tables import DECISION
from memstate_core.state.fold.edges import edges_at
from memstate_core.state.graph import EDGE, open_graph
from tests.core.frames import filled
from tests.core.night.checks.checked_states import checked_state_of
from tests.core.strategies import BUFFER_MIB, day, evidence_frame, fill, folded, observation

NOW = 10
DAYS = (None, NOW - 1, NOW, NOW + 1)
SPANS = list(product(DAYS, DAYS))
IN_FORCE = {
    (None, None), (None, NOW + 1), (NOW - 1, None), (NOW - 1, NOW + 1), (NOW, None), (NOW, NOW + 1),
}  # fmt: skip
"""An end on the day itself is over, and so is what ended before it began."""


def test_it_begins_with_its_first_moment_and_has_ended_at_its_last(tmp_path: Path) -> None:
    names = [f"t{number:02}" for number in range(len(SPANS) + 1)]
    stream = [observation(number, topic_id=name) for number, name in enumerate(names)]
    spans = [[None if at is None else day(at) for at in span] for span in SPANS]
    rows = [(names[at], names[-1], "extends", *span) for at, span in enumerate(spans)]
    schema = ["from_id", "to_id", "kind", "valid_from", "valid_until"]
    edges = filled(pl.DataFrame(rows, orient="row", schema={name: EDGES[name] for name in schema}), EDGES)
    with open_graph(tmp_path / "graph.kuzu", buffer_mib=BUFFER_MIB) as graph:
        fill(graph, folded(stream))
        graph.insert(EDGE, edges)
        decides = edges_at(graph, day(NOW))
    assert {SPANS[names.index(name)] for name in decides["from_id"]} == IN_FORCE
    moment: datetime = day(NOW)
    checked = checked_state_of(tmp_path / "graph.kuzu", evidence_frame(stream), empty(DECISION), now=moment)
    assert set(checked.edges_in_force["from_id"]) == set(decides["from_id"])
