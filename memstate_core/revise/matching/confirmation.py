"""Likely pairs that are merged since people's answers confirm what they are.

A run leaves likely pairs to people where something contradicts in them, or where it abstains. They are asked about in
random order, so the answers are a sample of them: if hardly any is `different`, hardly any of the others is, which an
exact binomial test shows. A sample is one of the pairs that waited with it, so pairs that were suggested later need
later answers. People who pick pairs of the queue may pick the clear ones, so `same` counts in the order of the queue.
"""

from __future__ import annotations

import numpy as np

from memstate_core.revise.constraints import listed
from memstate_core.revise.matching.answers import IMPROBABLE, RIGHT, Answers, Flags, Reals, Sample, estimated
from memstate_core.revise.matching.arrays import Codes, Ints
from memstate_core.revise.matching.belief.links import witnesses
from memstate_core.revise.matching.candidates.blocking import Candidates
from memstate_core.revise.matching.corpus import Corpus

MOSTLY = 0.8
"""The share of matches among pairs of one kind that answers about this kind must make improbable, too: a few answers
that happen to be `same` would let a kind in of which many are different."""
ROUNDING = 1e-4
"""How much the recorded value of a pair may differ from that which likely pairs have in common."""


def confirming(
    corpus: Corpus, pairs: Candidates, kind: Codes, estimate: Reals, likely: Flags, answers: Answers, *, sure: float
) -> Ints:
    """How many answers confirm each pair; 0 where they do not suffice (pairs,).

    Those that were given since a pair was suggested must make it improbable that only a share of RIGHT of such pairs is
    the same, and those of them about its kind that only a share of MOSTLY is. Pairs that answers make unlikely count on
    neither side.

    Args:
        corpus: the topics.
        pairs: the pairs.
        kind: what kind of pair each is, its number in `answers.KINDS` (pairs,).
        estimate: the probability of the answer `same` (pairs,).
        likely: pairs that the fit takes for the same, and that may be merged (pairs,).
        answers: the answers so far.
        sure: the probability from which a pair is likely.
    """
    found = np.zeros(len(pairs), np.int64)
    sample = _likely(answers, sure)
    if _refute(len(sample.same), 0, RIGHT):
        waits, since = _suggested(corpus, pairs, sample)
        rows = np.flatnonzero(likely & waits & (estimate >= sure))
        found[rows] = _counts(sample, kind[rows], since[rows])
    return found


def needed(kind: Codes, since: Ints, answers: Answers, *, sure: float) -> Ints:
    """How many more answers in a row, all of them `same`, would confirm each of some likely pairs (pairs,).

    Answers about pairs of other kinds count for the first test alone, so it may take more.

    Args:
        kind: what kind of pair each is, its number in `answers.KINDS` (pairs,).
        since: the position of the decision that suggests it (pairs,).
        answers: the answers so far.
        sure: the probability from which a pair is likely.
    """
    sample = _likely(answers, sure)
    of_all = _missing(*_given(sample, since), RIGHT)
    return np.asarray(np.maximum(of_all, _missing(*_given_about(sample, kind, since), MOSTLY)), np.int64)


def with_confirmed(
    pairs: Candidates, confirmed: Flags, probability: Reals, decided: Reals, *, topics: int, sure: float
) -> Reals:
    """Probabilities for clustering, in which those of confirmed pairs count (pairs,).

    So does that of a pair whose topics are both confirmed to be the same as a third, but it starts no group.

    Args:
        pairs: the pairs.
        confirmed: which of them answers confirm (pairs,).
        probability: of a match, where its threshold is `sure` (pairs,).
        decided: of a match, as far as it counts without answers (pairs,).
        topics: how many topics there are.
        sure: the probability from which a pair is merged.
    """
    joins = witnesses(pairs, confirmed, topics) > 0
    joining = np.maximum(decided, np.minimum(probability, np.nextafter(sure, 0.0)), where=joins, out=decided.copy())
    return np.where(confirmed, probability, joining)


def _likely(answers: Answers, sure: float) -> Sample:
    """The sample of likely pairs, which nothing but chance put in order, but for those that answers make unlikely."""
    sample = answers.sample
    drawn = (sample.probability >= sure) & (np.abs(sample.value - sure) <= ROUNDING)
    return sample.where(drawn & (estimated(sample.probability, sample.kind, answers) >= sure))


def _suggested(corpus: Corpus, pairs: Candidates, sample: Sample) -> tuple[Flags, Ints]:
    """Which pairs are suggested, and the position of the decision that suggests them ((pairs,) each)."""
    if sample.waiting is None:
        return np.ones(len(pairs), bool), np.full(len(pairs), -1, np.int64)
    waits, row = listed(corpus, pairs, sample.waiting)
    return waits, np.append(sample.waiting["at"].to_numpy(), -1)[row]


def _counts(sample: Sample, kind: Codes, since: Ints) -> Ints:
    """How many answers were given since some positions; 0 where they do not suffice for a kind (pairs,)."""
    (given, wrong), (own, own_wrong) = _given(sample, since), _given_about(sample, kind, since)
    enough = _refute(given, wrong, RIGHT) & _refute(own, own_wrong, MOSTLY)
    return np.where(enough, given, 0)


def _given_about(sample: Sample, kind: Codes, since: Ints) -> tuple[Ints, Ints]:
    """Of the verdicts about each kind, as `_given` ((positions,) each)."""
    given, wrong = np.zeros_like(since), np.zeros_like(since)
    for one in np.unique(sample.kind):
        rows = kind == one
        given[rows], wrong[rows] = _given(sample.where(sample.kind == one), since[rows])
    return given, wrong


def _given(sample: Sample, since: Ints) -> tuple[Ints, Ints]:
    """How many verdicts were given after some positions, and how many of them were not `same` ((positions,) each)."""
    wrong = sample.at[~sample.same]
    given, wrong = (len(at) - np.searchsorted(at, since, "right") for at in (sample.at, wrong))
    return given, wrong


def _refute(given: Ints | int, wrong: Ints | int, share: float) -> Flags:
    """Whether so few wrong ones are improbable in a sample of pairs of which a share is the same (as of `given`)."""
    from scipy.special import bdtr  # only here: importing it takes a while

    return np.asarray(bdtr(np.asarray(wrong, float), np.asarray(given), 1 - share) < IMPROBABLE)


def _missing(given: Ints, wrong: Ints, share: float) -> Ints:
    """How many more answers, none of them wrong, make a share improbable (as of `given`)."""
    counts, place = np.unique(wrong, return_inverse=True)
    fewest = np.array([_fewest(int(count), share) for count in counts], np.int64)
    return np.asarray(np.maximum(0, fewest[place] - given), np.int64)


def _fewest(wrong: int, share: float) -> int:
    """The size of the smallest sample in which so few wrong ones are improbable."""
    most = (wrong + 4 * (wrong + 1) ** 0.5 + 4) / (1 - share)  # its mean of wrong ones is four deviations more
    return int(np.argmax(_refute(np.arange(int(most)), wrong, share)))
