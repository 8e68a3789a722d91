"""A fold of the topics that changed, beside what an earlier fold made of the others.

Invariant: with the rows of all other topics it is the fold of everything (`fold.fold`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import polars as pl

from memstate_core.policy.settings import Policy
from memstate_core.state.fold.changed_topics import EarlierFold, changed_topics
from memstate_core.state.fold.fold import State, fold_topics, refused
from memstate_core.state.fold.holdings import Holdings, known_topics
from memstate_core.state.fold.ladder_state import LadderState

_DANGLING = ("dangling_reference", "dangling_edge")


@dataclass(frozen=True)
class Refolded:
    """A fold, and the topics that it is about.

    Attributes:
        state: topics, fields, revisions and edges of `owners`; the rest is that of the whole shard.
        owners: the topics whose rows may differ from those of the earlier fold; None for all.
        topics: how many topics the shard has.
    """

    state: State
    owners: pl.Series | None
    topics: int


def fold_changed(
    earlier: EarlierFold,
    held: Holdings,
    there: pl.DataFrame,
    named: pl.DataFrame,
    evidence_of: Callable[[pl.Series], pl.DataFrame],
    ladder: LadderState,
    policy: Policy,
    accesses: pl.DataFrame,
) -> Refolded:
    """Folds the topics that may differ from an earlier fold under the same policy.

    Args:
        earlier: what the earlier fold was made of.
        held: the holdings of all topics.
        there: the evidence that there is (column evidence_id).
        named: what topics name in the state of the earlier fold (as for `changed_topics`).
        evidence_of: reads the evidence with some ids (columns EVIDENCE).
        ladder: the steps in force.
        policy: weights, half-life and the rule for conflicts.
        accesses: all of them (columns ACCESSES).
    """
    present = replace(held, evidence_topic=held.evidence_topic.join(there, on="evidence_id", how="semi"))
    known = known_topics(present.evidence_topic, held.merged)
    changed = changed_topics(earlier, present, known, named)
    part = held.of(changed.living, known)
    used = accesses.filter(held.answering(pl.col("topic_id")).is_in(changed.living.implode()))
    state = fold_topics(evidence_of(part.evidence_topic["evidence_id"]), part, ladder, policy, used)
    kept = ~pl.col("topic_id").is_in(changed.owners.implode())
    left = earlier.problems.filter(pl.col("kind").is_in(_DANGLING) & kept)
    found = state.problems.filter(pl.col("kind").is_in(_DANGLING))
    whole = replace(
        state,
        evidence_topic=held.evidence_topic,
        compressed=pl.concat([earlier.compressed.filter(kept), state.compressed]),
        problems=pl.concat([refused(held.placements), left, found]),
    )
    return Refolded(whole, changed.owners, known.height)
