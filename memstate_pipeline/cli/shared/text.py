"""Merges, candidate pairs and stale topics as lines of text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from memstate_pipeline.cli.shared.terminal import cut, width

_STRONGEST = 3
_NARROWEST = 16
_KEYS_DIFFER = "  not merged without a verdict, since observations name them by different keys"
_PAIR_ROWS = (("title", "title"), ("kind", "topic_kind"), ("summary", "summary"))


def merge_lines(merges: Sequence[Mapping[str, Any]]) -> list[str]:
    """Three lines for each merge: id, time, confidence; which topic into which; its reading, or the features."""
    return [line for merge in merges for line in _merge(merge)] or ["no merges"]


def pair_lines(pair: Mapping[str, Any]) -> list[str]:
    """The ids as `--decide` takes them, the topics side by side, and the features of their comparison."""
    a, b = pair["a"], pair["b"]
    names = sorted({*a["fields"], *b["fields"]})
    rows = [(name, a[key] or "", b[key] or "") for name, key in _PAIR_ROWS]
    keys = [side.get("keys", []) for side in (a, b)]
    rows += [("key", ", ".join(keys[0]), ", ".join(keys[1]))] if any(keys) else []
    rows += [("evidence", _evidence(a), _evidence(b))]
    rows += [(name, _value(a["fields"], name), _value(b["fields"], name)) for name in names]
    apart = [_KEYS_DIFFER] if all(keys) and not {*keys[0]}.intersection(keys[1]) else []
    return [_heading(pair), *apart, f"  {a['id']}:{b['id']}", *_side_by_side(rows), *_features(pair["features"])]


def stale_lines(stale: Sequence[Mapping[str, Any]]) -> list[str]:
    """Topics that wait for review, each with the reason."""
    return [f"{row['title']}  [{row['topic_id']}]  {row['reason']}, since {row['since']}" for row in stale] or [
        "no topic is stale"
    ]


def _heading(pair: Mapping[str, Any]) -> str:
    """What is asked about a candidate pair, or about a merge, whose second topic is the one that is left."""
    skipped = ", skipped before" * bool(pair["skipped"])
    if "merge" not in pair:
        return f"the same with probability {number(pair['probability'])}{skipped}"
    today = f", today {number(pair['today'])}" * (pair["today"] != pair["probability"])
    return f"merged {pair['at'][:10]} with probability {number(pair['probability'])}{today}: right?{skipped}"


def _merge(merge: Mapping[str, Any]) -> Iterator[str]:
    undone = f"  undone {merge['undone_at'][:16]}" if merge["undone"] else ""
    dropped, survivor, into = merge["dropped"], merge["survivor"], merge["into"]
    later = f", now in {into['title']} [{into['id']}]" * (into["id"] not in (survivor["id"], dropped["id"]))
    confidence = f"probability {number(merge['probability'])}, evidence {len(merge['evidence_ids'])}"
    yield f"{merge['id']}  {merge['at'][:16]}  {confidence}  {merge['reason']}{undone}"
    yield f"    {dropped['title']} [{dropped['id']}] into {survivor['title']} [{survivor['id']}]{later}"
    if merge["reading"] is None:
        yield from _features(merge["features"][:_STRONGEST], "    ")
    else:
        partner = f" (compared with {merge['partner']})" * (merge["partner"] != survivor["id"])
        yield f"    {merge['reading']}{partner}"


def _side_by_side(rows: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    label = max(len(name) for name, _, _ in rows)
    column = max(_NARROWEST, (width() - label - 6) // 2)
    for name, left, right in rows:
        yield f"  {name:<{label}}  {cut(left, column):<{column}}  {cut(right, column)}".rstrip()


def _features(features: Iterable[Mapping[str, Any]], indent: str = "  ") -> list[str]:
    parts = [f"{f['name']} {number(f['value'])} ({number(f['weight'], '+')})" for f in features]
    return [indent + ", ".join(parts)] if parts else []


def number(value: float | None, sign: str = "") -> str:
    """A number with four digits."""
    return "unknown" if value is None else f"{value:{sign}.4g}"


def _evidence(side: Mapping[str, Any]) -> str:
    return f"{side['evidence']}, {side['created_at'][:10]} to {side['updated_at'][:10]}"


def _value(fields: Mapping[str, Any], name: str) -> str:
    return json.dumps(fields[name], ensure_ascii=False) if name in fields else ""
