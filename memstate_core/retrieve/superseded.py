"""What evidence states, by the histories of fields: which states values at all, and which was superseded by later one.

Invariant: evidence that states a current value, or one in open conflict with it, is not superseded. What a segment is
(its participants, session and period) is stated by none of its turns.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import numpy as np
import polars as pl

from memstate_core.model.frames import Schema
from memstate_core.retrieve.facts.conflicts import open_rivals
from memstate_core.retrieve.facts.in_force import in_force
from memstate_core.retrieve.index.windows import MISSING
from memstate_core.retrieve.scope_data import Flags, Rows, places_of
from memstate_core.state.fold.assertions import SEGMENT_FIELDS

SLOT = ("topic_id", "name")
SUPERSEDED: Schema = {"topic_id": pl.String, "name": pl.String, "evidence_id": pl.String}
"""A field, and evidence of an earlier value of it."""


def superseded_evidence(revisions: pl.DataFrame) -> pl.DataFrame:
    """The evidence that states earlier values of fields and no current one (columns SUPERSEDED), sorted.

    Args:
        revisions: whole histories, of any parts of topics (columns REVISIONS; value, type and reasons are not needed).
    """
    stated = revisions.filter((pl.col("part") == "field") & ~pl.col("name").is_in(SEGMENT_FIELDS))
    newest = stated.filter(pl.col("rank") == 0)
    current = pl.concat([newest["id"], open_rivals(newest)["rival"]]).implode()
    pairs = stated.select(*SLOT, holds=pl.col("id").is_in(current), evidence_id="evidence_ids").explode("evidence_id")
    holding = pairs.filter("holds").select("evidence_id")
    earlier = pairs.filter(~pl.col("holds") & pl.col("evidence_id").is_not_null())
    rows = earlier.join(holding, on="evidence_id", how="anti").select(SUPERSEDED.keys())
    return rows.unique().sort(SUPERSEDED.keys())


def superseded_in_force(
    superseded: pl.DataFrame, histories: pl.DataFrame, current: pl.DataFrame, moment: datetime
) -> pl.DataFrame:
    """Superseded evidence where the newest values of some fields begin after a moment (columns SUPERSEDED).

    Args:
        superseded: what the newest values superseded, whether they have begun or not (columns SUPERSEDED).
        histories: the whole histories of the fields of which the newest value has not (columns REVISIONS).
        current: the values in force, and those in open conflict with them (columns REVISIONS).
        moment: the moment.

    Evidence of a value that begins later is not superseded by the value in force.
    """
    began = superseded_evidence(in_force(histories, moment)).select(SUPERSEDED.keys())
    others = superseded.select(SUPERSEDED.keys()).join(histories.select(SLOT).unique(), on=SLOT, how="anti")
    to_come = histories.filter(pl.col("valid_from") > moment)
    holding = pl.concat([current["evidence_ids"], to_come["evidence_ids"]]).explode().drop_nulls()
    rows = pl.concat([others, began]).filter(~pl.col("evidence_id").is_in(holding.implode()))
    return rows.sort(SUPERSEDED.keys())


@dataclass(frozen=True)
class Statements:
    """What the rows of a scope's evidence state.

    Attributes:
        stating: whether a row states a value of a field (n).
        superseding: the last row that states the value that superseded a row's own; `MISSING` without one (n).
    """

    stating: Flags
    superseding: Rows


def statements(superseded: pl.DataFrame, revisions: pl.DataFrame, evidence: pl.Series) -> Statements:
    """What rows of evidence state.

    Args:
        superseded: columns SUPERSEDED.
        revisions: those that hold, and any others (columns REVISIONS; value, type and reasons are not needed).
        evidence: the ids of the rows, in the order of observation (n).
    """
    stated = revisions.filter((pl.col("part") == "field") & ~pl.col("name").is_in(SEGMENT_FIELDS))
    current = stated.filter(pl.col("rank") == 0).select(*SLOT, by="evidence_ids").explode("by")
    stating = np.zeros(len(evidence) + 1, dtype=np.bool_)  # `MISSING` is the last row
    for ids in (stated["evidence_ids"].explode(), superseded["evidence_id"]):
        stating[places_of(ids, evidence)] = True
    return Statements(stating[:-1], _superseding(superseded, current, evidence))


def _superseding(superseded: pl.DataFrame, current: pl.DataFrame, evidence: pl.Series) -> Rows:
    found = np.full(len(evidence), MISSING)
    if superseded.is_empty():
        return found
    ids = current.with_columns(by_row=pl.Series(places_of(current["by"], evidence)))
    pairs = superseded.join(ids.group_by(SLOT).agg(pl.col("by_row").max()), on=SLOT)
    rows, by_rows = places_of(pairs["evidence_id"], evidence), pairs["by_row"].to_numpy()
    known = rows != MISSING
    np.maximum.at(found, rows[known], by_rows[known])
    return found
