"""Which fields contradict each other, beside those that vary among duplicates.

Pairs that are duplicates for other reasons show what varies. Between duplicate-free sources these are pairs with the
same title or a code of their own; elsewhere, pairs with the same title and summary. What varies is written, measured or
set by each source in its own way, as genres and prices are. Where two sources mostly state the same, what differs is a
change or an error: two exports of one store state the same facts, but for those that changed between them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from memstate_core.revise.matching.candidates.blocking import Candidates
from memstate_core.revise.matching.comparison.differing_values import Flags
from memstate_core.revise.matching.comparison.identifiers import InCommon
from memstate_core.revise.matching.comparison.siblings import Signs, flagged
from memstate_core.revise.matching.comparison.sources import SourceRelations

MIN_ANCHORS, VARYING = 30, 0.1
"""Pairs that show whether a part varies among duplicates, and the share of contradictions from which it does."""
DISTINGUISHING = 0.35
"""The share of contradictions among identical pairs beyond which a field distinguishes things of one text."""
MOSTLY_SAME = 0.5
"""The share of contradictions below which a field is mostly the same among duplicates."""
OFTEN, OWN = 0.25, 0.75
"""The shares of contradictions over two sources from which values of a field are errors where rare values agree, and
from which they are each source's own."""
STATED = 0.25
"""The share of pairs that agree in a field from which both sources write it in one way."""


@dataclass(frozen=True)
class _Anchors:
    """Pairs that are duplicates for other reasons.

    Attributes:
        among: the pairs that they say something about (pairs,).
        shown: the anchors (pairs,).
        earlier: pairs among those that earlier runs merged (columns MERGED_FIELDS).
        most: the share of contradictions beyond which a field does not vary, but distinguishes things.
        own: the share from which its values are each source's own; 0 where nothing depends on sources.
    """

    among: Flags
    shown: Flags
    earlier: pl.Expr
    most: float
    own: float


def contradicting_fields(
    found: Signs, pairs: Candidates, relations: SourceRelations, merged: pl.DataFrame, common: InCommon
) -> Flags:
    """Pairs with a field that contradicts, other than fields that are seen to vary among duplicates (pairs,).

    Where siblings have the same title and summary, the pairs that show what varies contradict each other in the field
    that distinguishes the siblings, so a field varies there only if most of them agree, and else its values must be the
    same: in two formats, those of siblings hardly ever contradict each other. Values that neither agree nor contradict
    each other say nothing about what varies. Pairs that share an identifier may differ in the words of texts.

    Between duplicate-free sources, values that differ in most pairs are each source's own. Numbers and days that differ
    in fewer are changes, errors, or those of namesakes; only errors are in pairs that share a value which no source has
    twice, or, if they are frequent, in those that agree in rare values. Words are spelt by each source in its own way;
    but where both mostly state the same, a word that is not its source's own needs such values, too. Where all fields
    contradict each other, of which two are mostly the same in these pairs, the title alone is no reason to take that
    for chance.

    Args:
        found: signs of the pairs.
        pairs: the pairs.
        relations: how their sources relate.
        merged: fields of pairs that earlier runs merged (columns MERGED_FIELDS).
        common: pairs that share a value which no source has twice.
    """
    competing, within = relations.competing, ~pl.col("across") & pl.col("identical")
    sole = found.equal & ~_repeated(found, pairs, relations)
    sets = (
        _Anchors(competing, competing & (sole | found.code), pl.col("across"), 1.0, OWN),
        _Anchors(~competing, ~competing & found.identical, within, DISTINGUISHING, 0.0),
    )
    contradicts = np.zeros(len(found.shared), bool)
    for anchors in sets:
        wrong = _wrong(found, anchors, merged, common)
        contradicts |= flagged(found.fields.filter(wrong), len(contradicts)) & anchors.among
    return contradicts


def _repeated(found: Signs, pairs: Candidates, relations: SourceRelations) -> Flags:
    """Pairs of which a source has the title of either topic several times, so that it names more than one thing."""
    repeated = np.zeros(len(found.titles), bool)
    again = pairs.where(relations.within & found.equal)
    repeated[again.a] = repeated[again.b] = True
    return np.asarray(repeated[pairs.a] | repeated[pairs.b])


def _wrong(found: Signs, anchors: _Anchors, merged: pl.DataFrame, common: InCommon) -> pl.Expr:
    """Which fields of pairs contradict each other, given the anchors (rows of `Signs.fields`)."""
    counts = _counts(found.fields, anchors, merged)
    share, enough = pl.col("share"), pl.col("len") >= MIN_ANCHORS
    varies = enough & share.is_between(VARYING, anchors.most)
    own, often, varied, apart, mostly_same, stated = (
        pl.col("name").is_in(counts.filter(chosen)["name"].implode())
        for chosen in (
            varies & (share >= anchors.own),
            varies & (share >= OFTEN),
            varies,
            enough & (share > anchors.most),
            share < MOSTLY_SAME,
            pl.col("agree") >= STATED,
        )
    )
    identified, in_error, agree = (
        pl.col("pair").is_in(np.flatnonzero(some)) for some in (common.identifier, common.value, found.agreed)
    )
    spelt = pl.col("worded") & (pl.col("own") | ~stated | agree)
    varying = own | (often & agree) | (varied & (in_error | spelt))
    of_some = pl.col("contradicts") & mostly_same
    in_all = pl.col("contradicts").all().over("pair") & (of_some.sum().over("pair") >= 2)
    excused = pl.col("worded") & identified
    return (pl.col("contradicts") & ~excused & (~varying | in_all)) | (apart & ~pl.col("same"))


def _counts(fields: pl.DataFrame, anchors: _Anchors, merged: pl.DataFrame) -> pl.DataFrame:
    """How the fields of anchors compare.

    Returns:
        Columns name, len (anchors that agree or contradict each other), share (of contradictions among these), and
        agree (the share of all anchors with the field that agree).
    """
    shown = fields.filter(pl.col("pair").is_in(np.flatnonzero(anchors.shown)))
    before = merged.filter(anchors.earlier).select("name", contradicts="differs", same=~pl.col("differs"))
    every = pl.concat([shown.select("name", "contradicts", pl.col("same").fill_null(False)), before])
    compared = pl.col("contradicts") | pl.col("same")
    return every.group_by("name").agg(
        len=compared.sum(), share=pl.col("contradicts").filter(compared).mean(), agree=pl.col("same").mean()
    )
