"""Verdicts on pairs of topics: open pairs, and the decisions that follow from a verdict.

`same` merges the two at once, `different` keeps them apart for good, `skip` puts the pair last. A pair may also name a
merge: the topic merged away and the one that it was merged into (`merge_verdicts`).
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from memstate_core.model.errors import VerdictRefused
from memstate_core.model.frames import Schema, project
from memstate_core.model.ledger_tables import DECISION
from memstate_core.model.step_frames import PAIRS
from memstate_core.model.verdicts import DIFFERENT, SAME, SKIP
from memstate_core.revise.matching.clustering import joined
from memstate_core.revise.merge_verdicts import verdicts_on_merges
from memstate_core.revise.suggestions import drawn, likely
from memstate_core.run.served_state import Served
from memstate_core.state.fold.decisions import (
    ARCHIVED,
    JUDGED,
    MERGED,
    PERSON,
    judgements,
    merges,
    suggestions,
)
from memstate_core.state.fold.identity import survivors

VERDICT: Schema = {"a": pl.String, "b": pl.String, "verdict": pl.String}
"""A verdict on two topics: same, different or skip."""


def open_pairs(served: Served) -> pl.DataFrame:
    """Suggested pairs in the order in which to decide them: by descending value, then the likely ones, then at random.

    Skipped ones are last. A pair with an archived topic is left out until the topic is active again.

    Returns:
        Columns a, b, scope, probability, weight, value, pair_kind, features, skipped.
    """
    verdicts = judgements(served.transitions)
    active = served.topics.filter(pl.col("state") == "active")["id"].implode()
    waiting = suggestions(served.transitions).filter(pl.col("a").is_in(active) & pl.col("b").is_in(active))
    known = waiting.join(verdicts, on=["a", "b"], how="left")
    rows = known.with_columns(skipped=pl.col("verdict").eq_missing(pl.lit(SKIP))).drop("verdict")
    return rows.sort("skipped", "value", likely(), drawn(), descending=[False, True, True, False], nulls_last=True)


def verdict_decisions(served: Served, verdicts: Sequence[tuple[str, str, str]]) -> pl.DataFrame:
    """Decisions (columns DECISION) that record verdicts, and the merges and undone merges that follow.

    Args:
        served: the shard that holds the topics.
        verdicts: two topics and the verdict (same, different, skip); a topic that was merged away means
            the one it resolves to, but where the two are one topic today, in which case they name a merge.

    Raises:
        VerdictRefused: a pair lies in two scopes, or is one topic and names no merge in force, or the verdicts
            contradict an earlier verdict `different`.
    """
    raw = pl.DataFrame(list(verdicts), orient="row", schema=VERDICT).with_columns(given_a="a", given_b="b")
    living = raw.with_columns(served.answering(pl.col("a", "b")))
    are_one = living["a"] == living["b"]
    given = _scoped(served, _ordered(living.filter(~are_one)))
    _refuse_unnamed(served, given.filter(pl.col("verdict") == SAME))
    _refuse_archived(served, given.filter(pl.col("verdict") == SAME))
    on_merges, undone = verdicts_on_merges(served, _ordered(raw.filter(are_one)))
    rows = pl.concat([undone, _judged(on_merges), _judged(given), _merged(served, given)])
    _refuse_contradictions(served.transitions.select(DECISION.keys()), rows)
    return rows


def _scoped(served: Served, given: pl.DataFrame) -> pl.DataFrame:
    """The verdicts with the one scope of both topics."""
    scopes = dict(served.topics.select("id", "scope").iter_rows())
    homes = {end: pl.col(end).replace_strict(scopes, return_dtype=pl.String) for end in ("a", "b")}
    for a, b in given.filter(homes["a"] != homes["b"]).select("a", "b").iter_rows():
        raise VerdictRefused(a, b, "they belong to different scopes, and nothing is compared across scopes")
    return given.with_columns(scope=homes["a"])


def _refuse_unnamed(served: Served, same: pl.DataFrame) -> None:
    """Refuses `same` on a pair judged different unless it names the two themselves, not topics merged into them."""
    different = judgements(served.transitions).filter(pl.col("verdict") == DIFFERENT)
    unnamed = pl.min_horizontal("given_a", "given_b") != pl.col("a")
    unnamed = unnamed | (pl.max_horizontal("given_a", "given_b") != pl.col("b"))
    for row in same.filter(unnamed).join(different, on=["a", "b"], how="semi").iter_rows(named=True):
        why = f"{row['a']} and {row['b']} answer for them and were judged different; name these two to change that"
        raise VerdictRefused(row["given_a"], row["given_b"], why)


def _refuse_archived(served: Served, same: pl.DataFrame) -> None:
    archived = served.topics.filter(pl.col("state") == ARCHIVED)["id"]
    for a, b in same.select("a", "b").iter_rows():
        for topic in (a, b):
            if topic in archived:
                raise VerdictRefused(a, b, f"{topic} is archived; `memstate undo {topic}` brings it back first")


def _ordered(given: pl.DataFrame) -> pl.DataFrame:
    """The last verdict on each pair, its smaller id first."""
    turned = pl.col("a") > pl.col("b")
    ends = {"a": pl.when(turned).then("b").otherwise("a"), "b": pl.when(turned).then("a").otherwise("b")}
    return given.with_columns(**ends).unique(["a", "b"], keep="last", maintain_order=True)


def _judged(given: pl.DataFrame) -> pl.DataFrame:
    payload = pl.struct("a", "b", "verdict", actor=pl.lit(PERSON)).struct.json_encode()
    reason = pl.format("judged {} by a person", "verdict")
    return project(
        given.with_columns(kind=pl.lit(JUDGED), topic_id="a", payload_json=payload, reason=reason),
        DECISION,
        nulls=("evidence_ids",),
    )


def _merged(served: Served, given: pl.DataFrame) -> pl.DataFrame:
    """Merges of what is the same; the oldest topic (created_at, then id) survives."""
    same = given.filter(pl.col("verdict") == SAME)
    members = joined(same).join(served.topics, on="id").sort("group", "created_at", "id")
    oldest = {"survivor": "id", "survivor_title": "title"}
    ranked = members.with_columns(**{name: pl.col(of).first().over("group") for name, of in oldest.items()})
    known = suggestions(served.transitions).select("a", "b", "weight", "features")
    pair = {"a": pl.min_horizontal("id", "survivor"), "b": pl.max_horizontal("id", "survivor")}
    dropped = ranked.filter(pl.col("id") != pl.col("survivor")).with_columns(**pair)
    dropped = dropped.join(known, on=["a", "b"], how="left").sort("id")
    payload = pl.struct(
        "survivor",
        "survivor_title",
        "weight",
        pl.col("features").fill_null(pl.lit([], dtype=PAIRS["features"])),
        dropped_title="title",
        dropped_kind="topic_kind",
        probability=pl.lit(1.0),
        actor=pl.lit(PERSON),
    )
    rows = dropped.with_columns(kind=pl.lit(MERGED), topic_id="id", payload_json=payload.struct.json_encode())
    return project(rows.with_columns(reason=pl.lit("judged the same by a person")), DECISION, nulls=("evidence_ids",))


def _refuse_contradictions(before: pl.DataFrame, rows: pl.DataFrame) -> None:
    known = _torn(before)
    for a, b in _torn(pl.concat([before, rows])).join(known, on=["a", "b"], how="anti").iter_rows():
        raise VerdictRefused(a, b, "the two were judged different, and these verdicts would make them one topic")


def _torn(decisions: pl.DataFrame) -> pl.DataFrame:
    """Pairs judged different that merges in force join (columns a, b)."""
    followed = survivors(merges(decisions))
    apart = judgements(decisions).filter(pl.col("verdict") == DIFFERENT)
    roots = [pl.col(end).replace(followed["dropped"], followed["survivor"]) for end in ("a", "b")]
    return apart.filter(roots[0] == roots[1]).select("a", "b")
