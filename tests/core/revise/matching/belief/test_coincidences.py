"""Pairs that are equal by chance are left to people, and duplicates are merged as far as a store can show them."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.special import pdtr

from memstate_core.model.frames import empty
from memstate_core.model.step_frames import EVIDENCE_TOPIC
from memstate_core.revise.constraints import constraints
from memstate_core.revise.matching.belief.chance import Chance, chance_of
from memstate_core.revise.matching.belief.coincidences import Coincidences, _seldom, _title_codes, coincidences
from memstate_core.revise.matching.candidates.blocking import Candidates
from memstate_core.revise.matching.comparison.parts import agreements, counted, parts_of, sampled
from memstate_core.revise.matching.comparison.sources import Origins
from memstate_core.revise.matching.corpus import Corpus
from memstate_core.revise.matching.deduplication import Deduplicated
from memstate_core.revise.matching.earlier_merges import MERGED_PARTS, EarlierMerges
from tests.core.revise.matching.corpora import corpus, dedupe
from tests.core.revise.matching.families import Store, Topic
from tests.core.revise.matching.namesakes import (
    KINDS,
    counted_pairs,
    facts,
    noted_again,
    people,
    products,
    residents,
)
from tests.core.revise.test_verdicts import judged, ledger


def of_store(made: Store) -> Corpus:
    return corpus([{"id": f"t{number:05}", **topic} for number, topic in enumerate(made.topics)])


def deduplicated(made: Store) -> Deduplicated:
    return dedupe([{"id": f"t{number:05}", **topic} for number, topic in enumerate(made.topics)])


def equal_pairs(of: Corpus) -> Candidates:
    """All pairs with the same title in which nothing differs."""
    sample = sampled(_title_codes(of))
    seen = agreements(of, parts_of(of), sample.a, sample.b)
    same = counted(seen.filter(~pl.col("agree")), len(sample.a)) == 0
    return Candidates(sample.a, sample.b, np.ones((len(sample.a), 3), bool)).where(same)


def none_distinct(of: Corpus) -> Origins:
    return Origins(csr_matrix((len(of), 1)), np.ones(1))


def found_in(of: Corpus, earlier: EarlierMerges | None = None, apart: NDArray[np.bool_] | None = None) -> Coincidences:
    pairs = equal_pairs(of)
    every, nothing = np.ones(len(pairs), bool), np.zeros(len(pairs), bool)
    kept_apart = nothing if apart is None else apart
    before = earlier or EarlierMerges.none(len(of))
    origins = none_distinct(of)
    return coincidences(of, pairs, every & ~kept_apart, every, kept_apart, origins, origins.relations(pairs), before)


def chance_in(of: Corpus) -> Chance:
    titles = _title_codes(of)
    found = chance_of(of, parts_of(of), titles)
    assert found is not None
    return found


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5])
def test_of_what_is_merged_nineteen_in_twenty_are_duplicates(rate: float) -> None:
    """In all kinds of stores together; in each, no more are wrong than chance gives at that rate once in a thousand."""
    counts = {}
    for name, kind in KINDS.items():
        made = noted_again(kind, 700, rate, seed=5)
        counts[name] = counted_pairs(made, deduplicated(made).groups)
    refuted = {name: of for name, of in counts.items() if pdtr(of[0] - of[1] - 1, 0.05 * of[0]) > 0.999}
    merged, right = np.sum([*counts.values()], axis=0)
    assert not refuted
    assert right >= 0.95 * merged
    assert merged > 0 or rate < 0.5


@pytest.mark.parametrize("rate", [0.02, 0.5])
def test_what_an_agent_noted_twice_is_merged(rate: float) -> None:
    made = noted_again(facts, 500, rate, seed=3, error=0.0)
    assert counted_pairs(made, deduplicated(made).groups) == (500 * rate, 500 * rate)


def test_duplicates_among_namesakes_are_merged_where_fields_separate_people() -> None:
    made = noted_again(people(30, 20, 60, 12), 700, 0.2, seed=4, error=0.0)
    merged, right = counted_pairs(made, deduplicated(made).groups)
    assert (merged, right) == (140, 140)


def test_a_store_without_namesakes_has_no_coincidences() -> None:
    found = found_in(of_store(noted_again(facts, 300, 0.2, seed=3, error=0.0)))
    assert not found.doubtful.any()
    assert found.expected == 0
    assert found.share == 1, "nothing shows it"


@pytest.mark.slow
@given(st.lists(st.integers(2, 40), min_size=1, max_size=5), st.integers(0, 1000))
@settings(max_examples=25, deadline=None)
def test_no_more_pairs_are_equal_by_chance_than_expected(sizes: list[int], seed: int) -> None:
    """Among people of whom none is noted twice; one store in a thousand may have more."""
    of = of_store(noted_again(people(*sizes), 400, 0.0, seed))
    sample = sampled(_title_codes(of))
    seen = agreements(of, parts_of(of), sample.a, sample.b)
    equal = sample.weight[counted(seen.filter(~pl.col("agree")), len(sample.a)) == 0].sum()
    expected = chance_in(of).expected.sum()
    assert equal < 3 or pdtr(equal - 1, 1.3 * expected) < 0.999


def test_parts_that_depend_on_each_other_count_once() -> None:
    """Town and region follow from the postcode, which agrees in about one of 60 pairs."""
    made = noted_again(residents(year=False), 900, 0.0, seed=2)
    of = of_store(made)
    chance, equal = chance_in(of), len(equal_pairs(of))
    assert np.exp(chance.dependence) > 20
    assert equal / 1.5 < chance.expected.sum() < 1.5 * equal


def test_parts_that_depend_on_the_title_say_nothing() -> None:
    """All shirts of a line have one brand and description: sizes and colours alone separate them."""
    of = of_store(noted_again(products(150), 900, 0.0, seed=2))
    assert chance_in(of).expected.sum() > 0.7 * len(equal_pairs(of))


def test_sizes_do_not_vary_among_duplicates_where_nothing_else_separates_products() -> None:
    found = deduplicated(noted_again(products(150), 900, 0.0, seed=2))
    assert not found.grouped.any()


def test_a_summary_that_is_worded_anew_is_no_sign_of_different_things() -> None:
    made = noted_again(facts, 300, 0.0, seed=3)
    again = [
        topic | {"summary": f"Another day brought word of it, entry {at * 7919}"}
        for at, topic in enumerate(made.topics)
    ]
    of = of_store(Store([*made.topics, *again], [*made.things, *made.things]))
    sample = sampled(_title_codes(of))
    seen = agreements(of, parts_of(of), sample.a, sample.b).filter(pl.col("name") == "summary")
    assert seen.height == 300
    assert not seen["agree"].any()
    assert not seen["contradict"].any()


def test_the_rarest_titles_are_merged_first() -> None:
    of = of_store(noted_again(people(20, 60), 900, 0.1, seed=1, error=0.0))
    pairs, found = equal_pairs(of), found_in(of)
    titles = _title_codes(of)
    peers = np.bincount(titles)[titles][pairs.a]
    assert found.doubtful.any()
    assert not found.doubtful.all()
    assert peers[found.doubtful].min() >= peers[~found.doubtful].max()


def test_a_bare_title_is_doubtful_beside_namesakes() -> None:
    born = [{"title": "Anna Berg", "fields": {"year": str(1950 + at)}} for at in range(6)]
    bare = [{"title": "Anna Berg"}, {"title": "Anna Berg"}]
    assert found_in(corpus([*bare, *born])).doubtful.all()
    assert not found_in(corpus(bare)).doubtful.any()


def test_merges_of_earlier_nights_count_as_equal_pairs() -> None:
    """Alone, most of the few pairs of a later night would not outweigh what chance gives."""
    of = of_store(noted_again(people(20, 60), 900, 0.02, seed=1, error=0.0))
    assert found_in(of).doubtful.mean() >= 0.7
    none, before = EarlierMerges.none(len(of)), 200
    rows = [(merge, merge, name) for merge in range(before) for name in ("title", "field:part0", "field:part1")]
    equal = pl.DataFrame(rows, schema=MERGED_PARTS, orient="row")
    absorbed = np.array([1] * before + [0] * (len(of) - before))
    earlier = EarlierMerges(none.levels, none.fields, equal, absorbed, absorbed, before)
    assert not found_in(of, earlier).doubtful.any()


def errands(title: str, count: int) -> list[Topic]:
    """Different things with one title, of which two are equal."""
    return [{"title": title, "fields": {"for": f"{title} {at}"}} for at in [0, *range(count)]]


SENTENCES = [
    f"The {thing} was moved to the {place}" for thing in ("piano", "boiler", "desk") for place in ("attic", "barn")
]


def test_what_many_rare_words_say_is_beyond_doubt_among_short_titles_of_different_things() -> None:
    """Two topics with one title and nothing else would come last by what agrees besides the title."""
    short = [topic for title in ("Task", "Note", "Call") for topic in errands(title, 8)]
    of = corpus([*short, *({"title": sentence} for sentence in 2 * SENTENCES)])
    doubtful, pairs = found_in(of).doubtful, equal_pairs(of)
    bare = np.isin(np.array(of.titles)[pairs.a], SENTENCES)
    assert bare.sum() == len(SENTENCES)
    assert not doubtful[bare].any()
    assert doubtful[~bare].all()


def test_long_titles_that_are_those_of_different_things_are_no_better_than_short_ones() -> None:
    long = [topic for sentence in SENTENCES for topic in errands(sentence, 8)]
    found = found_in(corpus([*long, *({"title": sentence} for sentence in 2 * SENTENCES)]))
    assert found.doubtful.all()


def test_rare_values_are_beyond_doubt_among_long_titles_of_different_things() -> None:
    """Such titles would come first by the whole of what agrees."""
    long = [{"title": title, "fields": {"state": f"state {at % 4}"}} for title in SENTENCES for at in range(8)]
    words = [
        f"{start}{end}" for start in ("bi", "la", "co", "ri", "va") for end in ("ke", "mp", "at", "ng", "se", "ff")
    ]
    short = [{"title": word, "fields": {"code": word * 3}} for word in words]
    of = corpus([*long, *short, *short])
    doubtful, pairs = found_in(of).doubtful, equal_pairs(of)
    rare = np.isin(np.array(of.titles)[pairs.a], words)
    assert rare.sum() == len(short)
    assert not doubtful[rare].any()
    assert doubtful[~rare].all()


def test_equal_pairs_that_are_known_to_be_different_count_as_chance() -> None:
    made = noted_again(people(30, 20, 60, 12), 500, 0.1, seed=4, error=0.0)
    of = of_store(made)
    count = len(equal_pairs(of))
    assert not found_in(of).doubtful.any()
    found = found_in(of, apart=np.arange(count) % 3 == 0)
    assert found.doubtful.sum() > 0
    assert found.expected == pytest.approx(np.ceil(count / 3), abs=1)


def test_a_verdict_on_a_doubtful_pair_does_not_refute_the_fit() -> None:
    made = noted_again(people(20, 60), 500, 0.05, seed=6, error=0.0)
    topics = [{"id": f"t{number:05}", **topic} for number, topic in enumerate(made.topics)]
    row = np.flatnonzero(dedupe(topics).chance.doubtful)[0]
    pairs = dedupe(topics).pairs
    verdict = judged(f"t{pairs.a[row]:05}", f"t{pairs.b[row]:05}", "different")
    after = dedupe(topics, constraints(ledger(verdict), empty(EVIDENCE_TOPIC)))
    assert after.apart[row]
    assert after.groups[pairs.a[row]] != after.groups[pairs.b[row]]


def test_chance_gives_seldom_more_than_one_in_twenty_unless_a_bound_of_it_is_known() -> None:
    expected, equal = np.array([1.2, 1.2, 2.0]), np.array([35, 100, 35])
    assert _seldom(expected, equal, at_most=True).tolist() == [True, True, False]
    assert _seldom(expected, equal, at_most=False).tolist() == [False, True, False]


def test_no_more_pairs_are_expected_than_there_are() -> None:
    of = of_store(noted_again(KINDS["meetings"], 200, 0.02, seed=2))
    assert found_in(of).expected == len(equal_pairs(of))


@given(st.lists(st.integers(0, 4), max_size=120), st.integers(20, 60))
@settings(max_examples=40, deadline=None)
def test_a_sample_stands_for_all_pairs_of_equal_codes(codes: list[int], largest: int) -> None:
    code = np.array([*codes, *[9] * largest], np.int64)
    sample, sizes = sampled(code), np.bincount(code)
    assert (code[sample.a] == code[sample.b]).all()
    assert (sample.a < sample.b).all()
    assert len({*zip(sample.a.tolist(), sample.b.tolist(), strict=True)}) == len(sample.a)
    assert sample.weight.sum() == pytest.approx((sizes * (sizes - 1) / 2).sum())
