"""How merges, pairs and stale topics are told to people."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from textwrap import shorten
from typing import Any

_COLUMN = 46
_STRONGEST = 3


def merge_lines(merges: Sequence[Mapping[str, Any]]) -> list[str]:
    """Merges, three lines each: when and why sure, what into what, the strongest reasons."""
    if not merges:
        return ["no merges"]
    return [line for merge in merges for line in _merge(merge)]


def pair_lines(pair: Mapping[str, Any]) -> list[str]:
    """Two topics side by side, a line for each thing that is known of one of them."""
    a, b = pair["a"], pair["b"]
    names = sorted({*a["fields"], *b["fields"]})
    rows: list[tuple[str, str, str]] = [("", a["id"], b["id"])]
    rows += [(name, a[key] or "", b[key] or "") for name, key in _TOLD]
    rows += [("evidence", _heard(a), _heard(b))]
    rows += [(name, _value(a["fields"], name), _value(b["fields"], name)) for name in names]
    width = max(len(name) for name, _, _ in rows)
    lines = [f"  {name:<{width}}  {_cut(left):<{_COLUMN}}  {_cut(right)}".rstrip() for name, left, right in rows]
    skipped = ", skipped before" * bool(pair["skipped"])
    return [f"the same with probability {_number(pair['probability'])}{skipped}", *lines, *_features(pair["features"])]


def stale_lines(stale: Sequence[Mapping[str, Any]]) -> list[str]:
    """Topics that wait for review, with the reason."""
    return [f"{row['title']}  [{row['topic_id']}]  {row['reason']}, since {row['since']}" for row in stale] or [
        "no topic is stale"
    ]


_TOLD = (("title", "title"), ("kind", "topic_kind"), ("summary", "summary"))


def _merge(merge: Mapping[str, Any]) -> list[str]:
    ended = f"  taken back {merge['undone_at'][:16]}" if merge["undone"] else ""
    dropped, survivor, into = merge["dropped"], merge["survivor"], merge["into"]
    later = f", now in {into['title']} [{into['id']}]" * (into["id"] not in (survivor["id"], dropped["id"]))
    sure = f"probability {_number(merge['probability'])}, evidence {len(merge['evidence_ids'])}"
    return [
        f"{merge['id']}  {merge['at'][:16]}  {sure}  {merge['reason']}{ended}",
        f"    {dropped['title']} [{dropped['id']}] into {survivor['title']} [{survivor['id']}]{later}",
        *_features(merge["features"][:_STRONGEST], "    "),
    ]


def _features(features: Sequence[Mapping[str, Any]], indent: str = "  ") -> list[str]:
    told = [f"{f['name']} {_number(f['value'])} ({_number(f['weight'], '+')})" for f in features]
    return [indent + ", ".join(told)] if told else []


def _number(value: float | None, sign: str = "") -> str:
    return "unknown" if value is None else f"{value:{sign}.3g}"


def _heard(side: Mapping[str, Any]) -> str:
    return f"{side['evidence']}, {side['created_at'][:10]} to {side['updated_at'][:10]}"


def _value(fields: Mapping[str, Any], name: str) -> str:
    return json.dumps(fields[name], ensure_ascii=False) if name in fields else ""


def _cut(text: str) -> str:
    return text if len(text) <= _COLUMN and "\n" not in text else shorten(text, _COLUMN, placeholder="…")
