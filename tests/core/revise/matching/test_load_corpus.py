"""The corpus that is loaded from a working graph and a ledger."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from memstate_core.model.graph_tables import VECTORS
from memstate_core.revise.matching.corpus import Corpus
from memstate_core.revise.matching.load_corpus import load_corpus
from memstate_core.run.store import open_store
from memstate_core.state.graph import TOPIC, VECTOR, open_graph
from tests.core.frames import filled
from tests.core.reference import Observation
from tests.core.strategies import BUFFER_MIB, SCOPES, begin, day, evidence_frame, field, fill, folded, observation


def deal(number: int, **content: Any) -> Observation:
    """An observation with a topic of its own, titled as all of them."""
    plain = {"placement": "new_topic", "title": "Acme renewal", "topic_kind": "deal"}
    return observation(number, **(plain | content))


def gathered(home: Path, stream: Sequence[Observation], archived: Sequence[int] = ()) -> Corpus:
    """The corpus of a graph folded from a stream over a real ledger.

    Args:
        home: the folder of the store.
        stream: the evidence.
        archived: which topics, in the order of their ids, were archived.
    """
    store = open_store(home, {})
    with store.ledger.writing("test"):
        store.ledger.append("evidence", evidence_frame(stream), "import/1")
    run = begin(home / "work", evidence_version=store.ledger.version("evidence"))
    state = folded(stream)
    run.keep_table("links", state.evidence_topic)
    gone = state.topics["id"].sort().gather([*archived])
    with open_graph(run.graph, buffer_mib=BUFFER_MIB) as graph:
        fill(graph, state)
        graph.insert(VECTOR, vectors(state.topics))
        graph.update(TOPIC, pl.DataFrame({"id": gone, "state": "archived", "archived": True}))
    return load_corpus(store, run)


def vectors(topics: pl.DataFrame) -> pl.DataFrame:
    """A direction for each topic that has a summary: the one that its length names."""
    described = topics.filter(pl.col("summary").is_not_null())
    directions = np.eye(VECTORS["embedding"].size, dtype=np.float32)  # type: ignore[union-attr]
    embedding = pl.Series(directions[described["summary"].str.len_chars().to_numpy()], dtype=VECTORS["embedding"])
    return filled(described.select("id", "text_hash", model=pl.lit("none")).with_columns(embedding=embedding), VECTORS)


def values(corpus: Corpus) -> list[tuple[str, str]]:
    return corpus.fields.select("name", "text").rows()


def test_topics_come_in_the_order_of_scope_and_id_with_what_they_say(tmp_path: Path) -> None:
    stream = [deal(number, scope=SCOPES[number % 2], summary="x" * number) for number in range(5)]
    corpus = gathered(tmp_path, stream)
    assert corpus.topics.columns == ["id", "scope", "title", "summary", "topic_kind", "created_at"]
    assert corpus.topics.equals(corpus.topics.sort("scope", "id"))
    assert corpus.topics["scope"].to_list() == [SCOPES[1]] * 2 + [SCOPES[0]] * 3
    assert corpus.vectors.argmax(axis=1).tolist() == corpus.topics["summary"].str.len_chars().to_list()


def test_a_topic_without_a_vector_has_zeros(tmp_path: Path) -> None:
    corpus = gathered(tmp_path, [deal(1), deal(2, summary="Signed")])
    assert sorted(np.linalg.norm(corpus.vectors, axis=1).tolist()) == [0, 1]


def test_an_empty_store_gives_an_empty_corpus(tmp_path: Path) -> None:
    corpus = gathered(tmp_path, [])
    assert (len(corpus), corpus.vectors.shape) == (0, (0, 384))
    assert corpus.fields.is_empty()
    assert corpus.sources.is_empty()


def test_an_archived_topic_is_no_candidate(tmp_path: Path) -> None:
    stream = [deal(1, topic_key="acme", fields=[field("owner", '"Aya"')]), deal(2, source_uri="crm")]
    whole, less = (gathered(tmp_path / str(len(gone)), stream, gone) for gone in ([], [0, 1]))
    assert (len(whole), whole.fields.height, whole.sources.height, whole.keys.height) == (2, 1, 1, 1)
    assert (len(less), less.fields.height, less.sources.height, less.keys.height) == (0, 0, 0, 0)


def test_only_current_values_are_compared(tmp_path: Path) -> None:
    """It was Ben's, until it became Aya's."""
    stream = [deal(1, fields=[field("owner", '"Ben"', valid_from=day(-5)), field("owner", '"Aya"')])]
    assert values(gathered(tmp_path, stream)) == [("owner", "Aya")]


@pytest.mark.parametrize(
    ("value_json", "text", "number"),
    [('"1999"', "1999", 1999), ("1999.0", "1999.0", 1999), ('"a \\"b\\""', 'a "b"', None), ('["a"]', '["a"]', None)],
)
def test_values_are_their_text_and_their_number(
    tmp_path: Path, value_json: str, text: str, number: float | None
) -> None:
    corpus = gathered(tmp_path, [deal(1, fields=[field("x", value_json)])])
    assert corpus.fields.rows() == [(0, "x", text, number, None)]


@pytest.mark.parametrize(("kind", "days"), [("date", 1), ("datetime", 1), ("string", 1)])
def test_a_date_is_a_day_whatever_the_type_of_its_field(tmp_path: Path, kind: str, days: float | None) -> None:
    corpus = gathered(tmp_path, [deal(1, fields=[field("x", '"1970-01-02"', field_type=kind)])])
    assert corpus.fields["day"].to_list() == [days]


def test_a_null_value_is_no_value(tmp_path: Path) -> None:
    assert values(gathered(tmp_path, [deal(1, fields=[field("owner", "null")])])) == []


@pytest.mark.parametrize(
    ("named", "sources"),
    [(["crm", "crm"], ["crm"]), (["crm", "erp"], ["crm", "erp"]), (["crm", None], []), ([None, None], [])],
)
def test_sources_are_those_of_topics_all_of_whose_evidence_names_one(
    tmp_path: Path, named: list[str | None], sources: list[str]
) -> None:
    stream = [
        observation(number, topic_key="acme", title="Acme", source_uri=source) for number, source in enumerate(named)
    ]
    corpus = gathered(tmp_path, stream)
    assert corpus.sources.rows() == [(0, source) for source in sources]
    assert corpus.keys.rows() == [(0, "acme")]
