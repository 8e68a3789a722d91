"""What an erasure concerns: the evidence of a subject, the topics that it alone supports, and the text of it alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl
from msgspec import json as msgjson

from memstate_core.model.errors import StoreNotFound, SubjectAmbiguous, TopicNotFound
from memstate_core.model.forms.verification import VERIFICATION
from memstate_core.model.frames import empty
from memstate_core.model.ledger_tables import EVIDENCE
from memstate_core.model.step_frames import PLACEMENTS
from memstate_core.night.placements import recorded_placements
from memstate_core.run.served_state import Served, read_served
from memstate_core.run.served_topics import served_topic
from memstate_core.run.store import Store

SCOPE, TOPIC, ACTOR, OBSERVATION, SESSION = "scope", "topic", "actor", "observation", "session"
RECORDED = "recorded"
"""Observations that an earlier erasure recorded, found in a restored backup; they are named by their evidence."""
_COLUMNS = {SCOPE: "scope", ACTOR: "actor", OBSERVATION: "observation_id", SESSION: "session_id"}
_TEXTS = (
    "observation_id", "actor", "session_id", "source_uri", "text", "topic_id", "topic_key", "title", "summary",
)  # fmt: skip
_OUR_WORDS = {
    "kind", "placement", "provenance", "field_type", "type", "topic_kind", "observed_at", "valid_from", "valid_until",
}  # fmt: skip
_OUR_KEYS = {
    *EVIDENCE, "id", "name", "value", "why_changed", "impact_expected", "confidence", "ref_topic_id", "to_topic_id",
    "to_topic_key", "conversation", "cwd",
}  # fmt: skip
"""Keys of every observation; the values of `_OUR_WORDS` are words of our own and times. Neither says who is meant."""
_SHORTEST = 6
"""Shorter texts are looked for only as whole JSON strings, since they may be part of anything."""


@dataclass(frozen=True)
class Subject:
    """What is to be erased.

    Attributes:
        kind: one of those above.
        value: the scope, the id, the `topic_key` or the name; empty for `RECORDED`.
        scope: the only scope in which it is meant; None for all.
        evidence: of `RECORDED` the ids of its evidence.
    """

    kind: str
    value: str
    scope: str | None = None
    evidence: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Found:
    """What belongs to a subject.

    Attributes:
        subject: the subject.
        evidence: the ids of its evidence.
        gone: the ids of topics that no other evidence supports, aliases and merged topics among them.
        touched: the ids of topics that stay, and that also learned from the subject.
        texts: texts and ids that only the subject has, as they stand in JSON.
        words: names of fields and keys that only the subject has, quoted as in JSON; others may use such words at any
            time, so nothing is removed for them, but decisions without evidence lose them.
        scopes: the scopes of its evidence.
    """

    subject: Subject
    evidence: pl.Series
    gone: pl.Series
    touched: pl.Series
    texts: list[str]
    words: list[str]
    scopes: list[str]

    @property
    def journal_texts(self) -> list[str]:
        """What a line of the access journal that belongs to the subject contains: its texts, fields, topics, scope."""
        named = [*self.gone, self.subject.value] if self.subject.kind == SCOPE else list(self.gone)
        return [*self.texts, *self.words, *map(_quoted, named)]

    def with_gone(self, gone: Sequence[str]) -> Found:
        """This with more topics that go: those that were found before the ledger was rewritten."""
        return replace(self, gone=pl.concat([self.gone, pl.Series("topic_id", gone, pl.String)]).unique().sort())


def find(store: Store, subject: Subject) -> Found:
    """What belongs to a subject, as the ledger and the served snapshots say.

    Raises:
        SubjectAmbiguous: several scopes have an observation or a session of this id.
        TopicAmbiguous: several topics have this `topic_key`.
    """
    shards = _served(store)
    placed = pl.concat([empty(PLACEMENTS), *(recorded_placements(store, shard) for shard in shards.values())])
    rows = store.ledger.scan("evidence")
    ids = rows.filter(_mine(subject, shards, placed)).select("evidence_id").collect()["evidence_id"]
    ids = pl.concat([ids, _records_about(rows, ids)]).unique(maintain_order=True)
    mine = pl.col("evidence_id").is_in(ids.implode())
    gone = _gone(shards, placed, mine)
    learned = [shard.evidence_topic.filter(mine)["topic_id"] for shard in shards.values()]
    touched = pl.concat([pl.Series("topic_id", [], pl.String), *learned]).unique().sort()
    _require_one_scope(subject, rows.filter(mine))
    own, others = rows.filter(mine).collect(), rows.filter(~mine)
    texts, named = _texts(own, others, [*_names(subject), *gone]), _words(own, others)
    words = sorted(named - _in_decisions(sorted(named), store.ledger.scan("transitions"), ids))
    kept = touched.filter(~touched.is_in(gone.implode()))
    return Found(subject, ids, gone, kept, texts, words, own["scope"].unique().sort().to_list())


def _records_about(rows: pl.LazyFrame, ids: pl.Series) -> pl.Series:
    """The verification records whose target is erased evidence: their messages quote what it notes."""
    records = rows.filter(pl.col("topic_kind") == VERIFICATION).select(
        "evidence_id", "scope", target=pl.col("payload_json").str.json_path_match("$.memory.target")
    )
    own = rows.filter(pl.col("evidence_id").is_in(ids.implode()))
    targets = own.select("scope", target=pl.lit("observation:") + pl.col("observation_id"))
    return records.join(targets, on=["scope", "target"], how="semi").collect()["evidence_id"]


def _served(store: Store) -> dict[str, Served]:
    """The served state by shard; none before the first night."""
    try:
        return read_served(store)
    except StoreNotFound:
        return {}


def _require_one_scope(subject: Subject, rows: pl.LazyFrame) -> None:
    """Ids are unique within a scope only, so one alone does not say whose observation or session is meant."""
    if subject.kind in (OBSERVATION, SESSION):
        scopes = rows.select(pl.col("scope").unique().sort()).collect()["scope"].to_list()
        if len(scopes) > 1:
            raise SubjectAmbiguous(subject.kind, subject.value, scopes)


def _names(subject: Subject) -> list[str]:
    """The value of a subject as dumps may write it: as it is, between quotation marks, and of a scope the id alone."""
    scope_id = [subject.value.partition(":")[2]] if subject.kind == SCOPE else []
    return [name for name in (subject.value, *scope_id) if name]


def _mine(subject: Subject, shards: dict[str, Served], placed: pl.DataFrame) -> pl.Expr:
    if subject.kind == RECORDED:
        return pl.col("evidence_id").is_in(sorted(subject.evidence))
    if subject.kind != TOPIC:
        inside = pl.lit(True) if subject.scope is None else pl.col("scope") == subject.scope
        return (pl.col(_COLUMNS[subject.kind]) == subject.value) & inside
    try:
        name, living = served_topic(shards, subject.value)
    except TopicNotFound:
        return pl.lit(False)
    ids = placed.filter(shards[name].answering(pl.col("topic_id")) == living)["evidence_id"]
    return pl.col("evidence_id").is_in(ids.implode())


def _gone(shards: dict[str, Served], placed: pl.DataFrame, mine: pl.Expr) -> pl.Series:
    rest = placed.filter(~mine)["topic_id"].drop_nulls().unique()
    gone = placed.filter(mine)["topic_id"].drop_nulls().unique()
    gone = gone.filter(~gone.is_in(rest.implode()))
    for shard in shards.values():
        owned = shard.aliases.filter(pl.col("topic_id").is_in(gone.implode()))["alias"]
        gone = pl.concat([gone, owned.filter(~owned.is_in(rest.implode()))])
    return gone.unique().sort()


def _texts(mine: pl.DataFrame, rest: pl.LazyFrame, more: list[str]) -> list[str]:
    """Texts of the erased evidence that no other evidence contains, as they stand in JSON, the longest first."""
    found = {*mine["evidence_id"], *mine["content_sha256"], *more}
    for name in _TEXTS:
        found.update(mine[name].drop_nulls())
    for payload in mine["payload_json"].drop_nulls():
        found.update(text for text, is_word in _strings(msgjson.decode(payload)) if not is_word)
    forms = {form for text in found if text.strip() for form in _forms(text)}
    written = sorted({*forms, *map(_quoted, more)})
    shared = _shared(written, rest) if written else set()
    return sorted(set(written) - shared, key=lambda text: (-len(text), text))


def _forms(text: str) -> Iterator[str]:
    """A text as JSON writes it; a short one in quotation marks."""
    quoted = _quoted(text)
    yield quoted[1:-1] if len(text) >= _SHORTEST else quoted


def _words(mine: pl.DataFrame, rest: pl.LazyFrame) -> set[str]:
    """Names of fields and keys of the erased evidence that no other evidence has, quoted."""
    payloads = (msgjson.decode(payload) for payload in mine["payload_json"].drop_nulls())
    found = sorted({_quoted(text) for payload in payloads for text, is_word in _strings(payload) if is_word})
    return set(found) - (_shared(found, rest) if found else set())


def _in_decisions(words: list[str], transitions: pl.LazyFrame, mine: pl.Series) -> set[str]:
    """Those words that decisions on other evidence have, too, such as what a language model made of it."""
    shares = pl.col("evidence_ids").list.set_intersection(pl.lit(mine.implode())).list.len() > 0
    rows = transitions.filter(pl.col("evidence_ids").list.len() > 0, ~shares)
    found = rows.select(found=pl.col("payload_json").str.extract_many(words)) if words else None
    return set() if found is None else set(found.explode("found").unique().collect()["found"].drop_nulls())


def _quoted(text: str) -> str:
    return msgjson.encode(text).decode()


def _strings(value: Any, key: str = "") -> Iterator[tuple[str, bool]]:
    """The texts of a payload, each with whether it is the name of a field or a key."""
    if isinstance(value, str):
        yield value, key == "name"
    elif isinstance(value, dict):
        for name, each in value.items():
            if name not in _OUR_WORDS:
                yield from () if name in _OUR_KEYS else ((name, True),)
                yield from _strings(each, name)
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each, key)


def _shared(written: list[str], rest: pl.LazyFrame) -> set[str]:
    """Those texts that other evidence contains, too."""
    cells = [pl.col(name).fill_null("") for name in ("scope", "payload_json", "text", *_TEXTS)]
    lines = pl.struct(*(cell.alias(f"c{at}") for at, cell in enumerate(cells))).struct.json_encode()
    found = rest.select(
        found=lines.str.replace_all('\\"', '"', literal=True).str.extract_many(written, overlapping=True)
    )
    return set(found.explode("found").unique().collect()["found"].drop_nulls())
