"""Judges again the merges that nightly runs made, such as those of an older version.

The shard is folded as if none of the automatic merges in force had been made, in a scratch folder outside the store,
and searched for duplicates with today's settings. Manual merges and verdicts hold. Nothing in the store changes.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from msgspec.structs import replace

from memstate_core.model.frames import empty, project
from memstate_core.model.ledger_tables import DECISION
from memstate_core.model.step_frames import ALIASES, CHANGES
from memstate_core.model.verdicts import SAME
from memstate_core.night.rebuild import fold_again
from memstate_core.revise.matching.corpus import Corpus
from memstate_core.revise.matching.load_corpus import load_corpus
from memstate_core.revise.merge_history import NIGHTLY, merge_documents, merge_list
from memstate_core.revise.merge_memory import merges_in_force
from memstate_core.revise.pair_outcomes import pair_outcomes
from memstate_core.revise.scope_search import search_scopes
from memstate_core.run.run import Run
from memstate_core.run.served_state import Served
from memstate_core.run.store import Store
from memstate_core.state.fold.decisions import UNMERGED, judgements, merges
from memstate_core.state.fold.identity import answering, survivors


@dataclass(frozen=True)
class Rejudged:
    """The automatic merges in force of a shard, judged again.

    Attributes:
        refused: merges that today's model would not make, the least probable first, pairs that are not compared before
            all others: documents as of `merge_documents`, with `today` (the probability of the pair, None if it is not
            compared), `why` (why the two are not merged) and `apart` (the titles of `dropped` and `survivor` as they
            would be without automatic merges).
        judged: how many merges were judged.
        unjudged: how many were not, since one of the two topics would be archived or have no evidence.
    """

    refused: list[dict[str, Any]]
    judged: int
    unjudged: int


def rejudge(store: Store, served: Served) -> Rejudged:
    """Finds the automatic merges in force that today's model would not make.

    A merge is one that it makes if both topics, followed through manual merges, end in one group. Only active topics
    are compared, as in a nightly run, so merges of topics that are archived are not judged. Merge rules on events apply
    to no topic, since no event is considered.

    Args:
        store: the store, with the settings to judge by.
        served: the shard.
    """
    made = merge_list(served).filter(~pl.col("undone") & (pl.col("actor") == NIGHTLY))
    if made.is_empty():
        return Rejudged([], 0, 0)
    before = served.transitions.join(made, on="seq", how="anti", maintain_order="left").select(DECISION.keys())
    with tempfile.TemporaryDirectory() as folder:
        run = _fold_without(store, served, made, Path(folder) / "fold")
        corpus = load_corpus(store, run)
        judged = _judged(run, corpus, before, made)
        scopes = judged["scope"].unique().sort()
        merged = merges_in_force(before)
        found = search_scopes(store, run, corpus, empty(CHANGES), before, scopes, merged, all_waiting=True)
        pairs = judged.select("a", "b").unique()
        outcomes = pair_outcomes(found, pairs, _ends(run, before, judgements(before).filter(verdict=SAME), "a", "b"))
    refused = judged.join(outcomes.filter(~pl.col("together")), on=["a", "b"])
    return Rejudged(_documents(served, refused), judged.height, made.height - judged.height)


def _fold_without(store: Store, served: Served, made: pl.DataFrame, scratch: Path) -> Run:
    """A run whose working graph holds the shard without some merges, by today's policy and embedding model."""
    manifest = served.snapshot.manifest
    columns = {"kind": pl.lit(UNMERGED), "topic_id": pl.col("dropped"), "payload_json": pl.lit("{}")}
    undone = project(made.with_columns(**columns), DECISION)
    policy = store.settings.policy.model_dump(mode="json")
    run = fold_again(store, manifest, policy, scratch, "review", undone)
    return Run(run.scratch, replace(run.facts, base=manifest.number))


def _judged(run: Run, corpus: Corpus, before: pl.DataFrame, made: pl.DataFrame) -> pl.DataFrame:
    """The merges that can be judged: those of two active topics of one scope.

    Returns:
        Columns id, scope, a, b (the topics that the ends resolve to without automatic merges, a <= b), apart (the
        titles of both ends).
    """
    ends = _ends(run, before, made, "dropped", "survivor").select("id", "a", "b", "dropped", "survivor")
    topics = corpus.topics.select("scope", "id", "title")
    ends = ends.join(topics.rename({"id": "dropped", "title": "_dropped"}), on="dropped")
    ends = ends.join(topics.rename({"id": "survivor", "title": "_survivor"}), on=["survivor", "scope"])
    return ends.select("id", "scope", "a", "b", apart=pl.struct(dropped="_dropped", survivor="_survivor"))


def _ends(run: Run, before: pl.DataFrame, pairs: pl.DataFrame, one: str, other: str) -> pl.DataFrame:
    """Pairs whose ends are resolved without the automatic merges, in order as a and b, too."""
    followed = survivors(merges(before))
    ends = (answering(pl.col(end), run.table("aliases", ALIASES), followed) for end in (one, other))
    return pairs.with_columns(ends).with_columns(a=pl.min_horizontal(one, other), b=pl.max_horizontal(one, other))


def _documents(served: Served, refused: pl.DataFrame) -> list[dict[str, Any]]:
    judged = {row["id"]: row for row in refused.select("id", "apart", "today", "why").to_dicts()}
    documents = [merge | judged[merge["id"]] for merge in merge_documents([served]) if merge["id"] in judged]
    return sorted(documents, key=lambda merge: (merge["today"] is not None, merge["today"] or 0.0))
