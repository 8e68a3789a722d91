"""Searches scopes for duplicates one by one, in this process and in others beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

import polars as pl

from memstate_core.model.progress import tracked
from memstate_core.model.step_frames import EVIDENCE_TOPIC
from memstate_core.revise.answers import answered, answers_of, waiting
from memstate_core.revise.constraints import Constraints, constraints
from memstate_core.revise.matching.answers import Answers
from memstate_core.revise.matching.candidates.nearest import LARGE
from memstate_core.revise.matching.corpus import Corpus
from memstate_core.revise.matching.deduplication import Deduplicated, deduplicate
from memstate_core.revise.matching.earlier_merges import EarlierMerges
from memstate_core.revise.merge_memory import earlier_merges
from memstate_core.revise.scope_matches import ScopeMatches
from memstate_core.revise.thresholds import PairThresholds, Probabilities, thresholds_of
from memstate_core.run.run import Run
from memstate_core.run.store import Store
from memstate_core.state.process.parallel import cores, mapped

SCOPE_EFFORT = 70
"""What a search of any scope takes, in topics of a larger one (`tests/benchmarks/small_scopes.py`)."""
WORTH_PROCESSES = 10_000
"""Effort in topics, some six seconds, from which other processes save more time than they need to start."""
MOST_PROCESSES = 8
"""How many processes search unless the settings say otherwise: each has memory of its own, some 300 MiB."""


@dataclass(frozen=True)
class ScopeToSearch:
    """What a search of one scope needs.

    Attributes:
        scope: its name.
        corpus: its active topics.
        earlier: the merges in force into these topics.
        answers: of people about its pairs.
    """

    scope: str
    corpus: Corpus
    earlier: EarlierMerges | None
    answers: Answers


def search_scopes(
    store: Store,
    run: Run,
    corpus: Corpus,
    changed: pl.DataFrame,
    before: pl.DataFrame,
    scopes: pl.Series,
    merged: pl.DataFrame,
    *,
    all_waiting: bool = False,
) -> list[ScopeMatches]:
    """Searches scopes, but for those of a single topic; in several processes where that saves time.

    Scopes of more than LARGE topics are searched one at a time: they take more memory, and use several cores anyway.

    Args:
        store: the store.
        run: gives the policy and the evidence of topics.
        corpus: the active topics.
        changed: topics that the run has changed so far (columns CHANGES).
        before: earlier decisions, in order.
        scopes: the scopes to search.
        merged: the merges in force (as of `merges_in_force`).
        all_waiting: whether all pairs count as suggested before all answers, whatever the decisions say.
    """
    limits = constraints(before, run.table("links", EVIDENCE_TOPIC))
    thresholds = thresholds_of(store, run, corpus, changed, before)
    answers = answered(before)
    suggested = None if all_waiting or answers.is_empty() else waiting(before)
    merged_in = merged.partition_by("scope", as_dict=True)
    parts = [(scope, part) for scope in scopes if len(part := corpus.of(scope)) > 1]
    wanted = [
        ScopeToSearch(
            scope,
            part,
            earlier_merges(part, merged_in[scope,]) if (scope,) in merged_in else None,
            answers_of(answers.filter(scope=scope), None if suggested is None else suggested.filter(scope=scope)),
        )
        for scope, part in parts
    ]
    search = partial(search_scope, limits, thresholds)
    large = [each for each in wanted if len(each.corpus) > LARGE]
    others = [each for each in wanted if len(each.corpus) <= LARGE]
    results = chain(map(search, large), mapped(search, others, search_processes(store, others)))
    every = tracked(zip([*large, *others], results, strict=True), "compare topics", len(wanted), "scopes")
    found = {each.scope: result for each, result in every}
    return [ScopeMatches(each.scope, each.corpus, *found[each.scope], limits) for each in wanted]


def search_scope(
    limits: Constraints, thresholds: PairThresholds, wanted: ScopeToSearch
) -> tuple[Deduplicated, Probabilities, Probabilities]:
    """The duplicates of one scope, and the probabilities from which pairs are merged and suggested for review.

    Args:
        limits: pairs that are kept apart.
        thresholds: those of the policy.
        wanted: the scope.
    """
    own = replace(thresholds, ids=wanted.corpus.topics["id"])
    result = deduplicate(
        wanted.corpus, limits, sure=own.merge, earlier=wanted.earlier, decisive=own.decisive, answers=wanted.answers
    )
    return result, *own.of(result.pairs)


def search_processes(store: Store, wanted: Sequence[ScopeToSearch]) -> int:
    """How many processes search scopes: one where the search takes less time than others need to start."""
    effort = sum(SCOPE_EFFORT + len(each.corpus) for each in wanted)
    settings = store.settings.store
    most = settings.search_processes or min(MOST_PROCESSES, max(1, cores() // settings.nights_at_once))
    return most if effort >= WORTH_PROCESSES else 1
