"""Placement of evidence that names its topic by id, by key or by title.

Invariant (law L2): placement is a function of the *set* of evidence. It depends neither on the order in which dumps
arrive nor on the nights between them. A topic's id follows from the first of these that an observation has:

1. `topic_id`: that id, as given.
2. `topic_key`: an id made of scope and key.
3. placement `new_topic`: an id made of scope and observation id.
4. `title`: the topic of the scope that already has this normalised title and kind.

For the fourth, every (scope, kind, title) has an id of its own, the *alias*. Among the topics that rules 1
to 3 created with that title, the first one owns the alias; where there is none, the alias is itself the topic.
A title without a kind belongs to the first kind that had it; a title of a form of `memory` leads to no topic. When a
later dump brings an owner, the evidence moves to it, and the alias keeps resolving the old id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from memstate_core.model.evidence import names_a_topic
from memstate_core.model.forms.registry import FORM_KINDS
from memstate_core.model.frames import project
from memstate_core.model.ids import key_id, uuid_expr
from memstate_core.model.step_frames import ALIASES, PLACEMENTS
from memstate_core.model.text import normalised

TITLE, GIVEN_ID, KEY, OBSERVATION = "title", "id", "key", "observation"
REFUSED = "refused"
_GROUP = ("scope", "_kind", "_title")
_FIRST = ("observed_at", "evidence_id")
_REASONS = {
    GIVEN_ID: "topic_id names it",
    KEY: "topic_key names it",
    OBSERVATION: "placement new_topic asks for a topic of its own",
    TITLE: "exact normalised title and kind",
}


@dataclass(frozen=True)
class Placed:
    """Placements of the evidence that names its topic (PLACEMENTS) and the title aliases (ALIASES)."""

    placements: pl.DataFrame
    aliases: pl.DataFrame


def place_named(evidence: pl.DataFrame, owned_elsewhere: pl.DataFrame, settled: Sequence[str] = ()) -> Placed:
    """Places all evidence that names its topic.

    Args:
        evidence: the whole evidence of the shard (columns EVIDENCE); rows that name nothing are skipped.
        owned_elsewhere: topics created by other rules (columns topic_id, scope), so that the id of another
            scope's topic is refused here too.
        settled: topics named by merges in force. An alias among them stays a topic of its own, so that no later
            dump moves evidence that a recorded decision depends on.
    """
    named = _with_owner_scope(_with_anchor(evidence.filter(names_a_topic())), owned_elsewhere)
    aliases = _aliases(named.filter(~pl.col("_foreign") & ~pl.col("_reserved")), settled)
    placed = named.join(aliases.select(anchor="alias", _owner="topic_id"), on="anchor", how="left")
    placed = placed.with_columns(topic_id=pl.coalesce("_owner", "anchor"))
    return Placed(project(_with_operation(placed), PLACEMENTS, nulls=("score",)), aliases)


def _with_anchor(named: pl.DataFrame) -> pl.DataFrame:
    scope, title = pl.col("scope"), pl.col("title")
    by_title = uuid_expr("title", scope, pl.col("_kind"), pl.col("_title"))
    anchors = {
        GIVEN_ID: (pl.col("topic_id").is_not_null(), pl.col("topic_id")),
        KEY: (pl.col("topic_key").is_not_null(), key_id(scope, pl.col("topic_key"))),
        OBSERVATION: (
            pl.col("placement") == "new_topic",
            uuid_expr("observation", scope, pl.col("observation_id")),
        ),
    }
    ids = [pl.when(applies).then(identity) for applies, identity in anchors.values()]
    rules = [pl.when(applies).then(pl.lit(name)) for name, (applies, _) in anchors.items()]
    return (
        named.with_columns(_kind=normalised(pl.col("topic_kind")), _title=pl.when(~_is_form()).then(normalised(title)))
        .with_columns(_alias=pl.when(pl.col("_title").is_not_null()).then(by_title))
        .with_columns(anchor=pl.coalesce(*ids, "_alias"), rule=pl.coalesce(*rules, pl.lit(TITLE)))
    )


def _is_form() -> pl.Expr:
    """Whether a record writes a topic by a form of `memory`, which no title leads to."""
    return pl.col("topic_kind").is_in(FORM_KINDS).fill_null(False)


def _aliases(named: pl.DataFrame, settled: Sequence[str]) -> pl.DataFrame:
    titled = named.filter(pl.col("_title").is_not_null()).sort(_FIRST)
    groups = titled.group_by(*_GROUP, "_alias", maintain_order=True).agg(_order=pl.struct(_FIRST).first())
    eligible = titled.filter(pl.col("rule") != TITLE).join(groups, left_on="anchor", right_on="_alias", how="anti")
    owners = eligible.group_by(_GROUP, maintain_order=True).agg(_owner=pl.col("anchor").first())
    owned = groups.join(owners, on=_GROUP, how="left", nulls_equal=True).with_columns(
        topic_id=pl.coalesce("_owner", "_alias")
    )
    first_kind = (
        owned.filter(pl.col("_kind").is_not_null())
        .sort("_order")
        .group_by("scope", "_title", maintain_order=True)
        .agg(_of_kind=pl.col("topic_id").first())
    )
    kindless = pl.col("_kind").is_null() & pl.col("_owner").is_null()
    resolved = owned.join(first_kind, on=["scope", "_title"], how="left").with_columns(
        topic_id=pl.when(kindless).then(pl.coalesce("_of_kind", "topic_id")).otherwise("topic_id")
    )
    stays = pl.col("_alias").is_in(list(settled))
    kept = resolved.with_columns(topic_id=pl.when(stays).then("_alias").otherwise("topic_id"))
    return project(kept.rename({"_alias": "alias"}), ALIASES)


def _with_owner_scope(named: pl.DataFrame, owned_elsewhere: pl.DataFrame) -> pl.DataFrame:
    titles = named.filter(pl.col("_alias").is_not_null()).select(anchor="_alias", _scope="scope")
    anchors = named.sort(pl.col("rule") == GIVEN_ID, *_FIRST).select("anchor", _scope="scope")
    owners = pl.concat([owned_elsewhere.select(anchor="topic_id", _scope="scope"), titles, anchors])
    owners = owners.unique("anchor", keep="first", maintain_order=True)
    forms = named.filter(_is_form())["anchor"].unique().implode()
    return named.join(owners, on="anchor", how="left").with_columns(
        _foreign=pl.col("_scope") != pl.col("scope"), _reserved=~_is_form() & pl.col("anchor").is_in(forms)
    )


def _with_operation(placed: pl.DataFrame) -> pl.DataFrame:
    is_first = pl.struct(_FIRST).rank("ordinal").over("topic_id", "_reserved") == 1
    derived = (
        pl.when(is_first)
        .then(pl.lit("new_topic"))
        .when(pl.col("fields").list.len() > 0)
        .then(pl.lit("version_field"))
        .otherwise(pl.lit("extend_topic"))
    )
    foreign, reserved = pl.col("_foreign"), pl.col("_reserved")
    refused = foreign | reserved
    return placed.with_columns(
        given=pl.col("placement").is_not_null(),
        operation=pl.when(refused).then(pl.lit(REFUSED)).otherwise(pl.coalesce("placement", derived)),
        reason=pl.when(foreign)
        .then(pl.lit("topic_id belongs to another scope"))
        .when(reserved)
        .then(pl.lit("topic_id is a topic that only a form of memory writes"))
        .otherwise(pl.col("rule").replace_strict(_REASONS)),
        topic_id=pl.when(~refused).then("topic_id"),
    )
