"""Resolves ids to the topics that hold their content today: title aliases, then merges, to the end of the chain."""

from __future__ import annotations

import polars as pl


def survivors(merges: pl.DataFrame) -> pl.DataFrame:
    """Each dropped topic with its last survivor (columns dropped, survivor).

    A merged into b and b into c gives a to c. The number of passes grows with the logarithm of the
    longest chain, since each pass doubles the distance followed.

    Raises:
        ValueError: the merges form a circle, which no decision of this system can make.
    """
    followed = merges.select("dropped", "survivor")
    if followed.is_empty():
        return followed
    for _ in range(64):
        step = followed.select(survivor="dropped", _next="survivor")
        moved = followed.join(step, on="survivor", how="left")
        if moved["_next"].is_null().all():
            return followed
        followed = moved.select("dropped", survivor=pl.coalesce("_next", "survivor"))
    raise ValueError("merges form a circle; the transitions of this ledger contradict each other")


def across_scopes(merges: pl.DataFrame, homes: pl.DataFrame) -> pl.DataFrame:
    """The merges whose ends belong to different scopes, or to another scope than that of the decision.

    Such a merge arises when evidence of another scope takes over the id of one of its ends after the merge was
    decided. It must not be followed, since it would carry evidence from one scope into another.

    Args:
        merges: columns dropped, survivor, scope among others.
        homes: the scope of each topic that has evidence (columns topic_id, scope), before merges.

    Returns:
        Rows of `merges`.
    """
    if merges.is_empty():
        return merges
    ends = merges
    for end in ("dropped", "survivor"):
        ends = ends.join(
            homes.select(**{end: "topic_id", f"_{end}": "scope"}), on=end, how="left", maintain_order="left"
        )
    foreign = [(pl.col(f"_{end}") != pl.col("scope")).fill_null(False) for end in ("dropped", "survivor")]
    return ends.filter(pl.any_horizontal(foreign)).select(merges.columns)


def homes(placements: pl.DataFrame) -> pl.DataFrame:
    """The scope of each topic that has evidence (columns topic_id, scope)."""
    return (
        placements.filter(pl.col("topic_id").is_not_null()).select("topic_id", "scope").unique("topic_id", keep="any")
    )


def owning(ids: pl.Expr, aliases: pl.DataFrame) -> pl.Expr:
    """The topic that an id resolves to before merges are followed: its alias's owner, else itself."""
    return ids.replace(aliases["alias"], aliases["topic_id"])


def answering(ids: pl.Expr, aliases: pl.DataFrame, followed: pl.DataFrame) -> pl.Expr:
    """The topic that an id resolves to: its alias's owner, then the survivor of its merges."""
    return owning(ids, aliases).replace(followed["dropped"], followed["survivor"])
