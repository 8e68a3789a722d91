"""What becomes of the rows of the ledger's tables in an erasure."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import polars as pl
from msgspec import json as msgjson

from memstate_core.model.ledger_tables import TRANSITIONS
from memstate_core.night.erasure.subject import SCOPE, Found
from memstate_core.state.fold.decisions import PUBLISHED, SEGMENT_PLACED, SUMMARISED
from memstate_core.state.ledger.ledger import Ledger
from memstate_core.state.ledger.rewrite import Change

ERASED = "erased"
"""The kind of a transition whose content was erased; it keeps its place in the order of decisions."""
REMOVED_TEXT = "(erased)"
_FIELD = "field:"
"""How the comparisons of fields are named in decisions on matches."""
_HEAD = r'"ledger_head":"[0-9a-f]*"'


def changes(found: Found, ledger: Ledger) -> Mapping[str, Change]:
    """The change of each table.

    Args:
        found: what is erased.
        ledger: the ledger as it is.
    """
    refused = _refused(found, ledger.scan("quarantine").collect())
    return {
        "evidence": lambda rows: rows.filter(~pl.col("evidence_id").is_in(found.evidence.implode())),
        "transitions": partial(_transitions, found),
        "accesses": partial(_accesses, found),
        "quarantine": lambda rows: rows.filter(~pl.col("quarantine_id").is_in(refused.implode())),
        "quarantine_actions": partial(_actions, found, refused),
    }


def counts(found: Found, ledger: Ledger) -> dict[str, int]:
    """How many rows of each table are erased; of transitions also those that lose a text or evidence."""
    named = changes(found, ledger)
    result = {}
    for table, change in named.items():
        rows = ledger.scan(table).collect()
        if table == "transitions":
            rows = rows.filter(pl.col("kind") != PUBLISHED)
            result[table] = _unequal(rows, change(rows))
        else:
            result[table] = rows.height - change(rows).height
    return result


def _unequal(before: pl.DataFrame, after: pl.DataFrame) -> int:
    """How many transitions differ; each is compared with itself, in whatever order the ledger's files have them."""
    pairs = zip(before.sort("seq").iter_rows(), after.sort("seq").iter_rows(), strict=True)
    return sum(old != new for old, new in pairs)


def contains(column: str, texts: list[str]) -> pl.Expr:
    """Whether a text has one of some others."""
    return pl.col(column).str.contains_any(texts).fill_null(False) if texts else pl.lit(False)


def _of_accesses(found: Found) -> pl.Expr:
    of_topic = pl.col("topic_id").is_in(found.gone.implode())
    subject = found.subject
    of_scope = (pl.col("scope") == subject.value).fill_null(False) if subject.kind == SCOPE else pl.lit(False)
    return of_topic | of_scope | contains("source", found.texts)


def _accesses(found: Found, rows: pl.DataFrame) -> pl.DataFrame:
    """Accesses of other topics; one lost if all fields that it names were the subject's."""
    names = [msgjson.decode(word) for word in found.words]
    left = pl.col("fields").list.set_difference(pl.lit(pl.Series([names], dtype=pl.List(pl.String))))
    emptied = (pl.col("fields").list.len() > 0) & (left.list.len() == 0)
    kept = rows.filter(~_of_accesses(found) & ~emptied.fill_null(False))
    return kept.with_columns(
        fields=pl.when(left.list.len() < pl.col("fields").list.len()).then(left).otherwise("fields")
    )


def _refused(found: Found, rows: pl.DataFrame) -> pl.Series:
    """The ids of refused rows that quote the subject."""
    raw = pl.Series("raw", [bytes(each or b"").decode("utf-8", "replace") for each in rows["raw"]], pl.String)
    hit = pl.any_horizontal(contains(name, found.texts) for name in ("file", "detail", "raw"))
    return rows.with_columns(raw).filter(hit)["quarantine_id"]


def _actions(found: Found, refused: pl.Series, rows: pl.DataFrame) -> pl.DataFrame:
    kept = rows.filter(~pl.col("quarantine_id").is_in(refused.implode()))
    return kept.with_columns(reason=_without("reason", found.texts))


def _without(column: str, texts: list[str]) -> pl.Expr:
    return pl.when(contains(column, texts)).then(pl.lit(REMOVED_TEXT)).otherwise(pl.col(column)).alias(column)


def _transitions(found: Found, rows: pl.DataFrame) -> pl.DataFrame:
    published = pl.col("kind") == PUBLISHED
    left = pl.col("evidence_ids").list.set_difference(pl.lit(found.evidence.implode()))
    emptied = (pl.col("evidence_ids").list.len() > 0) & (left.list.len() == 0)
    quoted = pl.col("kind").is_in([SEGMENT_PLACED, SUMMARISED]) & (left.list.len() < pl.col("evidence_ids").list.len())
    summary = (pl.col("kind") == SUMMARISED) & pl.col("topic_id").is_in(found.touched.implode())
    named = contains("payload_json", [msgjson.encode(topic).decode() for topic in found.gone])
    gone = pl.any_horizontal(
        pl.col("topic_id").is_in(found.gone.implode()).fill_null(False), emptied, quoted, summary, named
    )
    if found.subject.kind == SCOPE:
        gone = gone | (pl.col("scope") == found.subject.value).fill_null(False)
    marked = rows.with_columns(_gone=gone.fill_null(False) & ~published, evidence_ids=left)
    kept = _redacted(marked.filter(~pl.col("_gone")).drop("_gone"), found)
    erased = _emptied(marked.filter("_gone").drop("_gone"))
    head = pl.col("payload_json").str.replace(_HEAD, '"ledger_head":null')
    result = (
        pl.concat([kept, erased])
        .sort("seq")
        .with_columns(payload_json=pl.when(published).then(head).otherwise(pl.col("payload_json")))
    )
    return result.select(TRANSITIONS.keys())


def _emptied(rows: pl.DataFrame) -> pl.DataFrame:
    none = [pl.lit(None, TRANSITIONS[name]).alias(name) for name in ("scope", "topic_id", "payload_json")]
    ids = pl.lit([], pl.List(pl.String))
    return rows.with_columns(*none, kind=pl.lit(ERASED), evidence_ids=ids, reason=pl.lit(ERASED))


def _redacted(rows: pl.DataFrame, found: Found) -> pl.DataFrame:
    """Rows whose payload or reason has no text of the subject; those of scopes without it had none."""
    elsewhere = pl.col("scope").is_not_null() & ~pl.col("scope").is_in(found.scopes)
    here, published = rows.filter(~elsewhere), pl.col("kind") == PUBLISHED
    texts = [*found.texts, *found.words]
    hit = contains("payload_json", [*texts, *map(_compared, texts)]) & ~published
    quoting = here.filter(hit)
    if quoting.height:
        clean = {payload: _clean_json(payload, texts) for payload in quoting["payload_json"].unique()}
        payload = pl.col("payload_json").replace(clean)
        here = here.with_columns(payload_json=pl.when(hit).then(payload).otherwise(pl.col("payload_json")))
    return pl.concat([here.with_columns(_without("reason", found.texts)), rows.filter(elsewhere)])


def _clean_json(text: str, texts: list[str]) -> str:
    return msgjson.encode(_clean(msgjson.decode(text), texts)).decode()


def _clean(value: Any, texts: list[str]) -> Any:
    if isinstance(value, dict):
        return {key: _clean(each, texts) for key, each in value.items() if not _names_field(key, texts)}
    if isinstance(value, list):
        return [_clean(each, texts) for each in value]
    if isinstance(value, str):
        written = msgjson.encode(value).decode()
        return REMOVED_TEXT if any(each in written for each in texts) else value
    return value


def _names_field(key: str, texts: list[str]) -> bool:
    """Whether a key is that of a comparison of a field, such as a weight of the match model, and has such a name."""
    name = msgjson.encode(key.removeprefix(_FIELD)).decode()
    return key.startswith(_FIELD) and any(each in name for each in texts)


def _compared(text: str) -> str:
    """A quoted name as the key of the comparison of that field; any other text as it is."""
    return f'"{_FIELD}{text[1:]}' if text.startswith('"') else text
