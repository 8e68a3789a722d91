"""Readings of merges as plain sentences.

`pair_reading` computes them; here are their form in the decision that records the merge, and their text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

READING = pl.Struct(
    {
        "agree": pl.List(pl.String),
        "differ": pl.List(pl.Struct({"name": pl.String, "dropped": pl.String, "partner": pl.String})),
        "only": pl.List(pl.String),
        "shared": pl.String,
        "shared_by": pl.Int64,
        "shared_in_group": pl.Int64,
    }
)
"""The reading of a merge as its decision records it: that of PAIRS, with the values of the dropped topic and of its
partner."""
_SHOWN = 4
"""The most parts that a sentence names of those that agree, differ, or only one topic has."""
_FIELD = "field:"
_LONGEST_NAME = 32


def reading_text(reading: Mapping[str, Any] | None) -> str | None:
    """A reading in one line, such as `title agrees, price differs (12 vs 14); 3 others have the same title`.

    Args:
        reading: as a merge decision records it; None, or with a null `agree`, where it records none.
    """
    if reading is None or reading["agree"] is None:
        return None
    agree, only = ([_name(name) for name in reading[key]] for key in ("agree", "only"))
    clauses = [_clause(agree, "agree"), _differing(reading["differ"])]
    clauses += [f"only one has {_listed(only)}"] * bool(only)
    text = ", ".join(clauses)
    return f"{text}; {_sharing(reading)}" if agree else text


def _clause(parts: Sequence[str], verb: str) -> str:
    if not parts:
        return f"nothing {verb}s"
    return f"{_listed(parts)} {verb}{'s' * (len(parts) == 1)}"


def _differing(parts: Sequence[Mapping[str, str | None]]) -> str:
    """The parts that differ with both values, unless there are none to show or they differ only where they are cut."""
    values = [f" ({part['dropped']} vs {part['partner']})" * (part["dropped"] != part["partner"]) for part in parts]
    if len(parts) == 1:
        return f"{_name(str(parts[0]['name']))} differs{values[0]}"
    return _clause([f"{_name(str(part['name']))}{shown}" for part, shown in zip(parts, values, strict=True)], "differ")


def _sharing(reading: Mapping[str, Any]) -> str:
    others, grouped = reading["shared_by"], reading["shared_in_group"]
    part = _name(reading["shared"])
    if not others:
        return f"no other topic of the scope has the same {part}"
    have = f"1 other has the same {part}" if others == 1 else f"{others:,} others have the same {part}"
    if not grouped:
        return have
    among = f"{'all' if grouped == others else f'{grouped:,}'} of them "
    return f"{have}, {among * (others > 1)}in this group"


def _name(name: str) -> str:
    """The name of a part; `field` precedes that of a field which is called like the title or the summary."""
    bare = " ".join(name.removeprefix(_FIELD).split())
    short = bare if len(bare) <= _LONGEST_NAME else f"{bare[: _LONGEST_NAME - 1]}…"
    return f"field {short}" if name in (f"{_FIELD}title", f"{_FIELD}summary") else short


def _listed(parts: Sequence[str]) -> str:
    shown = list(parts) if len(parts) <= _SHOWN else [*parts[: _SHOWN - 1], f"{len(parts) - _SHOWN + 1} more"]
    return " and ".join([", ".join(shown[:-1])] * (len(shown) > 1) + shown[-1:])
