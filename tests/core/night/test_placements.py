"""What the placement of new turns reads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from memstate_core.llm.extraction import Extraction, Topics, extract_turns
from memstate_core.night import placements
from memstate_core.run.store import open_store
from memstate_core.state.graph import Graph, open_graph
from tests.core.revise.nights import night, record

BEN = {"scope": {"type": "user", "id": "ben"}}


@pytest.mark.slow
def test_turns_are_compared_with_topics_of_their_own_scope_which_alone_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "memstate.toml").write_text('[embedding]\nmodel = "hashing"\n')
    store, read = open_store(tmp_path, {}), list[Topics]()

    def noted(*given: object) -> Extraction:
        read.append(given[3])  # type: ignore[arg-type]
        return extract_turns(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(placements, "extract_turns", noted)
    record(store, {"yard": {"title": "Old Ferry Yard"}, "boat": {"title": "Boat", **BEN}}, 0)
    night(store, 1)
    assert read == [], "no turn is new"
    said = {"text": "The boat is in the yard.", "session_id": "c", "actor": "Ben", "turn": 0, "placement": None}
    record(store, {"said": said | BEN}, 2)
    night(store, 3)
    (known,) = read
    assert known.vectors.scopes.to_list() == ["user:ben"]
    assert known.titles["title"].to_list() == ["Boat"]
    assert known.vectors.vectors.shape[0] == 1


@pytest.mark.slow
def test_a_night_without_new_turns_opens_no_graph_to_place_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "memstate.toml").write_text('[embedding]\nmodel = "hashing"\n')
    store, opened = open_store(tmp_path, {}), list[Path]()

    @contextmanager
    def noted(path: Path, **given: Any) -> Iterator[Graph]:
        opened.append(path)
        with open_graph(path, **given) as graph:
            yield graph

    monkeypatch.setattr(placements, "open_graph", noted)
    record(store, {"yard": {"title": "Old Ferry Yard"}}, 0)
    night(store, 1)
    assert opened == []
    record(store, {"said": {"text": "The yard is shut.", "session_id": "c", "turn": 0, "placement": None}}, 2)
    night(store, 3)
    assert len(opened) == 1
