"""JSON Schema in words: the type of a value on one line, and what docstrings say of its keys."""

from __future__ import annotations

import inspect
import re
from typing import Any

from docs.make.markdown import one_line

Json = dict[str, Any]
_BOUNDS = {"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"}


def kind_of(schema: Json) -> str:
    """The type of a value: its name, its bounds, or a link to the object that it is."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            return " or ".join(dict.fromkeys(kind_of(one) for one in schema[choice]))
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if schema.get("type") == "array":
        return f"list of {kind_of(schema.get('items', {}))}"
    return _plain(schema)


def _plain(schema: Json) -> str:
    name = schema.get("format", schema.get("type", "any JSON value"))
    bounds = [_range(schema)] if _BOUNDS & schema.keys() else []
    if "maxLength" in schema:
        bounds.append(f"at most {schema['maxLength']:,} characters")
    return f"{name} ({', '.join(bounds)})" if bounds else str(name)


def _range(schema: Json) -> str:
    """The allowed range of a number, as `1 to 9`, `from 1` or `above 0, up to 9`."""
    low = _bound(schema, "minimum", "from ") or _bound(schema, "exclusiveMinimum", "above ")
    high = _bound(schema, "maximum", "up to ") or _bound(schema, "exclusiveMaximum", "below ")
    if low.startswith("from") and high.startswith("up to"):
        return f"{low.removeprefix('from ')} to {high.removeprefix('up to ')}"
    return ", ".join(part for part in (low, high) if part)


def _bound(schema: Json, key: str, words: str) -> str:
    if key not in schema:
        return ""
    value = schema[key]
    return words + (f"{value:,.0f}" if value == int(value) else str(value))


def summary(description: str | None) -> str:
    """A docstring without its sections."""
    return one_line(re.split(r"\n\s*\n?(?:Attributes|Args|Returns|Raises):", description or "")[0])


def attributes(description: str | None) -> dict[str, str]:
    """What the section `Attributes` of a Google-style docstring says of each name."""
    section = (description or "").partition("Attributes:\n")[2]
    entries = re.split(r"^(?=\w+: )", inspect.cleandoc(section), flags=re.MULTILINE)
    pairs = (entry.partition(": ") for entry in entries if ": " in entry)
    return {name: one_line(meaning) for name, _, meaning in pairs}
