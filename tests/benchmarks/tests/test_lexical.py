"""Our BM25 and that of bm25s score the same documents alike, scope by scope."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memstate_core.model.terms import question_terms
from memstate_core.retrieve.index.layout import scope_layout

texts = st.lists(st.sampled_from(["red", "kite", "painting", "painter", "tea", "7"]), min_size=1, max_size=9).map(
    " ".join
)
scopes = st.dictionaries(st.sampled_from(["user:a", "user:b"]), st.lists(texts, min_size=1, max_size=7), min_size=1)


@pytest.fixture(scope="module")
def script() -> Iterator[ModuleType]:
    """The script as a module; it is outside of any package, beside the modules that it imports."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parents[1]))
        yield import_module("lexical")


@pytest.mark.slow
@given(scopes=scopes, question=texts)
@settings(max_examples=50)
def test_one_index_of_bm25s_a_scope_gives_our_scores(
    script: ModuleType, tmp_path_factory: pytest.TempPathFactory, scopes: dict[str, list[str]], question: str
) -> None:
    root, asked = tmp_path_factory.mktemp("lexical"), question_terms(question)
    named = [(scope, text) for scope, found in sorted(scopes.items()) for text in found]
    rows = pl.DataFrame(named, schema=["scope", "text"], orient="row")
    layout = {scope: (first, count) for scope, first, count in scope_layout(rows).rows()}
    for kind in ("ours", "bm25s a scope"):
        script.build(kind, root / kind, rows)
    ours, theirs = (script.opened(kind, root / kind, layout) for kind in ("ours", "bm25s a scope"))
    for scope, found in scopes.items():
        bound = sum(_idf(term, found, script) for term in asked)
        assert ours(scope, asked) * bound == pytest.approx(theirs(scope, asked), abs=1e-5)


def _idf(term: str, found: list[str], script: ModuleType) -> float:
    frequency = sum(term in terms for terms in script.tokens(pl.Series("text", found)))
    return float(np.log(1 + (len(found) - frequency + 0.5) / (frequency + 0.5)))
