"""Cannot-link constraints: pairs judged different, undone merges, different keys."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memstate_core.model.verdicts import DIFFERENT
from memstate_core.revise.matching.candidates.blocking import Candidates
from memstate_core.revise.matching.corpus import Corpus
from memstate_core.state.fold.decisions import judgements, merges, undone
from memstate_core.state.fold.identity import survivors

RENEWED = 2.0
"""How much the logit of a pair must exceed that of its undone merge before it is merged again."""


@dataclass(frozen=True)
class Constraints:
    """Pairs of topics (columns a, b, ids with a < b) that are kept apart.

    Attributes:
        judged: judged different by a person, for good.
        undone: with `weight`, the logit of the undone merge, and `renewed`, whether evidence
            arrived since; the pair is freed only by both new evidence and a clearly higher logit.
    """

    judged: pl.DataFrame
    undone: pl.DataFrame

    def judged_different(self, corpus: Corpus, pairs: Candidates) -> NDArray[np.bool_]:
        """Which pairs people judged different (pairs,)."""
        return listed(corpus, pairs, self.judged)[0]

    def different(self, corpus: Corpus, pairs: Candidates) -> NDArray[np.bool_]:
        """Which pairs are known to be no matches: judged so, or with keys of which they share none (pairs,)."""
        return self.judged_different(corpus, pairs) | _other_keys(corpus, pairs)

    def apart(self, corpus: Corpus, pairs: Candidates, weight: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which pairs must not end in one group (pairs,)."""
        kept = self.different(corpus, pairs)
        parted, row = listed(corpus, pairs, self.undone)
        if parted.any():
            limit = self.undone["weight"].fill_null(np.inf).to_numpy()[row] + RENEWED
            freed = self.undone["renewed"].to_numpy()[row] & (weight > limit)
            kept = kept | (parted & ~freed)
        return kept


def constraints(decisions: pl.DataFrame, evidence_topic: pl.DataFrame) -> Constraints:
    """Reads the constraints that recorded decisions make.

    Args:
        decisions: columns DECISION, in order.
        evidence_topic: the topic of each piece of evidence today (columns EVIDENCE_TOPIC).
    """
    back = undone(decisions)
    followed = survivors(merges(decisions))
    parted = _followed(back, followed).with_row_index("row")
    ends = parted.unpivot(["a", "b"], index="row", value_name="topic_id")
    known = parted.select("row", evidence_id="evidence_ids").explode("evidence_id", empty_as_null=True)
    fresh = evidence_topic.join(ends, on="topic_id").join(known, on=["row", "evidence_id"], how="anti")["row"].implode()
    return Constraints(
        judged_different(decisions),
        parted.select("a", "b", "weight", renewed=pl.col("row").is_in(fresh)),
    )


def judged_different(decisions: pl.DataFrame) -> pl.DataFrame:
    """Pairs that a person judged different, resolved through merges in force (columns a, b).

    Args:
        decisions: columns DECISION, in order.
    """
    judged = judgements(decisions).filter(pl.col("verdict") == DIFFERENT)
    return _followed(judged, survivors(merges(decisions))).select("a", "b")


def resolved(pairs: pl.DataFrame, followed: pl.DataFrame) -> pl.DataFrame:
    """The pairs with each topic's survivor in its place (a < b); pairs that became one are left out.

    Args:
        pairs: columns a, b, and others that stay.
        followed: columns dropped, survivor, as of `identity.survivors`.
    """
    one, other = (pl.col(end).replace(followed["dropped"], followed["survivor"]) for end in ("a", "b"))
    moved = pairs.with_columns(a=pl.min_horizontal(one, other), b=pl.max_horizontal(one, other))
    return moved.filter(pl.col("a") != pl.col("b"))


def _followed(pairs: pl.DataFrame, followed: pl.DataFrame) -> pl.DataFrame:
    """The pairs resolved through merges, each once, as it was last."""
    return resolved(pairs, followed).unique(["a", "b"], keep="last", maintain_order=True)


def listed(corpus: Corpus, pairs: Candidates, among: pl.DataFrame) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Which candidate pairs are listed (columns a, b, ids in any order), and in which row (0 where not)."""
    if among.is_empty():
        return np.zeros(len(pairs), bool), np.zeros(len(pairs), np.int64)
    place = corpus.topics.select("id").with_row_index("place")
    known = among.select("a", "b").with_row_index("row").join(place.rename({"id": "a", "place": "one"}), on="a")
    known = known.join(place.rename({"id": "b", "place": "other"}), on="b").with_columns(
        pl.all().exclude("a", "b").cast(pl.Int64)
    )
    one, other = known["one"].to_numpy(), known["other"].to_numpy()
    wanted = np.minimum(one, other) * len(corpus) + np.maximum(one, other)
    order = np.argsort(wanted)
    keys, wanted, row = pairs.a * len(corpus) + pairs.b, wanted[order], known["row"].to_numpy()[order]
    at = np.minimum(np.searchsorted(wanted, keys), max(0, len(wanted) - 1))
    found = wanted[at] == keys if len(wanted) else np.zeros(len(keys), bool)
    return found, np.where(found, row[at], 0) if len(wanted) else np.zeros(len(keys), np.int64)


def _other_keys(corpus: Corpus, pairs: Candidates) -> NDArray[np.bool_]:
    """Pairs whose topics both have keys and none in common: their source distinguishes them."""
    apart = np.zeros(len(pairs), bool)
    if corpus.keys.is_empty():
        return apart
    ends = pl.DataFrame({"a": pairs.a, "b": pairs.b}).with_row_index("pair")
    both = ends.join(corpus.keys.rename({"row": "a"}), on="a").join(
        corpus.keys.rename({"row": "b"}), on="b", suffix="_b"
    )
    keyed = both.group_by("pair").agg(shared=(pl.col("key") == pl.col("key_b")).any())
    apart[keyed.filter(~pl.col("shared"))["pair"].to_numpy()] = True
    return apart
