"""What a search for duplicates found in one scope, as frames: pairs by band, calibration, weights, counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from msgspec import json as msgjson

from memstate_core.model.frames import conform, empty, project
from memstate_core.model.ledger_tables import DECISION
from memstate_core.model.step_frames import CALIBRATION, MERGE_BAND, PAIRS, REVIEW_BAND
from memstate_core.revise.constraints import Constraints
from memstate_core.revise.matching.answers import FEW_PAIRS, KINDS
from memstate_core.revise.matching.candidates.blocking import VIEWS, all_pairs, completeness
from memstate_core.revise.matching.comparison.field_names import with_common_names
from memstate_core.revise.matching.comparison.siblings import FAMILY
from memstate_core.revise.matching.corpus import Corpus
from memstate_core.revise.matching.decision import LIFT
from memstate_core.revise.matching.deduplication import PROBABLE, Deduplicated
from memstate_core.revise.matching.fit.fellegi_sunter import contributions, explained
from memstate_core.revise.pair_reading import readings
from memstate_core.revise.questions import asked_topics, one_of_groups
from memstate_core.revise.reliability import band
from memstate_core.revise.thresholds import Probabilities
from memstate_core.run.run import Run
from memstate_core.state.fold.decisions import MATCH_MODEL

HELD_BACK = (
    "other topics of the group are too unlike it",
    "each title has words that the other lacks",
    "only one title has a number",
    "values of a field contradict each other",
    "the summaries differ in a word or number, or have little in common",
    "one title adds words, and many topics have the rest",
    "the same words in another order, with other accents, or with words added",
)
"""Why likely pairs are not merged, by code of `contradictions.REASONS`."""
ABSTAINED = "abstained: likely pairs of the scope often contradict each other, or people refuted them"
BY_CHANCE = "abstained: different topics with one title agree in as much by chance"
COUNTS = (
    "topics", "candidates", "merge_band", "confirmed", "review_band", "abstained", "by_chance", "contradicted",
    "kept_apart", "sources_distinct",
)  # fmt: skip


@dataclass(frozen=True)
class ScopeMatches:
    """What was found in one scope.

    Attributes:
        scope: its name.
        corpus: its active topics.
        found: the pairs and their groups.
        merge: the probability from which each pair is merged (pairs,).
        review: the probability from which each pair is suggested for review (pairs,).
        limits: pairs that are kept apart.
    """

    scope: str
    corpus: Corpus
    found: Deduplicated
    merge: Probabilities
    review: Probabilities
    limits: Constraints

    @cached_property
    def pairs(self) -> pl.DataFrame:
        """The pairs above the ignore band (columns PAIRS); a pair within one group is in the merge band."""
        return _banded(self.corpus, self.found, self.review, self.limits)

    def model(self, run: Run) -> pl.DataFrame:
        """The fitted model as a decision, with the embedding model and policy that it was fitted for."""
        document: dict[str, Any] = {
            "embedding_model": run.facts.embedding_model,
            "policy": run.policy.digest(),
            "pairs": self.found.model.pairs,
            "match_rate": round(self.found.model.match_rate, 6),
            "sources_distinct": int(self.found.origins.distinct.sum()),
            "field_names": dict(self.found.field_names),
            "weights": explained(self.found.model),
        }
        row = {
            "kind": MATCH_MODEL,
            "scope": self.scope,
            "payload_json": msgjson.encode(document).decode(),
            "reason": "fitted on tonight's pairs",
        }
        return project(pl.DataFrame([row]), DECISION, nulls=("topic_id", "evidence_ids"))


def calibration(found: Sequence[Deduplicated]) -> pl.DataFrame:
    """Pairs by probability (columns CALIBRATION)."""
    probability = np.concatenate([np.empty(0), *(each.scored.probability for each in found)])
    merged = np.concatenate([np.empty(0, bool), *(each.grouped for each in found)])
    wrong = np.concatenate([np.empty(0), *(each.doubt for each in found)])
    rows = pl.DataFrame({"probability": probability, "merged": merged, "wrong": wrong})
    expected = pl.col("wrong").filter("merged").sum().round(2)
    grouped = rows.group_by(probability_from=band(pl.col("probability"))).agg(
        pl.col("merged").sum(), pairs=pl.len(), expected_false=expected
    )
    return conform(grouped.sort("probability_from", descending=True), CALIBRATION)


def held_back(found: Sequence[Deduplicated]) -> pl.DataFrame:
    """Likely pairs that are not merged, by reason (columns reason, pairs, scopes)."""
    schema = {"reason": pl.String, "pairs": pl.Int64, "scopes": pl.Int64}
    held = [_held_back(each).with_columns(scopes=pl.lit(1, pl.Int64)) for each in found]
    return pl.concat([empty(schema), *held]).group_by("reason").sum().sort("reason")


def weights(found: Sequence[ScopeMatches]) -> pl.DataFrame:
    """Weights where titles are alike, from the least agreement to the most, of the scope with the most pairs."""
    largest = sorted(found, key=lambda each: -each.found.model.pairs)[:1]
    rows = [
        {"scope": each.scope, "comparison": name, "weights": " ".join(f"{weight:.1f}" for weight in strata[-1])}
        for each in largest
        for name, strata in explained(each.found.model).items()
    ]
    return pl.DataFrame(rows, schema={"scope": pl.String, "comparison": pl.String, "weights": pl.String})


def counts(found: Sequence[ScopeMatches]) -> dict[str, int | float]:
    """What the step reports of all scopes together."""
    every = sum(all_pairs(each.corpus) for each in found)
    compared = sum(len(each.found.pairs) for each in found)
    made = [_counts(each) for each in found]
    summed: dict[str, int | float] = {name: sum(each[name] for each in made) for name in COUNTS}
    seen_by = np.concatenate([np.empty((0, len(VIEWS)), bool), *(each.found.pairs.seen_by for each in found)])
    probability = np.concatenate([np.empty(0), *(each.found.scored.probability for each in found)])
    share = completeness(seen_by, probability)
    rates: dict[str, int | float] = {
        "reduction_ratio": round(1 - compared / every, 6) if every else 0.0,
        "expected_by_chance": round(sum(each.found.chance.expected for each in found), 2),
    }
    return summed | rates | ({"pair_completeness_estimate": round(share, 4)} if share is not None else {})


def _banded(corpus: Corpus, found: Deduplicated, review: Probabilities, limits: Constraints) -> pl.DataFrame:
    """The pairs above the ignore band (columns PAIRS); a pair within one group is in the merge band.

    Never in the ignore band are namesakes that contradict each other, or agree in as much as chance gives, and pairs in
    which nothing differs, or nothing but the wording of the title. For pairs with one title it counts how many pairs of
    topics an answer is expected to join. Two groups are one question, about the topics that they are merged into: the
    rest of their pairs is left out.

    Args:
        corpus: the topics.
        found: the pairs and their groups.
        review: the probability from which each pair is suggested for review (pairs,).
        limits: pairs that are kept apart.
    """
    likely = (found.scored.probability >= review) | (found.expected >= review)
    titled = np.flatnonzero(found.compared.same_title & ~likely)
    likely[titled] = found.expected[titled] * found.joins(titled) >= review[titled]
    asked = likely | _namesakes(corpus, found) | found.chance.doubtful | alike(found)
    kept = one_of_groups(found, np.flatnonzero(found.grouped | asked))
    ids, (one, other) = corpus.topics["id"], asked_topics(corpus, found, limits, kept)
    frame = pl.DataFrame({
        "row": kept,
        "a": ids.gather(one),
        "b": ids.gather(other),
        "scope": corpus.topics["scope"].gather(found.pairs.a[kept]),
        "probability": found.scored.probability[kept],
        "weight": found.scored.weight[kept],
        "value": np.minimum(found.expected, found.sure)[kept] * np.maximum(found.joins(kept) / FEW_PAIRS, 1.0),
        "pair_kind": pl.Series(KINDS).gather(found.kinds[kept]),
        "confirmed_by": np.where(found.grouped[kept], found.confirmed[kept], 0),
        "band": np.where(found.grouped[kept], MERGE_BAND, REVIEW_BAND),
    })  # fmt: skip
    joined = frame
    for added in (_features(found, kept), _readings(corpus, found, kept)):
        joined = joined.join(added, on="row", how="left", maintain_order="left")
    swapped = pl.col("a") > pl.col("b")
    ends = {"a": pl.when(swapped).then("b").otherwise("a"), "b": pl.when(swapped).then("a").otherwise("b")}
    return project(joined.with_columns(**ends), PAIRS).sort("a", "b")


def _namesakes(corpus: Corpus, found: Deduplicated) -> np.typing.NDArray[np.bool_]:
    """Pairs with a title that few topics have, of which something contradicts, unless they are kept apart (pairs,)."""
    code, a, b = corpus.title_code, found.pairs.a, found.pairs.b
    few = np.bincount(code)[code[a]] <= FAMILY
    return np.asarray((code[a] == code[b]) & few & (found.contradicts > 0) & ~found.apart)


def alike(found: Deduplicated) -> np.typing.NDArray[np.bool_]:
    """Pairs in which nothing differs, or no more than the wording of the titles, unless many topics are so (pairs,)."""
    like = (found.identical | found.reworded) & ~found.apart & ~found.grouped
    ends = np.bincount(np.concatenate([found.pairs.a[like], found.pairs.b[like]]), minlength=len(found.groups))
    few = np.maximum(ends[found.pairs.a], ends[found.pairs.b]) <= FAMILY
    return np.asarray(like & few)


def _features(found: Deduplicated, kept: np.typing.NDArray[np.int64]) -> pl.DataFrame:
    """The level and weight of each comparison (columns row, features).

    What makes a pair identical counts as a comparison of its own.
    """
    compared = found.compared
    is_kept = np.zeros(len(compared), bool)
    is_kept[kept] = True
    pair, comparison, level = compared.single(is_kept)
    weight = contributions(found.model, compared, pair, comparison, level)
    rows = pl.DataFrame({
        "row": pair.astype(np.int64),
        "name": pl.Series(compared.names).gather(comparison),
        "value": level.astype(np.float64),
        "weight": weight.round(3),
    })  # fmt: skip
    same = kept[found.identical[kept]]
    whole = pl.DataFrame({"row": same}).with_columns(
        name=pl.lit("identical"), value=pl.lit(1.0), weight=pl.lit(round(LIFT, 3))
    )
    return (
        pl.concat([rows, whole]).group_by("row", maintain_order=True).agg(features=pl.struct("name", "value", "weight"))
    )


def _readings(corpus: Corpus, found: Deduplicated, kept: np.typing.NDArray[np.int64]) -> pl.DataFrame:
    """The readings of the pairs in the merge band, with the names under which fields were compared (row, reading)."""
    merged = kept[found.grouped[kept]]
    named = with_common_names(corpus, found.field_names)
    read = readings(named, found.pairs.a[merged], found.pairs.b[merged], found.groups)
    return read.select("reading", row=pl.Series(merged).gather(read["pair"]))


def _held_back(found: Deduplicated) -> pl.DataFrame:
    held = (found.scored.probability >= found.sure) & ~found.grouped & ~found.apart
    reasons = pl.Series([HELD_BACK[int(code)] for code in found.contradicts], dtype=pl.String)
    held |= found.chance.doubtful & ~found.grouped
    flags = {"by_chance": found.chance.doubtful, "abstained": found.decision.held_back, "held": held}
    by_pair = pl.DataFrame({"reason": reasons, **flags})
    reason = pl.when("by_chance").then(pl.lit(BY_CHANCE)).when("abstained").then(pl.lit(ABSTAINED)).otherwise("reason")
    return by_pair.filter("held").select(reason=reason).group_by("reason").agg(pairs=pl.len().cast(pl.Int64))


def _counts(matches: ScopeMatches) -> dict[str, int]:
    """COUNTS of one scope."""
    found, pairs, probable = matches.found, matches.pairs, matches.found.scored.probability >= PROBABLE
    return {
        "topics": len(matches.corpus),
        "candidates": len(found.pairs),
        "merge_band": pairs.filter(pl.col("band") == MERGE_BAND).height,
        "confirmed": int((found.grouped & (found.confirmed > 0)).sum()),
        "review_band": pairs.filter(pl.col("band") == REVIEW_BAND).height,
        "abstained": int((found.decision.held_back & ~found.chance.doubtful & ~found.grouped).sum()),
        "by_chance": int((found.chance.doubtful & ~found.grouped).sum()),
        "contradicted": int(((found.contradicts > 0) & probable & ~found.grouped).sum()),
        "kept_apart": int((found.apart & probable).sum()),
        "sources_distinct": int(found.origins.distinct.sum()),
    }
