"""The state that follows from the ledger alone: the topic of each piece of evidence, merges, the ladder state.

Ids follow from what evidence names (id, key, observation, title), turns follow their recorded segment, and both
follow the merges in force. The graph and the served files are compared with this state.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import polars as pl

from memstate_core.model.forms.item import REFERENCE
from memstate_core.model.forms.registry import FORM_KINDS
from memstate_core.model.frames import MOMENT, project
from memstate_core.model.ids import key_id, uuid_expr
from memstate_core.model.ledger_tables import FIELD_VALUE
from memstate_core.model.step_frames import SEGMENT_EDGE
from memstate_core.model.text import normalised
from memstate_core.night.checks.recorded import Recorded
from memstate_core.state.fold import decisions as kinds

_SEGMENT = pl.Struct(
    {
        **dict.fromkeys(("title", "summary", "topic_kind", "session_id"), pl.String),
        "participants": pl.List(pl.String),
        "began_at": MOMENT,
        "ended_at": MOMENT,
        "fields": pl.List(FIELD_VALUE),
        "links": pl.List(SEGMENT_EDGE),
    }
)
_FIRST = ("observed_at", "evidence_id")


@dataclass(frozen=True)
class Derived:
    """The state that the ledger implies.

    Attributes:
        merges: merges in force, as decided (columns dropped, survivor, scope).
        survivors: each merged topic with the one that it resolves to (columns dropped, survivor).
        circular: merged topics whose merges lead in a circle (column dropped).
        aliases: ids that titles would have, with the topic that owns the title (columns alias, scope, topic_id),
            merges not followed.
        homes: the topic of each piece of evidence, merges followed (columns evidence_id, scope, topic_id, at).
        segments: recorded segments with the topics that hold them now (columns topic_id, scope, evidence_ids and
            the payload).
    """

    merges: pl.DataFrame
    survivors: pl.DataFrame
    circular: pl.DataFrame
    aliases: pl.DataFrame
    homes: pl.DataFrame
    segments: pl.DataFrame

    def answering(self, ids: pl.Expr) -> pl.Expr:
        """The topic that an id resolves to: the owner of its title, then the survivor of merges."""
        owned = ids.replace(self.aliases["alias"], self.aliases["topic_id"])
        return owned.replace(self.survivors["dropped"], self.survivors["survivor"])


def derive(recorded: Recorded) -> Derived:
    """Computes the state that the ledger implies."""
    merges = merges_in_force(recorded.transitions)
    survivors, circular = followed(merges)
    segments = _segments(recorded.transitions)
    named = _anchored(recorded.evidence, segments)
    settled = pl.concat([merges["dropped"], merges["survivor"]])
    aliases = _aliases(named.filter("_own"), settled)
    account = Derived(merges, survivors, circular, aliases, pl.DataFrame(), segments)
    turns = segments.select("topic_id", evidence_id="evidence_ids").explode("evidence_id", empty_as_null=True)
    placed = pl.concat(
        [named.filter("_own").select("evidence_id", topic_id="anchor"), turns.select("evidence_id", "topic_id")]
    )
    aliases = pl.concat([aliases, _references(recorded.evidence, placed, account)])
    account = replace(account, aliases=aliases)
    known = recorded.evidence.select("evidence_id", "scope", at="observed_at")
    homes = placed.with_columns(account.answering(pl.col("topic_id"))).join(known, on="evidence_id")
    homes = homes.filter(~pl.col("topic_id").str.starts_with(REFERENCE))
    return Derived(
        merges=merges,
        survivors=survivors,
        circular=circular,
        aliases=aliases,
        homes=homes.select("evidence_id", "scope", "topic_id", "at"),
        segments=segments.with_columns(account.answering(pl.col("topic_id"))),
    )


def _references(evidence: pl.DataFrame, placed: pl.DataFrame, account: Derived) -> pl.DataFrame:
    """The observations that forms refer to, with the topic of each (columns scope, alias, topic_id)."""
    targets = [
        evidence["topic_id"],
        evidence["edges"].explode().struct.field("to_topic_id"),
        evidence["fields"].explode().struct.field("ref_topic_id"),
    ]
    wanted = pl.concat(targets).drop_nulls().unique()
    wanted = wanted.filter(wanted.str.starts_with(REFERENCE))
    if not wanted.len():
        return account.aliases.clear()
    name = pl.format(f"{REFERENCE}{{}}:observation:{{}}", "scope", "observation_id")
    found = evidence.select("evidence_id", "scope", alias=name).filter(pl.col("alias").is_in(wanted.implode()))
    owner = pl.col("topic_id").replace(account.aliases["alias"], account.aliases["topic_id"])
    found = found.join(placed.select("evidence_id", owner), on="evidence_id")
    own = dict(found.select("alias", "topic_id").iter_rows())
    ends = [_end(own, alias) for alias in found["alias"]]
    rows = found.select("scope", "alias", topic_id=pl.Series(ends, dtype=pl.String))
    return rows.filter(~pl.col("topic_id").str.starts_with(REFERENCE))


def _end(own: dict[str, str], alias: str) -> str:
    """Where a reference leads over others; in a circle that is one of them."""
    topic_id = own[alias]
    for _ in own:
        if topic_id not in own:
            break
        topic_id = own[topic_id]
    return topic_id


def merges_in_force(transitions: pl.DataFrame) -> pl.DataFrame:
    """Merges that were not undone since (columns dropped, survivor, scope, seq), in order."""
    rows = transitions.filter(pl.col("kind").is_in([kinds.MERGED, kinds.UNMERGED])).sort("seq")
    last = rows.unique("topic_id", keep="last", maintain_order=True).filter(pl.col("kind") == kinds.MERGED)
    survivor = pl.col("payload_json").str.json_path_match("$.survivor")
    return last.select("scope", "seq", dropped="topic_id", survivor=survivor)


def followed(merges: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Each merged topic with the end of its chain, and topics in a circle (columns dropped, survivor; dropped)."""
    hop = merges.select(survivor="dropped", _next="survivor")
    chain = merges.select("dropped", "survivor")
    for _ in range(merges.height):
        longer = chain.join(hop, on="survivor", how="left", maintain_order="left")
        if longer["_next"].is_null().all():
            break
        chain = longer.select("dropped", survivor=pl.coalesce("_next", "survivor"))
    circular = chain.filter(pl.col("survivor").is_in(merges["dropped"].implode()))
    return chain, circular.select("dropped")


def in_force(rows: pl.DataFrame, key: list[str], taken: str, back: str) -> pl.DataFrame:
    """The last row of each key whose step was not reversed since (rows in order, `kind` among the columns)."""
    own = rows.filter(pl.col("kind").is_in([taken, back])).drop_nulls(key)
    return own.unique(key, keep="last", maintain_order=True).filter(pl.col("kind") == taken)


def _segments(transitions: pl.DataFrame) -> pl.DataFrame:
    rows = transitions.filter(pl.col("kind") == kinds.SEGMENT_PLACED).sort("seq")
    payload = pl.col("payload_json").str.json_decode(_SEGMENT)
    return rows.select("topic_id", "scope", "evidence_ids", _payload=payload).unnest("_payload")


def _anchored(evidence: pl.DataFrame, segments: pl.DataFrame) -> pl.DataFrame:
    """Evidence that names its topic, with the id it leads to (`anchor`) and whether that is of its scope (`_own`)."""
    named = evidence.filter(pl.any_horizontal(pl.col("topic_id", "topic_key", "title").is_not_null()))
    named = named.with_columns(_kind=normalised(pl.col("topic_kind")), _title=normalised(pl.col("title")))
    by_form = pl.col("topic_kind").is_in(FORM_KINDS).fill_null(False)
    named = named.with_columns(_title=pl.when(~by_form).then("_title"))
    title = uuid_expr("title", pl.col("scope"), pl.col("_kind"), pl.col("_title"))
    named = named.with_columns(_alias=pl.when(pl.col("_title").is_not_null()).then(title))
    by_key = key_id(pl.col("scope"), pl.col("topic_key"))
    alone = uuid_expr("observation", pl.col("scope"), pl.col("observation_id"))
    given, keyed = pl.col("topic_id").is_not_null(), pl.col("topic_key").is_not_null()
    own_topic = pl.col("placement").eq_missing(pl.lit("new_topic"))
    named = named.with_columns(
        anchor=pl.when(given).then("topic_id").when(keyed).then(by_key).when(own_topic).then(alone).otherwise("_alias"),
        _rank=pl.when(given).then(3).otherwise(2),
        _by_title=~(given | keyed | own_topic),
    )
    turns = segments.select(anchor="topic_id", scope="scope", _rank=pl.lit(0))
    titles = named.drop_nulls("_alias").select(anchor="_alias", scope="scope", _rank=pl.lit(1))
    columns = {name: named.schema[name] for name in ("anchor", "scope", "_rank", *_FIRST)}
    candidates = pl.concat([project(rows, columns, nulls=_FIRST) for rows in (turns, titles, named)])
    owners = candidates.sort("_rank", *_FIRST).unique("anchor", keep="first", maintain_order=True)
    owned = named.join(owners.select("anchor", _of="scope"), on="anchor", how="left")
    written = owned.filter(by_form)["anchor"].unique().implode()
    return owned.with_columns(_own=(pl.col("scope") == pl.col("_of")) & (by_form | ~pl.col("anchor").is_in(written)))


def _aliases(named: pl.DataFrame, settled: pl.Series) -> pl.DataFrame:
    """The owner of each title: of the topics that are named by more than a title, the first one with it."""
    titled = named.drop_nulls("_alias").sort(_FIRST)
    groups = titled.unique("_alias", keep="first", maintain_order=True)
    holders = titled.filter(~pl.col("_by_title") & ~pl.col("anchor").is_in(groups["_alias"].implode()))
    first = holders.unique("_alias", keep="first", maintain_order=True).select("_alias", _owner="anchor")
    owned = groups.select("_alias", "scope", "_kind", "_title", *_FIRST).join(first, on="_alias", how="left")
    owned = owned.with_columns(topic_id=pl.coalesce("_owner", "_alias"))
    of_kind = owned.drop_nulls("_kind").sort(_FIRST).unique(["scope", "_title"], keep="first", maintain_order=True)
    both = owned.join(of_kind.select("scope", "_title", _of_kind="topic_id"), on=["scope", "_title"], how="left")
    kindless = pl.col("_kind").is_null() & pl.col("_owner").is_null()
    owner = pl.when(kindless).then(pl.coalesce("_of_kind", "topic_id")).otherwise("topic_id")
    stays = pl.col("_alias").is_in(settled.implode())
    return both.select("scope", alias="_alias", topic_id=pl.when(stays).then("_alias").otherwise(owner))
