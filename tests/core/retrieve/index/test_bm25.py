"""The term index computes BM25 by the formula, with the statistics of one scope."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstate_core.retrieve.index.bm25 import K1, B, Postings, runs_of, scope_layout, term_key, weigh, write_runs

WORDS = st.lists(st.sampled_from("abcdef"), max_size=8)


def write(folder, scopes):
    """Documents by scope (lists of terms) as an index of one field; answers the index and its layout."""
    documents = [(scope, terms) for scope, texts in sorted(scopes.items()) for terms in texts]
    layout = scope_layout(pl.DataFrame({"scope": [scope for scope, _ in documents]}, schema={"scope": pl.String}))
    rows = [(row, term, n) for row, (_, terms) in enumerate(documents) for term, n in Counter(terms).items()]
    counts = pl.DataFrame(rows, schema={"row": pl.UInt32, "term": pl.String, "n": pl.UInt32}, orient="row")
    counts = counts.select("row", "n", key=term_key(pl.col("term")))
    places = write_runs(folder, [runs_of(weigh(counts, layout, ["n"]), layout, ["n"])])
    return Postings(folder), {scope: (first, count) for scope, first, count in places.rows()}


def expected(texts, asked):
    """BM25 written out for one scope."""
    mean_length = sum(map(len, texts)) / len(texts)
    idf = {}
    for term in asked:
        frequency = sum(term in text for text in texts)
        idf[term] = math.log(1 + (len(texts) - frequency + 0.5) / (frequency + 0.5))
    scores = [
        sum(
            idf[term] * text.count(term) / (text.count(term) + K1 * (1 - B + B * len(text) / mean_length))
            for term in asked
            if term in text
        )
        for text in texts
    ]
    return [score / sum(idf.values()) for score in scores]


@given(
    scopes=st.dictionaries(st.sampled_from(["x", "y", "z"]), st.lists(WORDS, min_size=1, max_size=6), min_size=1),
    asked=st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=4, unique=True),
)
def test_every_scope_is_scored_by_its_own_statistics(tmp_path_factory, scopes, asked):
    postings, places = write(tmp_path_factory.mktemp("lexical") / "words", scopes)
    for scope, texts in scopes.items():
        first, count = places.get(scope, (0, 0))
        scores = postings.scores(asked, first=first, count=count, documents=len(texts))
        assert scores.shape == (len(texts), 1)
        assert scores[:, 0] == pytest.approx(expected(texts, asked), abs=1e-6)


def test_an_empty_index_and_an_empty_question_score_nothing(tmp_path):
    postings, places = write(tmp_path / "none", {})
    assert places == {}
    assert postings.scores(["a"], first=0, count=0, documents=0).shape == (0, 1)
    postings, _ = write(tmp_path / "some", {"x": [["a"], ["b"]]})
    assert not postings.scores([], first=0, count=2, documents=2).any()


def test_the_documents_with_any_of_some_terms_are_those_of_one_scope(tmp_path):
    postings, places = write(tmp_path / "words", {"x": [["a"], ["b"], ["a", "c"]], "y": [["d"], ["a"]]})
    rows = {
        scope: postings.rows(["a", "c", "none"], first=first, count=count) for scope, (first, count) in places.items()
    }
    assert {scope: found.tolist() for scope, found in rows.items()} == {"x": [0, 2], "y": [1]}
    first, count = places["x"]
    assert not len(postings.rows([], first=first, count=count))
    assert not len(postings.rows(["none"], first=first, count=count))


def test_counts_of_one_term_in_one_document_add_up():
    layout = pl.DataFrame({"scope": ["x"], "first": [0], "count": [2]})
    once = pl.DataFrame({"row": [0, 0, 1], "key": [7, 7, 7], "n": [1, 2, 3]}, schema_overrides={"key": pl.UInt64})
    weighed = weigh(once, layout, ["n"])
    assert weighed["row"].to_list() == [0, 1]
    assert np.ptp(weighed["n"].to_numpy()) == 0
