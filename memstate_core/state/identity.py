"""Following ids to the topic that answers for them today: title aliases, then merges, to the end."""

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
    for _ in range(64):
        step = followed.select(survivor="dropped", _next="survivor")
        moved = followed.join(step, on="survivor", how="left")
        if moved["_next"].is_null().all():
            return followed
        followed = moved.select("dropped", survivor=pl.coalesce("_next", "survivor"))
    raise ValueError("merges form a circle; the transitions of this ledger contradict each other")


def owning(ids: pl.Expr, aliases: pl.DataFrame) -> pl.Expr:
    """The topic that an id stands for before merges are followed: its alias's owner, else itself."""
    return ids.replace(aliases["alias"], aliases["topic_id"])


def answering(ids: pl.Expr, aliases: pl.DataFrame, followed: pl.DataFrame) -> pl.Expr:
    """The topic that answers for an id: its alias's owner, then the survivor of that."""
    return owning(ids, aliases).replace(followed["dropped"], followed["survivor"])
