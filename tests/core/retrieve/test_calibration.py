"""Calibrated scores: between 0 and 1, never against the ranking, and comparable between kinds and scopes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstate_core.embed.model_tokenizer import TokenCounter
from memstate_core.model.forms.resource import Resource
from memstate_core.retrieve.calibration import Calibration, Moments
from memstate_core.retrieve.packs.context import EVIDENCE, TOPICS, context_pack
from memstate_core.retrieve.query import Question, answer
from tests.core.retrieve.conftest import Store, WordEncoder

COUNT = TokenCounter()
Opened = Callable[..., list[Any]]
SCORES = st.lists(st.floats(-50, 50), min_size=1, max_size=30)
HARBOUR = ("ferry", "bench", "crane", "lamp", "rope", "buoy", "anchor", "pier", "sail", "mast", "keel", "tide")


@given(scopes=st.lists(SCORES, min_size=1, max_size=3))
def test_calibrated_scores_are_shares_and_keep_the_order(scopes: list[list[float]]) -> None:
    calibrated = Calibration(Moments.of(np.array(scores), ["words", "vector"]) for scores in scopes)
    ranked = sorted(score for scores in scopes for score in scores)
    found = list(map(calibrated, ranked))
    assert all(0 <= score <= 1 for score in found)
    assert found == sorted(found)


@given(seed=st.integers(0, 2**16), freedom=st.sampled_from([1.0, 2.0, 30.0]))
def test_at_least_the_bounded_share_scores_lower(seed: int, freedom: float) -> None:
    """What is shown is the middle of the bound: a score of 0.9 exceeds at least 80 % of a kind (Cantelli)."""
    scores = np.random.default_rng(seed).standard_t(freedom, 200).tolist()
    calibrated = Calibration([Moments.of(np.array([*scores, *[0.0] * 10]), [])])  # the prior rows, as rows
    lower = [sum(other < score for other in scores) / len(scores) for score in scores]
    assert all(share >= 2 * calibrated(score) - 1 - 0.1 for score, share in zip(scores, lower, strict=True))


def test_one_row_is_judged_by_the_spread_of_unrelated_ones() -> None:
    low, high = (Calibration([Moments.of(np.array([score]), ["words", "evidence"])])(score) for score in (0.5, 20.0))
    assert low < 0.55
    assert high > 0.85


def resource(store: Store, topic_id: str, title: str, content: str) -> None:
    store.topic(topic_id, title=title, summary=content, topic_kind=Resource.topic_kind())
    store.field(topic_id, "uri", (1, f"docs/{topic_id}.md"))
    store.field(topic_id, "content", (1, content))


def scores(readers: list[Any], text: str, scopes: tuple[str, ...] = ("user:a",)) -> dict[str, float]:
    """The score of each topic, resource and turn of a pack, by what it cites."""
    found = answer(readers, WordEncoder(), None, Question(text, scopes, TOPICS, EVIDENCE, policy="auto"))  # type: ignore[arg-type]
    packed = context_pack(found, 10_000, COUNT, counted_by=COUNT.name)
    cited = [(each["citation"], each["score"]) for each in packed["items"] if each["kind"] not in ("summary", "field")]
    return {cite.get("observation_id") or cite["topic_id"]: score for cite, score in cited}


def test_an_exact_match_outranks_what_is_unrelated_whatever_the_kinds(store: Store, opened: Opened) -> None:
    for word in HARBOUR:
        store.topic(f"topic-{word}", title=f"The {word} of the harbour", summary=f"All about the {word}")
        store.says(f"topic-{word}", f"Someone painted a {word} green yesterday.", on=2)
    resource(store, "guide", "Mooring manual", "How a barge is moored at night")
    resource(store, "menu", "Lunch menu", "Soup and bread on Mondays")
    turn = store.says(None, "Captain Haddock prefers whisky.", on=3)
    readers = opened(store)
    manual = scores(readers, "Mooring manual: how a barge is moored at night")
    assert manual["guide"] > max(score for name, score in manual.items() if name != "guide")
    crane = scores(readers, "The crane of the harbour, all about the crane")
    assert crane["topic-crane"] > max(crane["guide"], crane["menu"], crane[turn])
    captain = scores(readers, "Captain Haddock prefers whisky")
    assert captain[turn] > max(score for name, score in captain.items() if name != turn)


@pytest.mark.parametrize("text", ["the crane of the harbour", "soup", "painted green yesterday", "nothing of the sort"])
def test_scores_never_invert_the_ranking_of_a_kind(store: Store, opened: Opened, text: str) -> None:
    """Also across scopes of different sizes: all are calibrated together."""
    for word in HARBOUR:
        store.topic(f"topic-{word}", title=f"The {word} of the harbour")
        store.says(f"topic-{word}", f"Someone painted a {word} green yesterday.", on=2)
    store.topic("soup", scope="user:b", title="Soup of the harbour crane")
    store.says("soup", "The soup was green.", on=2, scope="user:b")
    resource(store, "menu", "Lunch menu", "Soup and bread on Mondays")
    asked = Question(text, ("user:a", "user:b"), TOPICS, EVIDENCE, policy="auto")
    found = answer(opened(store), WordEncoder(), None, asked)  # type: ignore[arg-type]
    for part in ("candidates", "evidence"):
        relevances = [each["relevance"] for each in found[part]]
        assert relevances == sorted(relevances, reverse=True)
        assert len(set(relevances)) > 1
