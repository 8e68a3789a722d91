"""Rules with thresholds of their own: they apply to the pairs that match them, the policy's to all others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstate_core.model.step_frames import REVIEW_BAND
from memstate_core.policy.rules import Rule
from memstate_core.policy.settings import Policy
from memstate_core.revise.matching.candidates.blocking import Candidates
from memstate_core.revise.thresholds import PairThresholds
from memstate_core.run.store import open_store
from tests.core.revise.nights import night, record, topics

SURE = Policy().merge_probability
RULE = '[[policy.rules]]\nname = "careful"\non = "nightly"\nwhen = "topic_kind == \'deal\'"\ndo = "merge"\n'


def thresholds(merge: float) -> PairThresholds:
    """A rule about deals, over two deals and two notes."""
    rule = Rule(name="careful", on="nightly", when="topic_kind == 'deal'", do="merge", merge_probability=merge)
    topics = pl.DataFrame({"id": ["a", "b", "c", "d"], "topic_kind": ["deal", "deal", "note", "note"]})
    return PairThresholds(SURE, 0.5, (rule,), topics["id"], topics)


PAIRS = Candidates(np.array([0, 2, 0]), np.array([1, 3, 2]), np.ones((3, 1), bool))


@given(st.floats(0.51, 0.999), st.floats(0.0, 1.0))
def test_a_pair_reaches_the_merge_probability_exactly_where_it_reaches_its_rules(
    merge: float, probability: float
) -> None:
    moved = thresholds(merge).decisive(PAIRS, np.full(3, probability))
    if abs(probability - merge) > 1e-9:
        assert (moved[0] >= SURE) == (probability >= merge)
    assert moved[1] == pytest.approx(probability, abs=1e-9)


def test_only_pairs_of_which_both_topics_fit_are_under_a_rule() -> None:
    merge, review = thresholds(0.99).of(PAIRS)
    assert merge.tolist() == [0.99, SURE, SURE]
    assert review.tolist() == [0.5] * 3


def test_without_rules_probabilities_are_as_they_were() -> None:
    plain = PairThresholds(SURE, 0.5)
    assert plain.decisive(PAIRS, np.array([0.1, 0.5, 0.9])).tolist() == [0.1, 0.5, 0.9]
    assert [bands.tolist() for bands in plain.of(PAIRS)] == [[SURE] * 3, [0.5] * 3]


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "merged", "shown"), [("", {"deal", "note"}, 0), (RULE, {"note"}, 1)])
def test_a_night_follows_the_rules_bands(tmp_path: Path, rule: str, merged: set[str], shown: int) -> None:
    """Two twins, of deals and of notes; the rule sends deals to review."""
    tmp_path.joinpath("memstate.toml").write_text(rule + "merge_probability = 1.0\n" * bool(rule))
    store = open_store(tmp_path, {})
    twins = {
        f"{kind}{number}": {"title": title, "topic_kind": kind, "summary": f"{title}: signed in May with the board"}
        for kind, title in (("deal", "Quartz lagoon harvest"), ("note", "Velvet anchor bridge"))
        for number in range(2)
    }
    others = {f"z{n}": {"title": f"Word{n} thing{n * 7}", "topic_kind": ("deal", "note")[n % 2]} for n in range(60)}
    record(store, twins | others, at=0)
    found = night(store, 0).found.frame
    gone = topics(store).filter(pl.col("state") == "merged")["title"].to_list()
    assert {"deal" if title.startswith("Quartz") else "note" for title in gone} == merged
    assert found.filter(pl.col("band") == REVIEW_BAND).height == shown
