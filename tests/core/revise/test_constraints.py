"""Cannot-link constraints: verdicts, undone merges, keys; and the verdicts that reach the fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from memstate_core.model.step_frames import EVIDENCE_TOPIC
from memstate_core.revise.constraints import RENEWED, Constraints, constraints
from memstate_core.revise.matching.candidates.blocking import Candidates
from memstate_core.revise.matching.corpus import Corpus
from tests.core.revise.matching.corpora import corpus, every_pair
from tests.core.revise.test_verdicts import judged, ledger, merged, unmerged

NAMES = ("a", "b", "c", "d")


def named(*names: str, keys: dict[str, list[str]] | None = None) -> Corpus:
    return corpus([{"id": name, "title": "Acme", "keys": (keys or {}).get(name, [])} for name in names])


def links(**evidence: str) -> pl.DataFrame:
    rows = [{"evidence_id": name, "scope": "user:aya", "topic_id": topic} for name, topic in evidence.items()]
    return pl.DataFrame(rows, schema=EVIDENCE_TOPIC)


def limits(*rows: tuple[Any, ...], **evidence: str) -> Constraints:
    return constraints(ledger(*rows), links(**evidence))


def apart(known: Constraints, of: Corpus, weight: float = 0.0, pairs: Candidates | None = None) -> set[str]:
    """Pairs that are kept apart at a logit, as the two ids together."""
    pairs = every_pair(of) if pairs is None else pairs
    ids = of.topics["id"].to_list()
    kept = known.apart(of, pairs, np.full(len(pairs), weight))
    return {ids[a] + ids[b] for a, b, out in zip(pairs.a, pairs.b, kept, strict=True) if out}


def test_without_decisions_and_keys_nothing_is_kept_apart() -> None:
    assert apart(limits(), named(*NAMES)) == set()
    assert apart(limits(), corpus([])) == set()


# Verdicts


def test_what_was_judged_different_is_kept_apart_however_sure_the_model_is() -> None:
    known = limits(judged("a", "b", "different"), judged("b", "c", "same"), judged("c", "d", "skip"))
    assert apart(known, named(*NAMES), weight=25.0) == {"ab"}


def test_the_verdict_holds_for_the_topic_that_answers_for_one_side() -> None:
    known = limits(judged("b", "c", "different"), merged("b", "a"))
    assert apart(known, named("a", "c", "d")) == {"ac"}


def test_the_verdict_follows_both_sides_through_chains_of_merges() -> None:
    rows = [judged("b", "x", "different"), merged("b", "c"), merged("c", "d"), merged("x", "a")]
    assert apart(limits(*rows), named("a", "d")) == {"ad"}


def test_the_verdict_falls_back_to_the_topic_that_came_back() -> None:
    known = limits(judged("b", "c", "different"), merged("b", "a", 3.0), unmerged("b", "a", weight=3.0))
    assert apart(known, named("a", "b", "c"), weight=25.0) == {"ab", "bc"}


def test_topics_that_are_gone_and_pairs_that_are_no_candidates_do_not_matter() -> None:
    of = named("a", "b", "d")
    known = limits(judged("a", "c", "different"), judged("x", "y", "different"), judged("a", "d", "different"))
    only = Candidates(np.array([0]), np.array([1]), np.ones((1, 3), bool))
    assert apart(known, of) == {"ad"}
    assert apart(known, of, pairs=only) == set()


def test_a_replaced_verdict_of_different_is_forgotten() -> None:
    assert apart(limits(judged("a", "b", "different"), judged("a", "b", "same")), named("a", "b")) == set()


# Undone merges

UNDONE = (merged("b", "a", 4.0), unmerged("b", "a", "e1", "e2", weight=4.0))
CLEAR, SLIGHT = 4.0 + RENEWED + 0.01, 4.0 + RENEWED - 0.01


@pytest.mark.parametrize(
    ("evidence", "weight", "kept"),
    [
        ({"e1": "a", "e2": "b"}, SLIGHT, True),
        ({"e1": "a", "e2": "b"}, CLEAR, True),
        ({"e1": "a", "e2": "b", "e3": "c"}, CLEAR, True),
        ({"e1": "a", "e2": "b", "e3": "a"}, SLIGHT, True),
        ({"e1": "a", "e2": "b", "e3": "a"}, CLEAR, False),
        ({"e1": "a", "e2": "b", "e3": "b"}, CLEAR, False),
    ],
    ids=["nothing new", "surer only", "news elsewhere", "news only", "surer with news", "news of the other"],
)
def test_an_undone_merge_needs_news_and_a_clearly_higher_weight(
    evidence: dict[str, str], weight: float, kept: bool
) -> None:
    assert apart(limits(*UNDONE, **evidence), named("a", "b", "c"), weight) == ({"ab"} if kept else set())


def test_a_merge_that_a_person_made_and_took_back_is_never_renewed() -> None:
    known = limits(merged("b", "a"), unmerged("b", "a", "e1"), e1="a", e3="b")
    assert apart(known, named("a", "b"), weight=25.0) == {"ab"}


def test_news_of_an_undone_pair_is_news_though_a_later_undoing_of_another_knew_it() -> None:
    """`e3` was added to `a` after it was separated from `b`, and before it was separated from `c`."""
    later = (merged("c", "a", 4.0), unmerged("c", "a", "e1", "e3", "e4", weight=4.0))
    known = limits(*UNDONE, *later, e1="a", e2="b", e3="a", e4="c")
    assert dict(zip(known.undone["b"], known.undone["renewed"], strict=True)) == {"b": True, "c": False}


def test_an_undone_merge_follows_the_topic_that_answers_for_one_side() -> None:
    known = limits(*UNDONE, merged("a", "c"), e1="c", e2="b", e3="c")
    assert apart(known, named("b", "c"), SLIGHT) == {"bc"}
    assert apart(known, named("b", "c"), CLEAR) == set()


def test_a_pair_judged_different_stays_apart_whatever_is_renewed() -> None:
    known = limits(*UNDONE, judged("a", "b", "different"), e1="a", e2="b", e3="a")
    assert apart(known, named("a", "b"), CLEAR) == {"ab"}


# Keys


@pytest.mark.parametrize(
    ("keys", "kept"),
    [
        ({"a": ["crm/1"], "b": ["crm/2"]}, True),
        ({"a": ["crm/1"], "b": ["crm/1"]}, False),
        ({"a": ["crm/1"]}, False),
        ({"a": ["crm/1", "erp/9"], "b": ["erp/9", "crm/2"]}, False),
        ({"a": ["crm/1", "erp/9"], "b": ["crm/2"]}, True),
    ],
)
def test_topics_whose_keys_all_differ_are_different(keys: dict[str, list[str]], kept: bool) -> None:
    of = named("a", "b", keys=keys)
    assert apart(limits(), of, weight=25.0) == ({"ab"} if kept else set())
    assert limits().different(of, every_pair(of)).tolist() == [kept]


def test_an_undone_merge_is_kept_apart_but_is_not_known_to_be_different() -> None:
    of = named("a", "b")
    assert not limits(*UNDONE).different(of, every_pair(of)).any()
    assert limits(judged("a", "b", "different")).different(of, every_pair(of)).all()
