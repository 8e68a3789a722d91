"""Which signs keep pairs from a merge, by what varies among duplicates and what distinguishes namesakes.

A pair with such a sign is never merged by the model alone. Two records of one thing from two duplicate-free sources may
differ more, if they share a code that no other topic has, or one adds letters to the code of the other, and no field
has two other codes.

Two sources have their own vocabularies and prices, so what differs there may vary, as their pairs with one title show.
Some of these pairs are namesakes: two things with one title, such as packs of one product. As many of those are to be
expected over two sources as within a duplicate-free one, by the sizes of the sources, and those within it are seen.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memstate_core.revise.matching.arrays import Codes, Floats, Ints
from memstate_core.revise.matching.candidates.blocking import Candidates
from memstate_core.revise.matching.comparison.differing_values import Flags
from memstate_core.revise.matching.comparison.identifiers import InCommon
from memstate_core.revise.matching.comparison.siblings import FAMILY, Signs, flagged
from memstate_core.revise.matching.comparison.sources import SourceRelations
from memstate_core.revise.matching.comparison.varying_fields import MIN_ANCHORS, VARYING, contradicting_fields

SAME_SHARE = 0.5
"""Nats within which another topic shares as much. From FAMILY on, spelling variants count as different; between
duplicate-free sources beside the copy that each further one of them may hold. Duplicates with one title count once, so
that a group of them is no family."""
MOSTLY = 0.6
"""The share of pairs with unlike summaries up to which summaries vary among duplicates."""
ENDS_AT_ONCE = 8_000_000
"""Topics of pairs that are counted at a time: some 600 MiB."""
REASONS = ("", "title", "number", "field", "summary", "addition", "wording")
"""What contradicts, by code: nothing, units of the titles, a number of one title alone, a field, the summaries, words
that one title of a family adds, the same words in another order, with other accents or with more words."""
BY_TITLE, BY_WORDING = 1, 6


def contradiction(
    found: Signs,
    pairs: Candidates,
    relations: SourceRelations,
    merged: pl.DataFrame,
    *,
    namesakes: Flags,
    common: InCommon,
) -> Codes:
    """Which sign keeps each pair from a merge: its position in REASONS, 0 for none (pairs,).

    Args:
        found: signs of the pairs.
        pairs: the pairs.
        relations: how their sources relate.
        merged: fields of pairs that earlier runs merged (columns MERGED_FIELDS).
        namesakes: pairs that may be namesakes, of `namesakes_across` (pairs,).
        common: pairs that share a value which no source has twice.
    """
    copies = np.where(relations.competing, max(0, relations.distinct - 2), 0)
    family = _family(found.shared, found.titles, pairs) >= FAMILY + copies
    excused = relations.competing & (found.code | found.stem) & ~found.coded
    alone = ~relations.competing
    title = (found.title | (found.strict & family)) & ~excused
    differing = flagged(found.fields.filter("contradicts"), len(pairs))
    field = (contradicting_fields(found, pairs, relations, merged, common) | (namesakes & differing)) & ~excused
    summary = (found.summary | _unlike_summaries(found, alone)) & alone
    replaced = found.own & ~alone & ~found.agreed
    by_reason = (
        title,
        found.number & alone,
        field,
        summary | ((namesakes | replaced) & ~excused),
        found.added & alone,
        found.wording & alone,
    )
    return np.select(by_reason, np.arange(1, len(REASONS), dtype=np.int8), np.int8(0))


def _unlike_summaries(found: Signs, alone: Flags) -> Flags:
    """Pairs with one title whose summaries have little in common, unless summaries are seen to vary (pairs,).

    Two deals of one customer have one title, so it alone says little. What else may show that two topics are one, the
    fields, must agree in the pairs that show whether summaries vary.
    """
    shown = alone & found.equal & ~flagged(found.fields.filter("contradicts"), len(found.shared))
    shown &= flagged(found.fields, len(found.shared))
    share = float(found.unlike[shown].mean()) if shown.sum() >= MIN_ANCHORS else 0.0
    return np.zeros_like(found.unlike) if VARYING <= share <= MOSTLY else found.unlike


def namesakes_across(found: Signs, relations: SourceRelations, merged: pl.DataFrame) -> Flags:
    """Pairs with one title over two sources that differ in what distinguishes namesakes in a clean one (pairs,).

    Of the pairs that contradict each other in the same parts, those that were merged included, as many are namesakes as
    those within duplicate-free sources let expect; about two standard deviations of a Poisson count are added. From a
    share of VARYING on, none of them counts as a duplicate.

    Args:
        found: signs of the pairs.
        relations: how their sources relate.
        merged: fields of pairs that earlier runs merged (columns MERGED_FIELDS).
    """
    parts = _contradicting_parts(found, found.equal & (relations.competing | relations.same))
    within = relations.same[parts["pair"].to_numpy()]
    apart = parts.filter(within).group_by("parts").agg(apart=pl.len().cast(pl.Float64))
    before = _combined(merged.filter("across", "titled", "differs"), "merge").group_by("parts").agg(before=pl.len())
    across = parts.filter(~within).with_columns(pairs=pl.len().over("parts")).join(apart, on="parts")
    alike = pl.col("pairs") + pl.col("before").fill_null(0)
    expected = relations.across_by_same * (pl.col("apart") + 2 * pl.col("apart").sqrt())
    likely = across.join(before, on="parts", how="left").filter(expected > VARYING * alike)
    return flagged(likely, len(found.shared))


def _contradicting_parts(found: Signs, some: Flags) -> pl.DataFrame:
    """In what pairs contradict each other (columns pair, parts): fields by their names, and the summary without one."""
    fields = found.fields.filter("contradicts").select("pair", "name")
    summaries = pl.DataFrame({"pair": np.flatnonzero(found.summary)}, schema={"pair": fields.schema["pair"]})
    parts = pl.concat([fields, summaries.with_columns(name=pl.lit(""))])
    return _combined(parts.filter(pl.col("pair").is_in(np.flatnonzero(some))), "pair")


def _combined(rows: pl.DataFrame, pair: str) -> pl.DataFrame:
    """The names of each pair as one text (columns pair and parts)."""
    return rows.group_by(pair, maintain_order=True).agg(parts=pl.col("name").sort().str.join("\0"))


def _family(shared: Floats, titles: Ints, pairs: Candidates) -> NDArray[np.int32]:
    """How many other titles share as much with a topic of the pair; the fewer of both topics (pairs,).

    Topics are looked at in blocks, whose pairs are in memory at a time.
    """
    fewest = np.full(len(pairs), np.iinfo(np.int32).max, np.int32)
    blocks = 1 + 2 * len(pairs) // ENDS_AT_ONCE
    for start, stop in pairwise(np.linspace(0, len(titles), blocks + 1).astype(np.int64)):
        rows = [np.flatnonzero((end >= start) & (end < stop)) for end in (pairs.a, pairs.b)]
        topic = np.concatenate([pairs.a[rows[0]], pairs.b[rows[1]]])
        other = titles[np.concatenate([pairs.b[rows[0]], pairs.a[rows[1]]])]
        weight = np.minimum(shared[np.concatenate(rows)].astype(np.float64), 900.0)
        counts = np.split(_as_much(topic - start, other, weight, int(stop - start)), [len(rows[0])])
        for row, count in zip(rows, counts, strict=True):
            fewest[row] = np.minimum(fewest[row], count - 1)
    return fewest


def _as_much(topic: Ints, other: Ints, weight: NDArray[np.float64], topics: int) -> Ints:
    """How many titles share as much with the topic of each row as that of the row does (rows,).

    Args:
        topic: positions (rows,).
        other: the title of the other topic (rows,).
        weight: nats that the titles share, below 1000 (rows,).
        topics: how many topics there are.
    """
    order = np.lexsort((-weight, other, topic))
    first = np.diff(topic[order], prepend=-1).astype(bool) | np.diff(other[order], prepend=-1).astype(bool)
    key = np.sort((topic * 1000.0 + weight)[order[first]])
    last = np.searchsorted(key, np.arange(topics) * 1000.0 + 999)
    return np.asarray(last[topic] - np.searchsorted(key, topic * 1000.0 + weight - SAME_SHARE))
