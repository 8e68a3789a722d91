"""Which topic a segment continues: within one import as over nights, by a calibrated probability."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memstate_core.embed.encoder import DIMENSION, Vectors
from memstate_core.placement.calibration import PRIOR_OTHER, PRIOR_SAME, Calibration, Normal, calibrated
from memstate_core.placement.continuation import continued
from memstate_core.placement.segment_vectors import SegmentVectors
from memstate_core.placement.vectors import Embeddings, unit
from memstate_core.policy.settings import Policy

RANDOM = np.random.default_rng(7)
SUBJECTS = unit(RANDOM.standard_normal((40, DIMENSION)))
COMMON = unit(RANDOM.standard_normal((1, DIMENSION)))[0]


def about(subject: int, noise: float = 0.3, seed: int = 0) -> Vectors:
    """A segment about a subject, among people with one manner of talking."""
    chance = np.random.default_rng((subject, seed)).standard_normal(DIMENSION)
    return unit((COMMON + SUBJECTS[subject] + noise * unit(chance[None])[0])[None])[0]


def segments(*subjects: int, scope: str = "user:aya", comparable: bool = True, first: int = 0) -> SegmentVectors:
    """One segment a session, about these subjects in turn."""
    whole = np.stack([about(subject, seed=first + at) for at, subject in enumerate(subjects)])
    halves = tuple(
        np.stack([about(subject, 0.5, 1000 * side + first + at) for at, subject in enumerate(subjects)])
        for side in (1, 2)
    )
    frame = pl.DataFrame({"id": [f"{scope}/n{first + at}" for at in range(len(subjects))]}).with_columns(
        scope=pl.lit(scope), session=pl.col("id"), comparable=pl.lit(comparable)
    )
    return SegmentVectors(frame, whole, (halves[0], halves[1]))


def topics(**named: Vectors) -> Embeddings:
    ids = pl.Series(list(named), dtype=pl.String)
    scopes = pl.Series(["user:aya"] * len(named), dtype=pl.String)
    return Embeddings(ids, scopes, np.stack(list(named.values())) if named else np.zeros((0, DIMENSION), np.float32))


def found(
    new: SegmentVectors, existing: Embeddings | None = None, past: SegmentVectors | None = None, **policy: float
) -> dict[str, str]:
    rows = continued(new, topics() if existing is None else existing, past or SegmentVectors.empty(), Policy(**policy))
    return dict(rows.select("id", "topic_id").rows())


OTHERS = tuple(range(10, 30))


def test_a_later_segment_of_the_same_import_continues_an_earlier_one() -> None:
    new = segments(*OTHERS, 1, 2, 3, 1, 1)
    assert found(new) == {"user:aya/n23": "user:aya/n20", "user:aya/n24": "user:aya/n20"}


def test_a_segment_continues_a_topic_of_an_earlier_night() -> None:
    past = segments(*OTHERS, 1)
    existing = topics(pottery=about(1, seed=5), trip=about(2, seed=6))
    assert found(segments(3, 1, first=50), existing, past) == {"user:aya/n51": "pottery"}


def test_one_import_gives_the_topics_that_nights_would() -> None:
    order = [*OTHERS, 1, 2, 1, 3, 2, 1]
    at_once = found(segments(*order))
    past, known, nightly = segments(*order[:20]), dict[str, Vectors](), {}
    known = {f"user:aya/n{at}": past.whole[at] for at in range(20)}
    for at in range(20, len(order)):
        new = segments(order[at], first=at)
        nightly |= found(new, topics(**known), past)
        if f"user:aya/n{at}" not in nightly:
            known[f"user:aya/n{at}"] = new.whole[0]
        past = segments(*order[: at + 1])
    assert at_once == nightly


def test_what_says_too_little_neither_continues_nor_is_continued() -> None:
    assert found(segments(*OTHERS, 1, 1, comparable=False)) == {}


def test_scopes_are_never_compared() -> None:
    ours, theirs = segments(*OTHERS, 1), segments(*OTHERS, 1, scope="user:ben")
    both = SegmentVectors(
        pl.concat([ours.frame, theirs.frame]),
        np.concatenate([ours.whole, theirs.whole]),
        (np.concatenate([ours.halves[0], theirs.halves[0]]), np.concatenate([ours.halves[1], theirs.halves[1]])),
    )
    assert found(both) == {}


def test_scopes_are_judged_together_as_each_alone() -> None:
    alone = [segments(*OTHERS, 1, 2, 1, scope=scope, first=first) for scope, first in (("user:aya", 0), ("user:b", 70))]
    ours, theirs = alone
    mixed = np.arange(2 * len(ours.whole)).reshape(2, -1).T.ravel()
    halves = [np.concatenate([ours.halves[side], theirs.halves[side]])[mixed] for side in (0, 1)]
    whole = np.concatenate([ours.whole, theirs.whole])[mixed]
    both = SegmentVectors(pl.concat([ours.frame, theirs.frame])[mixed], whole, (halves[0], halves[1]))
    existing = topics(pottery=about(2, seed=5))
    assert found(both, existing) == found(ours, existing) | found(theirs, existing)
    assert found(both, existing).keys() == {"user:aya/n21", "user:aya/n22", "user:b/n92"}


def test_a_chain_that_wanders_off_is_cut() -> None:
    """Each is like the one before it; the last is not like the first, and begins a topic itself."""
    plain = segments(*OTHERS, *[0] * 8)
    angles = np.linspace(0, np.pi / 2, 8)
    drift = np.stack([unit((COMMON + np.cos(a) * SUBJECTS[1] + np.sin(a) * SUBJECTS[2])[None])[0] for a in angles])
    whole = np.concatenate([plain.whole[:20], drift])
    links = found(SegmentVectors(plain.frame, whole, plain.halves))
    calibration = calibrated(whole, plain.halves, np.arange(28))
    centred = calibration.centred(whole)
    assert links
    assert len(links) < 7
    for one, root in links.items():
        assert root not in links
        rows = [int(name.split("/n")[1]) for name in (one, root)]
        cosine = np.array([centred[rows[0]] @ centred[rows[1]]], dtype=np.float64)
        assert calibration.probability(cosine, 27)[0] >= Policy().placement_probability


def test_the_bars_of_the_policy_hold() -> None:
    new = segments(*OTHERS, 1, 1)
    assert found(new)
    assert found(new, placement_similarity=0.999) == {}
    plain = segments(*OTHERS, 1, 1)
    fainter = np.concatenate([plain.whole[:21], about(1, 1.4, 77)[None]])
    unsure = SegmentVectors(plain.frame, fainter, plain.halves)
    assert found(unsure, placement_probability=0.9, placement_similarity=0.5)
    assert found(unsure, placement_probability=0.999, placement_similarity=0.5) == {}


def test_equal_segments_of_one_scope_are_no_error() -> None:
    frame = segments(*[1] * 6).frame
    same = np.repeat(about(1)[None], 6, axis=0)
    links = found(SegmentVectors(frame, same, (same, same)))
    assert set(links.values()) <= {"user:aya/n0"}


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 6), min_size=1, max_size=25))
def test_whatever_is_continued_began_before_and_begins_its_topic(subjects: list[int]) -> None:
    links = found(segments(*subjects))
    for one, root in links.items():
        assert root not in links
        assert int(root.split("/n")[1]) < int(one.split("/n")[1])


# What cosines mean


def test_a_scope_learns_what_sameness_looks_like() -> None:
    some = segments(*OTHERS, *OTHERS)
    calibration = calibrated(some.whole, some.halves, np.arange(40))
    assert calibration.same.mean > 0.5 > abs(calibration.other.mean) + 0.2
    low, high = calibration.probability(np.array([0.1, 0.9]), 40)
    assert low < 0.01 < 0.9 < high


def test_a_scope_without_segments_has_usual_values() -> None:
    nothing = np.zeros((0, DIMENSION), np.float32)
    calibration = calibrated(nothing, (nothing, nothing), np.zeros(0, np.int64))
    assert (calibration.same, calibration.other) == (PRIOR_SAME, PRIOR_OTHER)


def test_where_halves_are_less_alike_than_others_nothing_continues() -> None:
    calibration = Calibration(np.zeros(DIMENSION), Normal(0.1, 0.2), Normal(0.3, 0.2))
    assert calibration.probability(np.array([-0.5, 0.5, 0.99]), 9) == pytest.approx(0.25)


@settings(max_examples=80)
@given(st.floats(-0.5, 0.9), st.floats(0.05, 0.5), st.floats(-0.5, 0.9), st.floats(0.05, 0.5), st.integers(0, 100_000))
def test_probability_never_falls_as_the_cosine_rises(m1: float, s1: float, m0: float, s0: float, count: int) -> None:
    calibration = Calibration(np.zeros(DIMENSION), Normal(m1, s1), Normal(m0, s0))
    probability = calibration.probability(np.linspace(-1, 1, 201), count)
    assert (np.diff(probability) >= -1e-12).all()
    assert ((probability >= 0) & (probability <= 1)).all()


@pytest.mark.parametrize("count", [1, 10, 1000])
def test_more_candidates_need_more_likeness(count: int) -> None:
    calibration = Calibration(np.zeros(DIMENSION), Normal(0.5, 0.2), Normal(0.0, 0.2))
    few, many = (calibration.probability(np.array([0.6]), number)[0] for number in (count, 10 * count))
    assert many < few
