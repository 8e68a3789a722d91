"""Evidence that the history of a field superseded comes after what superseded it, and names it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memstate_core.model.graph_tables import REVISIONS
from memstate_core.retrieve.index.facts_files import SUPERSEDED_FILE, fact_problems
from memstate_core.retrieve.query import Question, answer
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.retrieve.scoring import STATES
from memstate_core.retrieve.superseded import statements, superseded_evidence
from memstate_core.state.graph import open_graph
from tests.core.frames import filled
from tests.core.retrieve.conftest import Store, day

Opened = Callable[[Store], SnapshotReader]
ASKED = "Where does Ines live?"
CHATTER = ("Where does the train to the harbour leave?", "Where does it rain?", "Where does the lamp go?",
           "Where does Bo work?", "Where does the cat sleep?", "Where does the road end?")  # fmt: skip


def revisions(*rows: dict[str, Any]) -> pl.DataFrame:
    schema = {name: REVISIONS[name] for name in rows[0]}
    return filled(pl.DataFrame(rows, schema=schema), REVISIONS)


def revision(rank: int, *evidence: str, name: str = "home", **given: Any) -> dict[str, Any]:
    own = {"id": f"{name}/{rank}", "topic_id": "ines", "part": "field", "name": name, "rank": rank}
    return own | {"evidence_ids": list(evidence), "rivals": None, "settled_at": None} | given


def test_evidence_of_earlier_values_only_is_superseded() -> None:
    found = superseded_evidence(
        revisions(
            revision(0, "c"), revision(1, "b", "c"), revision(2, "a"), revision(1, "t", name="summary", part="topic")
        )
    )
    assert found.rows() == [("ines", "home", "a"), ("ines", "home", "b")]


def test_evidence_that_states_another_current_value_is_not_superseded() -> None:
    found = superseded_evidence(revisions(revision(0, "c"), revision(1, "a"), revision(0, "a", name="job")))
    assert found.is_empty()


def test_what_a_segment_is_supersedes_nothing_and_keeps_nothing_current() -> None:
    segment = [
        revision(0, "c", "a", name="participants"),
        revision(0, "c", name="period"),
        revision(1, "a", name="period"),
    ]
    assert superseded_evidence(revisions(*segment)).is_empty()
    said = superseded_evidence(revisions(*segment, revision(0, "c"), revision(1, "a")))
    assert said.rows() == [("ines", "home", "a")]


@pytest.mark.parametrize(("settled", "expected"), [(None, []), (day(9), ["b"])])
def test_evidence_in_open_conflict_with_the_current_value_is_not_superseded(settled: Any, expected: list[str]) -> None:
    found = superseded_evidence(revisions(revision(0, "c", rivals=["home/1"], settled_at=settled), revision(1, "b")))
    assert found["evidence_id"].to_list() == expected


def test_the_last_statement_of_the_current_value_supersedes() -> None:
    history = revisions(revision(0, "c", "d"), revision(1, "a", "gone"))
    found = statements(superseded_evidence(history), history, pl.Series(["a", "b", "c", "d"]))
    assert found.superseding.tolist() == [3, -1, -1, -1]
    assert found.stating.tolist() == [True, False, True, True]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    with ExitStack() as stack:
        yield lambda store: stack.enter_context(SnapshotReader(store.publish(tmp_path / "snapshots" / "s0" / "3")))


@pytest.fixture
def moved(store: Store) -> Store:
    """Ines lived in Oslo and moved to a place whose name no question has; her turns are the third and the last."""
    store.topic("ines", title="Ines")
    store.topic("chatter", title="Chatter")
    store.field("ines", "home", (8, "Lyon"), (1, "Oslo"))
    for on, text in enumerate(CHATTER[:2]):
        store.says("chatter", text, on=on)
    old = store.says("ines", "Ines: where I live? In Oslo I live.", on=2)
    for on, text in enumerate(CHATTER[2:], 3):
        store.says("chatter", text, on=on)
    new = store.says("ines", "Boxes everywhere, greetings from Lyon.", on=8)
    for rank, evidence_id in enumerate((new, old)):
        store.revisions[rank]["evidence_ids"] = [evidence_id]
    return store


def asked(reader: SnapshotReader, store: Store, text: str = ASKED, **given: Any) -> list[dict[str, Any]]:
    found = answer([reader], store.encoder, None, Question(text, ("user:a",), **given))["evidence"]
    return [*found]


def test_what_superseded_a_statement_comes_before_it_from_wherever_it_ranks(moved: Store, opened: Opened) -> None:
    reader = opened(moved)
    ids = [each["observation_id"] for each in asked(reader, moved)]
    assert ids[:2] == ["o0007", "o0002"]
    [old] = [each for each in asked(reader, moved) if each["observation_id"] == "o0002"]
    assert old["replaced_by"] == "o0007"
    scores = [each["score"] for each in asked(reader, moved)]
    assert scores == sorted(scores, reverse=True)
    assert sorted(ids) == sorted(set(ids))
    assert asked(reader, moved, evidence_k=1)[0]["observation_id"] == "o0007"


@pytest.mark.parametrize(("stating", "doubted"), [(2, []), (1, ["o0000"])])
def test_a_value_that_holds_is_doubted_by_no_turn_that_states_another(
    opened: Opened, stating: int, doubted: list[str]
) -> None:
    store = Store()
    store.topic("ines", title="Ines")
    for at, (name, text) in enumerate((("home", "I live in Oslo town"), ("job", "I live in Oslo town for a job now"))):
        said = store.says("ines", text, actor="Ines", session_id=name, turn=1, on=at)
        if at < stating:
            store.field("ines", name, (at, "x"))
            store.revisions[-1]["evidence_ids"] = [said]
    assert [each["observation_id"] for each in asked(opened(store), store) if "replaced_by" in each] == doubted


def test_a_question_for_what_was_keeps_its_order(moved: Store, opened: Opened) -> None:
    found = asked(opened(moved), moved, "Where did Ines live?")
    assert found[0]["observation_id"] == "o0002"
    assert "replaced_by" not in found[0]


def test_a_statement_of_an_archived_topic_supersedes_nothing(moved: Store, opened: Opened) -> None:
    moved.topics[0] |= {"state": "archived", "archived": True}
    assert not {"o0002", "o0007"} & {each["observation_id"] for each in asked(opened(moved), moved)}


def test_a_snapshot_without_the_file_answers_by_meaning_and_has_no_problem(moved: Store, opened: Opened) -> None:
    reader = opened(moved)
    folder = reader.snapshot.path
    with open_graph(folder / "graph.kuzu", read_only=True) as graph:
        assert fact_problems(folder, graph) == []
        rows = pl.read_parquet(folder / SUPERSEDED_FILE)
        assert rows["evidence_id"].to_list() == ["o0002"]
        rows.clear().write_parquet(folder / SUPERSEDED_FILE)
        assert fact_problems(folder, graph) == ["facts/superseded.parquet differs from the graph"]
        (folder / SUPERSEDED_FILE).unlink()
        places = pl.read_parquet(folder / "facts" / "places.parquet")
        places.drop("superseded_first", "superseded_count").write_parquet(folder / "facts" / "places.parquet")
        assert fact_problems(folder, graph) == []
    reader.snapshot.manifest.files.pop(SUPERSEDED_FILE)
    assert {"o0002"} <= {each["observation_id"] for each in asked(reader, moved)}


def test_as_of_a_moment_only_what_was_said_by_then_supersedes(moved: Store, opened: Opened) -> None:
    stated = {"o0002": '"Oslo"', "o0007": '"Lyon"'}
    topics = [{"scope": "user:a", "topic_id": each["id"], "title": each["title"], "observed_at": day(0)}
              for each in moved.topics]  # fmt: skip
    moved.observed = topics + [
        row | ({"fields": [{"name": "home", "value_json": stated[row["evidence_id"]]}]} if row["evidence_id"] in stated
               else {})
        for row in moved.evidence
    ]  # fmt: skip
    reader = opened(moved)
    then, later = (asked(reader, moved, as_of=day(number)) for number in (5, 10))
    assert then[0]["observation_id"] == "o0002"
    assert "replaced_by" not in then[0]
    assert [each["observation_id"] for each in later[:2]] == ["o0007", "o0002"]


def test_a_turn_that_states_a_value_is_found_by_what_its_topic_is_called(moved: Store, opened: Opened) -> None:
    moved.topics[0] |= {"title": "The dwelling of Ines"}
    moved.says("ines", "Greetings to all of you again.", on=9)
    reader = opened(moved)
    found = asked(reader, moved, "dwelling?", evidence_k=20, explain=True)
    gains = {each["observation_id"]: each["explain"]["parts"]["topic_text"] for each in found}
    assert [name for name, gain in gains.items() if gain > 0] == ["o0007", "o0002"]
    assert found[0]["observation_id"] == "o0007"
    assert gains["o0008"] == gains["o0000"] == 0.0
    assert gains["o0007"] > STATES


def test_a_turn_that_states_a_value_comes_before_one_like_it_that_states_none(store: Store, opened: Opened) -> None:
    store.topic("ines", title="Ines")
    store.field("ines", "home", (0, "Oslo"))
    plain, stating = (store.says("ines", "I live in Oslo town", session_id=each, turn=1) for each in "ab")
    store.revisions[-1]["evidence_ids"] = [stating]
    first, last = asked(opened(store), store, "Did Ines live in Oslo?")
    assert [first["observation_id"], last["observation_id"]] == [stating, plain]


def test_where_nothing_states_a_value_topics_add_nothing(store: Store, opened: Opened) -> None:
    store.topic("ines", title="The dwelling of Ines")
    store.says("ines", "Boxes everywhere.")
    [found] = asked(opened(store), store, "dwelling?", explain=True)
    assert "topic_text" not in found["explain"]["parts"]
