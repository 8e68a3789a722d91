"""What other processes gain in a search of many scopes: alone, in several processes, and by joblib's processes.

The scopes have the made topics of `growth.py`. All ways are timed in turn, each with corpora that nothing was prepared
of. Time includes the start of the processes, but for joblib's second turn, whose processes are still there.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from growth import made_corpus
from joblib import Parallel, delayed

from memstate_core.model.frames import empty
from memstate_core.model.ledger_tables import DECISION
from memstate_core.model.step_frames import EVIDENCE_TOPIC
from memstate_core.policy.settings import Policy
from memstate_core.revise.constraints import constraints
from memstate_core.revise.matching.answers import Answers
from memstate_core.revise.scope_search import ScopeToSearch, search_scope
from memstate_core.revise.thresholds import PairThresholds
from memstate_core.state.process.parallel import mapped

Search = Callable[[ScopeToSearch], Any]


def by_joblib(search: Search, wanted: Sequence[ScopeToSearch], processes: int) -> list[Any]:
    """The results of joblib's processes, in order."""
    pool = Parallel(processes, backend="loky", max_nbytes=None, return_as="generator")
    return list(pool(delayed(search)(each) for each in wanted))


def ours(search: Search, wanted: Sequence[ScopeToSearch], processes: int) -> list[Any]:
    """The results of ours, in order."""
    return list(mapped(search, wanted, processes))


def seconds(scopes: int, topics: int, processes: int, rounds: int) -> dict[str, list[float]]:
    """Wall time by way, of each round."""
    limits = constraints(empty(DECISION), empty(EVIDENCE_TOPIC))
    policy = Policy()
    search = partial(search_scope, limits, PairThresholds(policy.merge_probability, policy.review_probability))
    ways = {"one process": (ours, 1), f"{processes} processes": (ours, processes), "joblib": (by_joblib, processes)}
    search(_wanted(1, topics)[0])  # imports what it needs
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, (way, count) in ways.items():
            wanted = _wanted(scopes, topics)
            began = time.perf_counter()
            way(search, wanted, count)
            found[name].append(time.perf_counter() - began)
    return found


def _wanted(scopes: int, topics: int) -> list[ScopeToSearch]:
    corpora = (made_corpus(topics, seed)[0] for seed in range(scopes))
    return [ScopeToSearch(f"user:{number}", corpus, None, Answers.none()) for number, corpus in enumerate(corpora)]


def main(given: Sequence[str] | None = None) -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description="Measure the search of scopes in several processes.")
    parser.add_argument("--scopes", type=int, default=60)
    parser.add_argument("--topics", type=int, default=400, help="of a scope")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=2)
    args = parser.parse_args(given)
    sys.stdout.write(f"| {args.scopes} scopes of {args.topics} topics | wall, s |\n|---|---|\n")
    for name, each in seconds(args.scopes, args.topics, args.processes, args.rounds).items():
        sys.stdout.write(f"| {name} | {', '.join(f'{one:.1f}' for one in each)} |\n")


if __name__ == "__main__":
    main()
